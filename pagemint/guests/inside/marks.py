# SPDX-License-Identifier: GPL-2.0-only
"""Marks points in time for the QEMU plugin."""

from pagemint.guests.inside.checks import LIBC


class Marks:
    """Marks, each of which ends a window of the plugin and begins the next.

    Attributes:
        window: the number of the window that the last mark began.
    """

    def __init__(self) -> None:
        self.window = 0

    def mark(self) -> None:
        """End a window."""
        # This only reads the personality. Nothing else in a guest calls personality(2).
        LIBC.personality(0xFFFFFFFF)
        self.window += 1
