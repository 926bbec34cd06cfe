# SPDX-License-Identifier: GPL-2.0-only
"""The kernel lines that tests try the series on."""

import os

from pagemint.trees import patches, sources

LONG = bool(os.environ.get("PAGEMINT_LONG"))
"""Whether this is the long run: `make check-long`."""

LINES = patches.lines() if LONG else patches.lines()[-1:]
"""The lines, oldest first. Only the long run tests the frozen backport."""

BASES = [*LINES, *([sources.EXPECTED] if LONG else [])]
"""The same lines, and in the long run Linux 7.4 as far as it is known."""
