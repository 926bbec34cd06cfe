# SPDX-License-Identifier: GPL-2.0-only
"""The kernel lines that tests try the series on."""

import os

import mutant

from pagemint.trees import patches as steps

_KNOWN = steps.lines()[-1 if mutant.JUDGED else 0 :]
_LONG = bool(os.environ.get("PAGEMINT_LONG"))

LINES = _KNOWN if _LONG else list(dict.fromkeys((_KNOWN[0], _KNOWN[-1])))
"""The oldest line, which differs most, and the newest; in the long run all lines."""

WHOLE = _KNOWN if _LONG else _KNOWN[-1:]
"""The lines for tests that take minutes on each line, or that are alike on all lines."""
