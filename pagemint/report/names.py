# SPDX-License-Identifier: GPL-2.0-only
"""The names of the plots on a page."""

import itertools
import re


class Names:
    """Gives each plot a name of its own that can be a file name."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, *parts: str) -> str:
        """Return a name of these parts that no plot has yet."""
        name = re.sub("[^a-z0-9]+", "-", " ".join(parts).lower()).strip("-")[:60]
        names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
        own = next(each for each in names if each not in self._taken)
        self._taken.add(own)
        return own
