# SPDX-License-Identifier: GPL-2.0-only
"""The command line: finds the module of a subcommand, and turns every failure into one line."""

import argparse
import errno
import importlib
import os
import signal
import sys
from collections.abc import Callable, Collection, Sequence
from types import FrameType, ModuleType
from typing import Any, NoReturn

from pagemint.base import request
from pagemint.base.errors import Failure
from pagemint.base.progress import drop_output

COMMANDS = {
    "bench": "time memmap initialisation, before and after the patches, on this machine",
    "count": "count the instructions and bytes of whole operations, in emulated guests",
    "vm": "bind emulated devices in guests, with and without the patches",
    "host": "bind devices of this machine, with and without the module",
    "series": "apply the patches to a kernel tree, or write them as mails",
    "source": "list and fetch kernel sources",
    "report": "turn results into a page of plots",
    "doctor": "say what this machine can do, and what it lacks",
    "cache": "show what the cache holds, and remove what is no longer used",
}
"""The help of each subcommand; each has a module in commands/ with its Request, and main()."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and which takes options by their whole names."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - those of argparse
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        text = " ".join(message.split())
        self.exit(2, f"pagemint: {text}; see '{self.prog} --help'\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    return guarded(lambda: _run(list(sys.argv[1:] if argv is None else argv)))


def guarded(work: Callable[[], int]) -> int:
    """Do work that returns an exit status; turn a failure or a signal into one line and a status.

    SIGTERM and SIGHUP end it as Ctrl-C does. SIGHUP stays ignored if it was: nohup does that.
    """
    try:
        signal.signal(signal.SIGTERM, _interrupt)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, _interrupt)
        try:
            return work()
        finally:
            _flush()
    except KeyboardInterrupt:
        return _fail("interrupted; run again to continue", 130)
    except BrokenPipeError:
        drop_output(1)
        return 1
    except Exception as error:
        return _report(error)


def parser(names: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser, with the arguments of the subcommands `names`."""
    from pagemint import __version__

    made = _Parser(
        prog="pagemint",
        description="Patches that initialise the Linux memmap faster, built and measured.",
    )
    made.add_argument("--version", action="version", version=f"pagemint {__version__}")
    table = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        subparser = table.add_parser(name, help=text)
        if name in names:
            request.declare(subparser, _module(name).Request)
    return made


def _run(argv: list[str]) -> int:
    # Only the module of the named subcommand is loaded. Without one, argparse ends the program.
    name = next((word for word in argv if not word.startswith("-")), "")
    if name not in COMMANDS:
        parser(()).parse_args(argv)
        raise AssertionError("argparse accepted an unknown command")
    module = _module(name)
    try:
        _check_streams()
        given = vars(parser([name]).parse_args(argv))
        status: int = module.main(request.made(module.Request, given))
        _flush()
    except (SystemExit, Exception) as error:
        # A subcommand whose exit status is an answer has statuses of its own for failures.
        status_of = getattr(module, "failure_status", None)
        own = status_of(argv, error) if status_of else None
        if own is None:
            raise
        if isinstance(error, BrokenPipeError):
            drop_output(1)
        elif isinstance(error, Exception):
            _report(error)
        return int(own)
    return status


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"pagemint.commands.{name}")


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _report(error: Exception) -> int:
    if isinstance(error, Failure):
        return _fail(str(error), 1)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" for {error.filename}" if error.filename else " for a file or the output"
        return _fail(f"the disk is full: no room{where}; free some space and run again", 1)
    if isinstance(error, PermissionError) and error.filename:
        text = f"cannot use {error.filename}: {error.strerror}"
        return _fail(f"{text}; run as a user who may, or name another", 1)
    if os.environ.get("PAGEMINT_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return _fail(f"internal error: {text}; please report this with PAGEMINT_DEBUG=1 output", 70)


def _check_streams() -> None:
    """Check that stdout is open; give stdin and stderr something to stand for, if they are not.

    The next file that is opened would take the place of a closed one, and receive its output.

    Raises:
        Failure: stdout is closed.
    """
    for descriptor, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, descriptor)
            if null != descriptor:
                os.close(null)
            setattr(sys, name, os.fdopen(descriptor, "r" if descriptor == 0 else "w"))
            if name == "stdout":
                closed = Failure("standard output is closed", "redirect it to a file or /dev/null")
                raise closed from None


def _flush() -> None:
    """Write what is left of stdout.

    Raises:
        Failure: it cannot be written.
    """
    if sys.stdout is None:  # closed, for --version or a script
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output(1)
        raise Failure(
            f"cannot write standard output: {error.strerror}", "redirect it to another file"
        ) from error


def _fail(text: str, status: int) -> int:
    try:
        print(f"pagemint: {text}", file=sys.stderr, flush=True)
    except OSError:
        drop_output(2)
    return status
