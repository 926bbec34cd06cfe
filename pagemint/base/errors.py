# SPDX-License-Identifier: GPL-2.0-only
"""The one exception whose text is meant for the user."""


class Failure(Exception):
    """A problem that the user can solve; the command line prints it as one line and exits 1.

    Attributes:
        message: the problem, without a final full stop.
        remedy: the action that solves it.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return " ".join(f"{self.message}; {self.remedy}".split())


class MachineFailure(Failure):
    """A failure of this machine: its disk is full, it lacks a program, or has no network."""


class OutOfMemory(MachineFailure):
    """A program was killed for want of memory: it has to take less."""


class TreeFailure(Failure):
    """A failure of one tree: it does not build, lacks the code, or its code cannot run.

    Attributes:
        tree: its name.
        why: the reason in a few words; the message if none are given.
    """

    def __init__(self, message: str, remedy: str, tree: str, why: str = "") -> None:
        super().__init__(message, remedy)
        self.tree = tree
        self.why = " ".join((why or message).split())
