# SPDX-License-Identifier: GPL-2.0-only
"""A running native host: takes commands on a pipe and answers each with a line."""

import select
import signal
import subprocess
import time
from typing import Self

from pagemint.base import machine
from pagemint.base.errors import Failure, MachineFailure, OutOfMemory, TreeFailure
from pagemint.bench.link import Program
from pagemint.words import AGAIN, BASE

PATIENCE = 120.0
"""Seconds that a command may take in which a tree's code runs; see Host.ask()."""

_LENIENCE = 20  # times as long as the longest command so far: the first one touches all memory

_REPORT = "report this line"
_FAULT = f"fix the workload if it is yours; otherwise {_REPORT}"
# The remedies by the kind of an error; see host.h.
_REMEDIES = {
    "command": "compare it with its NATIVE_COMMAND() in pagemint/bench/",
    "execmem": "allow memory that is writable and executable (SELinux: setsebool deny_execmem off; "
    "a systemd unit: MemoryDenyWriteExecute=no), or run this elsewhere",
    "fault": _FAULT,
    "memory": "free memory, or give a smaller --size",
    "refused": _FAULT,
    "stand-in": "add one to pagemint/bench/host/stubs.c, or the object that defines it to "
    "NATIVE_OBJECTS()",
    "system": _REPORT,
    "threads": "raise the limit on processes (ulimit -u, pids.max), or give fewer --threads",
}
# The kinds that no tree is to blame for.
_OF_THE_MACHINE = ("execmem", "memory", "system", "threads")


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

    Attributes:
        failed: whether a command failed; no further command may be sent.

    Raises:
        Failure: the program cannot be started, or answers a command with an error.
    """

    def __init__(self, program: Program, memory: int = -1) -> None:
        """Start `program`, which inherits the file descriptor `memory` unless that is -1."""
        self.failed = False
        self._longest = 0.0
        self._oom_kills = machine.oom_kills()
        try:
            self._child: subprocess.Popen[str] = subprocess.Popen(
                [program.at / name for name in ("host", "traps", "sites")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=() if memory < 0 else (memory,),
                start_new_session=True,
            )
        except OSError as error:
            raise MachineFailure(
                f"cannot start the native host {program.at}/host: {error.strerror}",
                "free memory, or set XDG_CACHE_HOME to a disk whose programs may run",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is not None:
            self._child.kill()
        self._child.communicate()

    def patch(self, returns: str, cpu_class: str = "this", **more: int) -> None:
        """Patch the kernel code as boot would; earlier patches are undone first.

        Args:
            returns: the kind of returns: plain, safe or untrained.
            cpu_class: the class of CPU, whose features choose how folios are copied; "this" is that
                of this machine.
            more: further arguments of the command, such as events=1 or fragile=1.
        """
        self.ask("patch", returns=returns, **{"class": cpu_class}, **more)

    def ask(self, command: str, **arguments: object) -> Answer:
        """Send a command and return its answer by name; see NATIVE_COMMAND in pagemint/bench/.

        If a name is in the answer several times, its values are joined with commas.

        Raises:
            TreeFailure: the code of a tree other than base fails, or does not end in time: within
                PATIENCE, or some times the longest command so far.
            Failure: the answer is an error, or the program is gone.
        """
        words = " ".join([command, *(f"{name}={value}" for name, value in arguments.items())])
        assert self._child.stdin and self._child.stdout
        try:
            self._child.stdin.write(words + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            pass  # the program has ended; its last line says why
        tree = str(arguments.get("tree", ""))
        begun = time.monotonic()
        limit = PATIENCE + _LENIENCE * self._longest
        poll = select.poll()
        poll.register(self._child.stdout, select.POLLIN)
        if tree and not poll.poll(limit * 1000):
            self._child.kill()
            raise self._failure(words, tree, f"fault: it did not end within {limit:.0f} s")
        line: str = self._child.stdout.readline()
        self._longest = max(self._longest, time.monotonic() - begun)
        answer = line.strip()
        if not line or answer.startswith("error"):
            raise self._failure(words, tree, answer.removeprefix("error").strip())
        values = Answer(command)
        for word in answer.split():
            name, value = word.split("=", 1)
            values[name] = f"{values[name]},{value}" if name in values else value
        return values

    def _failure(self, words: str, tree: str, error: str) -> Failure:
        """Return the failure of a command, which blames the tree whose code ran, if any.

        `error` begins with its kind, and is "" if the program just ended.
        """
        self.failed = True
        where = f"the native host failed at '{words}'"
        if not error:
            status = self._child.wait()
            if status == -signal.SIGKILL:
                where += ": it was killed"
                if machine.oom_kills() == self._oom_kills and not machine.confines():
                    return MachineFailure(where, "find out who sent SIGKILL, and run again")
                return OutOfMemory(f"{where}, probably for want of memory", _REMEDIES["memory"])
            how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
            error = f"fault: it ended {how}"
        if error.startswith("tree="):  # a command that runs the code of all trees
            tree, _, error = error.removeprefix("tree=").partition(" ")
        kind, _, why = error.partition(": ")
        if tree in ("", BASE, AGAIN) or kind in _OF_THE_MACHINE:
            return Failure(f"{where}: {why}", _REMEDIES[kind])
        return TreeFailure(f"{where}: {why}", _REMEDIES[kind], tree, why)
