# SPDX-License-Identifier: GPL-2.0-only
"""A running native host: takes commands on a pipe and answers each with a line."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pagemint.base.errors import Failure

THIS_CPU = "this"
"""The class of CPU that this machine's own is."""


@dataclass(frozen=True)
class Program:
    """A linked host.

    Attributes:
        path: the program.
        sites: the file that names the return sites to patch.
    """

    path: Path
    sites: Path


class Host:
    """A running host. Use it in a `with` statement, which ends the program.

    Raises:
        Failure: the program cannot be started, or answers a command with an error.
    """

    def __init__(self, program: Program, memory: int = -1) -> None:
        """Start `program`, which inherits the file descriptor `memory`, if it is not -1."""
        self._child: subprocess.Popen[str] = subprocess.Popen(
            [program.path, program.sites],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=() if memory < 0 else (memory,),
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._child.kill()
        self._child.communicate()

    def patch(
        self,
        returns: str,
        cpu_class: str = THIS_CPU,
        *,
        events: bool = False,
        fragile: bool = False,
    ) -> None:
        """Patch the kernel code as boot would, in place of what it was patched to before.

        Args:
            returns: what returns become: plain, safe or untrained.
            cpu_class: the CPU that is booted on, as far as copies differ by it.
            events: have the page_ref_set event active.
            fragile: have copies that survive machine checks made by copy_mc_fragile().
        """
        self.ask("patch", returns, cpu_class, int(events), int(fragile))

    def ask(self, *words: object) -> str:
        """Send a command (native/host.c lists them) and return the answer.

        Raises:
            Failure: the answer is an error, or the program is gone.
        """
        command = " ".join(str(word) for word in words)
        assert self._child.stdin and self._child.stdout
        try:
            self._child.stdin.write(command + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            pass  # what it said last says why
        line: str = self._child.stdout.readline()
        answer = line.strip()
        if not line or answer.startswith("error"):
            # Without a whole line the program is gone, or about to be.
            status = None if line else self._child.wait()
            why = answer.removeprefix("error").strip() or f"it ended with status {status}"
            raise Failure(
                f"the native host failed at '{command}': {why}",
                "free memory if it ran out of it; otherwise report this line",
            )
        return answer
