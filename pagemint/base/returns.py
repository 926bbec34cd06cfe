# SPDX-License-Identifier: GPL-2.0-only
"""How the kernel of this machine returns from a function, which is patched in when it boots."""

from pathlib import Path

from pagemint.base.progress import note

_SYSFS = Path("/sys/devices/system/cpu/vulnerabilities")

PLAIN = "plain"
"""A ret instruction: CPUs that need no mitigation, and kernels booted with mitigations=off."""

NAMES = {
    PLAIN: "plain returns",
    "safe": "Safe RET",
    "untrained": "untrained return thunks",
}
"""What the kernel calls what the native host can patch in."""


def of_this_machine(sysfs: Path = _SYSFS) -> str:
    """Return what the running kernel patched its returns to: a key of NAMES.

    Where that is something that the native host does not have, says so and returns PLAIN.
    """
    condition, other = look(sysfs)
    if other:
        note(f"pagemint: {other} here; plain returns are timed instead")
    return condition


def look(sysfs: Path = _SYSFS) -> tuple[str, str]:
    """Return the key of NAMES, and what the kernel reports that the native host does not have."""
    reports = {
        file: (sysfs / file).read_text().strip() if (sysfs / file).exists() else ""
        for file in ("spec_rstack_overflow", "retbleed", "indirect_target_selection")
    }
    # Safe RET takes the place of the older mitigation.
    if "Safe RET" in reports["spec_rstack_overflow"]:
        return "safe", ""
    if "untrained return thunk" in reports["retbleed"]:
        return "untrained", ""
    others = [
        f"{file} is '{reports[file]}'"
        for file, sign in (("retbleed", "Stuffing"), ("indirect_target_selection", "return thunks"))
        if sign in reports[file]
    ]
    return PLAIN, " and ".join(others)
