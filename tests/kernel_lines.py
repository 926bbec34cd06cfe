# SPDX-License-Identifier: GPL-2.0-only
"""The kernel lines that tests try the series on."""

import os

import mutant

from pagemint.trees import patches, sources

LINES = patches.lines()[-1 if mutant.JUDGED else 0 :]
"""All lines, oldest first."""

WHOLE = LINES if os.environ.get("PAGEMINT_LONG") else LINES[-1:]
"""The lines for tests that take minutes on each line, or that are alike on all lines."""

BASES = [*WHOLE, *([sources.EXPECTED] if os.environ.get("PAGEMINT_LONG") else [])]
"""The same lines, and in the long run Linux 7.4 as far as it is known."""
