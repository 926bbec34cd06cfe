# SPDX-License-Identifier: GPL-2.0-only
"""A running native host: takes commands on a pipe and answers each with a line."""

import subprocess
from types import TracebackType
from typing import Self

from pagemint.base.errors import Failure, MachineFailure
from pagemint.bench.link import Program

THIS_CPU = "this"
"""The class of this machine's own CPU."""

# The remedy for an error whose text has these words.
_REMEDIES = {
    "fault at": "fix the workload if it is yours; otherwise report this line",
    "BUG or WARN": "fix the workload if it is yours; otherwise report this line",
    "the command": "compare it with its NATIVE_COMMAND() in pagemint/bench/",
    "has no stand-in": "add one to pagemint/bench/host/stubs.c, or the object that defines it to "
    "NATIVE_OBJECTS()",
}


class Answer(dict[str, str]):
    """The answer to a command, by name.

    Raises:
        Failure: a name is asked for that is not in the answer.
    """

    def __init__(self, command: str) -> None:
        super().__init__()
        self._command = command

    def __missing__(self, name: str) -> str:
        raise Failure(
            f"the native host's answer to {self._command!r} has no {name!r}",
            f"it has: {', '.join(self) or 'nothing'}; compare the calls of native_answer() "
            "in its NATIVE_COMMAND() in pagemint/bench/",
        )


class Host:
    """A running host. Use it in a `with` statement, which ends the program.

    Raises:
        Failure: the program cannot be started, or answers a command with an error.
    """

    def __init__(self, program: Program, memory: int = -1) -> None:
        """Start `program`, which inherits the file descriptor `memory` unless that is -1."""
        try:
            self._child: subprocess.Popen[str] = subprocess.Popen(
                [program.path, program.traps, program.sites],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=() if memory < 0 else (memory,),
                start_new_session=True,
            )
        except OSError as error:
            raise MachineFailure(
                f"cannot start the native host {program.path}: {error.strerror}",
                "free memory, or set XDG_CACHE_HOME to a disk whose programs may run",
            ) from error

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

    def patch(self, returns: str, cpu_class: str = THIS_CPU, **more: int) -> None:
        """Patch the kernel code as boot would; earlier patches are undone first.

        Args:
            returns: the kind of returns: plain, safe or untrained.
            cpu_class: the class of CPU, whose features choose how folios are copied.
            more: further arguments of the command, such as events=1 or fragile=1.
        """
        self.ask("patch", returns=returns, **{"class": cpu_class}, **more)

    def ask(self, command: str, **arguments: object) -> Answer:
        """Send a command and return its answer by name; see NATIVE_COMMAND in pagemint/bench/.

        If a name is in the answer several times, its values are joined with commas.

        Raises:
            Failure: the answer is an error, or the program is gone.
        """
        words = " ".join([command, *(f"{name}={value}" for name, value in arguments.items())])
        assert self._child.stdin and self._child.stdout
        try:
            self._child.stdin.write(words + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            pass  # the program has ended; its last line says why
        line: str = self._child.stdout.readline()
        answer = line.strip()
        if not line or answer.startswith("error"):
            # Without a whole line the program has ended, or is about to end.
            status = None if line else self._child.wait()
            why = answer.removeprefix("error").strip() or f"it ended with status {status}"
            remedies = (remedy for part, remedy in _REMEDIES.items() if part in why)
            otherwise = "free memory if it ran out of it; otherwise report this line"
            raise Failure(f"the native host failed at '{words}': {why}", next(remedies, otherwise))
        found = Answer(command)
        for word in answer.split():
            name, value = word.split("=", 1)
            found[name] = f"{found[name]},{value}" if name in found else value
        return found
