# SPDX-License-Identifier: GPL-2.0-only
"""How this machine's kernel returns from functions: it patches its returns when it boots."""

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
"""The kernel's names of the returns that the native host can patch in."""


def of_this_machine() -> str:
    """Return the kind of returns that the running kernel uses: a key of NAMES.

    If the native host lacks that kind, note it on stderr and return PLAIN.
    """
    condition, other = look()
    if other:
        note(f"pagemint: {other} here; plain returns are timed instead")
    return condition


def look(sysfs: Path = _SYSFS) -> tuple[str, str]:
    """Return the key of NAMES, and the kernel's report on returns that the native host lacks."""
    reports = {
        file: (sysfs / file).read_text().strip() if (sysfs / file).exists() else ""
        for file in ("spec_rstack_overflow", "retbleed", "indirect_target_selection")
    }
    # Safe RET replaces the older mitigation, so look for it first.
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
