# SPDX-License-Identifier: GPL-2.0-only
"""Boots a guest and waits for its end; a guest fails if its console shows a kernel's complaint."""

import re
import shlex
import shutil
import tempfile
from pathlib import Path

from pagemint.base import journal
from pagemint.base.errors import Failure, MachineFailure
from pagemint.base.progress import doing, note
from pagemint.base.run import run
from pagemint.guests.outside import arm64, scenarios, x86
from pagemint.guests.outside.scenarios import Record
from pagemint.guests.outside.settings import GuestSettings
from pagemint.trees import trees
from pagemint.trees.image import Kernel

_TAIL = 12  # lines of the console to show
_TROUBLE = re.compile(
    r"WARNING: |BUG: |Oops|Kernel panic|PANIC: |general protection|KASAN|possible .* lock"
    r"|suspicious RCU|blocked for more than|stalls? on CPU|new suspected memory leaks"
    r"|^ *not ok \d"
)


class Guest(GuestSettings):
    """A guest, to be run with its settings."""

    def run(
        self, kernel: Kernel, names: str, rebinds: int, private: int
    ) -> tuple[list[Record], str]:
        """Boot `kernel`, run inside/scenarios.py in it, and return its records and the console.

        Args:
            kernel: the kernel to boot.
            names: scenarios of inside/scenarios.py, separated by commas.
            rebinds: number of rebinds in each mode.
            private: bytes of device-private memory.

        Raises:
            Failure: the guest hangs, panics, or ends without a result. The message names the
                kernel, the scenario, and a directory with the guest's records and console. The
                end of the console is shown.
        """
        shared = Path(tempfile.mkdtemp(prefix="pagemint-vm-"))
        records_file, console = shared / "records", shared / "console"
        command = scenarios.command(
            kernel, names, rebinds, private, records_file, directories=self.directories
        )
        # The script's words have paths of any length, and a kernel's command line has its limit.
        (shared / "command").write_text(f"{shlex.join(command)}\n")
        what = f"the guest with the {kernel.variant} kernel"
        ended = ""
        try:
            # A failure of these is not one of the guest: arm64 fetches packages for it.
            lab = arm64 if kernel.arch == trees.ARM64 else x86
            argv, env = lab.argv(kernel, shared, self), x86.environment()
            with doing(lambda: _under_way(journal.read(records_file), names)):
                try:
                    run(argv, env=env, log=console, limit=self.limit, what=what)
                except MachineFailure:
                    raise
                except Failure as failure:
                    # vng's exit status is unreliable, so the guest's records count as well.
                    ended = failure.message.removeprefix(f"{what} ").removeprefix("failed: ")
        except BaseException:
            shutil.rmtree(shared)
            raise
        records = journal.read(records_file)
        text = console.read_text() if console.exists() else ""
        errors = [record["error"] for record in records if "error" in record]
        trouble = complaints(text, self.provoked)
        if errors or trouble or not records or "done" not in records[-1]:
            for line in text.splitlines()[-_TAIL:]:
                note(f"  | {line}")
            why = (errors + trouble + [ended or "it ended without a result"])[0]
            raise Failure(
                f"{what} failed in {_under_way(records, names)}: {why}",
                f"its whole console log is {console}",
            )
        shutil.rmtree(shared)
        return [record for record in records[:-1] if "running" not in record], text


def complaints(console: str, provoked: str | None = None) -> list[str]:
    """Return the lines of a console with which a kernel complains.

    Args:
        console: the text.
        provoked: a pattern of complaints to leave out, if any.
    """
    expected = re.compile(provoked or "(?!)")
    lines = console.splitlines()
    return [line for line in lines if _TROUBLE.search(line) and not expected.search(line)]


def _under_way(records: list[Record], names: str) -> str:
    """Return the scenario, and its part, in which the guest wrote its last record."""
    for record in reversed(records):
        if "running" in record:
            return f"{record['scenario']} ({record['running']})"
    return f"{names} (booting)"
