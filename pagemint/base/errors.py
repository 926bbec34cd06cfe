# SPDX-License-Identifier: GPL-2.0-only
"""The one exception that is meant for the reader."""


class Failure(Exception):
    """Something the reader can act on; the command line prints it as one line and exits 1.

    Attributes:
        message: what is wrong, without a final full stop.
        remedy: what to do about it.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return " ".join(f"{self.message}; {self.remedy}".split())
