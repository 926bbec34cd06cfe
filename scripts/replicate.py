# SPDX-License-Identifier: GPL-2.0-only
"""Times binds and boots in guests if KVM works, else binds on the running kernel."""

import argparse
import sys
from pathlib import Path

from pagemint import cli
from pagemint.base.progress import note
from pagemint.commands import doctor
from pagemint.guests.outside import lab, x86
from pagemint.trees import image, patches, trees

_RESULT = ("--json", "out/replicate.json", "--rebinds", "10")
_GUESTS = ("vm", "--scenario", "fsdax,devdax,private,boot", "--turns", "3")
_HERE = ("host", "--yes")
_KVM = Path("/dev/kvm")


def _kvm_works(options: list[str]) -> bool:
    """Return whether a kernel boots under KVM: /dev/kvm can work where whole kernels do not."""
    if _KVM.exists():
        # Without QEMU nobody knows, and the running kernel would be used instead.
        lab.LABS["x86"].check_programs(lab.BIND_SCENARIOS.values())
    kvm = doctor.check_kvm(str(_KVM))
    if not kvm.ok:
        note(f"KVM: {kvm.found}")
        return False
    # Building a kernel takes minutes, so refuse a wrong option first.
    cli.parser(["vm"]).parse_args([*_GUESTS, *options])
    base, _ = trees.pair(patches.source_for(patches.lines()[-1], None))
    return x86.choose_accel("auto", image.kernel(base, lab.FRAGMENTS).image) == "kvm"


def _command(accel: str, options: list[str]) -> tuple[str, ...]:
    """Return the command of pagemint to run; `accel` is the one that the user asked for."""
    if accel != "auto" or _kvm_works(options):
        return *_GUESTS, "--accel", "kvm" if accel == "auto" else accel
    note("no guest runs under KVM: two modules are loaded into the running kernel instead")
    return _HERE


def main() -> int:
    """Run `pagemint vm` or `pagemint host`; further arguments are passed on."""
    parser = argparse.ArgumentParser(prog="make replicate", add_help=False, allow_abbrev=False)
    # Emulated guests show that it works; their times mean nothing, and the result says so.
    parser.add_argument("--accel", choices=("auto", "kvm", "tcg"), default="auto")
    asked, passed_on = parser.parse_known_args()
    options = [*_RESULT, *passed_on]
    return cli.main([*_command(asked.accel, options), *options])


if __name__ == "__main__":
    sys.exit(cli.guarded(main))
