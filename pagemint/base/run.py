# SPDX-License-Identifier: GPL-2.0-only
"""Runs other programs, and ends all of them before pagemint ends."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from pagemint.base import packages
from pagemint.base.errors import Failure, MachineFailure

_GRACE = 3.0  # seconds between SIGTERM and SIGKILL
_COMPILER = re.compile(r"^\S+:\d+(:\d+)?: (fatal )?error: ")
_TELLING = re.compile(r"\b(error|fatal|failed)\b|^E: ", re.IGNORECASE)


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Path | None = None,
    log: Path | None = None,
    limit: float | None = None,
    what: str,
) -> str:
    """Run a program to its end and return what it wrote to stdout.

    The program has its own process group. If this function is left early, by Ctrl-C for example,
    it ends the whole group first.

    Args:
        argv: the program and its arguments; no shell is involved.
        cwd: the directory to run it in.
        env: the whole environment, if not this one's.
        stdin: the file that it reads; nothing without one.
        log: receives both outputs, stdout first.
        limit: seconds after which the program is ended.
        what: the work, for messages ("building mm/mm_init.o").

    Raises:
        Failure: the program is not installed, takes too long, or ends with a status other than 0.
    """
    if cwd is not None and not cwd.is_dir():
        raise Failure(f"{what}: there is no directory {cwd}", "run again to recreate it")
    child = None
    try:
        # Ctrl-C between the start of the child and this assignment would leave it running.
        with interruption_put_off(), (stdin or Path(os.devnull)).open("rb") as file:
            child = subprocess.Popen(
                argv,
                cwd=cwd,
                env=env,
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
                close_fds=False,  # see cache.locked()
            )
        stdout, stderr = child.communicate(timeout=limit)
    except (FileNotFoundError, PermissionError) as error:
        raise _missing(str(argv[0]), what) from error
    except subprocess.TimeoutExpired as error:
        assert child is not None
        _end_group(child)
        if log is not None:
            log.write_bytes((error.stdout or b"") + (error.stderr or b""))
        raise Failure(
            f"{what} did not end within {limit:.0f} s",
            f"its output so far is in {log}" if log else "try again when the machine is less busy",
        ) from error
    except BaseException:
        if child is not None:
            _end_group(child)
        raise
    if log is not None:
        log.write_text(stdout + stderr)
    if child.returncode != 0:
        code = child.returncode
        how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        raise Failure(
            f"{what} failed: {_telling_line(stderr) or _telling_line(stdout) or how}",
            f"the whole output is in {log}"
            if log
            else f"the command was: {shlex.join(map(str, argv))}",
        )
    return stdout


@contextmanager
def interruption_put_off() -> Iterator[None]:
    """Put off SIGINT, SIGTERM and SIGHUP until the end of a short block that must run whole.

    The signals then go to the handlers from before. Use it in the main thread only; it can be
    nested.
    """
    came: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        came.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {int(number): signal.signal(number, remember) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in came:
        signal.raise_signal(number)


def _missing(program: str, what: str) -> Failure:
    name = Path(program).name
    part = packages.parts().get(name)
    remedy = packages.remedy([name])
    if part and part.needs == "fetch":
        remedy = "run this on Debian, or give a kernel tree with --ksrc DIR"
    return MachineFailure(f"{what} needs the program {program}, which cannot be run here", remedy)


def _telling_line(output: str) -> str | None:
    """Return the line that says most about a failure, or None if nothing was written.

    That is the compiler's first error, else the last line with an error (make's own summary
    aside), else the last line.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    compiler = next((line for line in lines if _COMPILER.match(line)), None)
    if compiler:
        return compiler
    errors = [line for line in lines if _TELLING.search(line) and not line.startswith("make")]
    telling = errors or lines
    return telling[-1] if telling else None


def _end_group(child: subprocess.Popen[str]) -> None:
    """End the child's whole process group: SIGTERM, and SIGKILL after the grace period."""
    try:
        if _signal_group(child.pid, signal.SIGTERM):
            until = time.monotonic() + _GRACE
            while time.monotonic() < until:
                child.poll()  # a zombie leader would keep the group alive
                if not _signal_group(child.pid, 0):
                    break
                time.sleep(0.02)
    finally:
        _signal_group(child.pid, signal.SIGKILL)
        child.wait()
        for pipe in (child.stdout, child.stderr):
            if pipe:
                pipe.close()


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
