# SPDX-License-Identifier: GPL-2.0-only
"""The kernel lines that tests try the series on."""

import os

import mutant

from pagemint.trees import patches, sources

LONG = bool(os.environ.get("PAGEMINT_LONG"))
"""Whether this is the long run: `make check-long`."""

LINES = patches.lines()[-1 if mutant.JUDGED else 0 :]
"""All lines, oldest first."""

WHOLE = LINES if LONG else LINES[-1:]
"""The lines for tests that take minutes on each line, or that are alike on all lines."""

BASES = [*WHOLE, *([sources.EXPECTED] if LONG else [])]
"""The same lines, and in the long run Linux 7.4 as far as it is known."""
