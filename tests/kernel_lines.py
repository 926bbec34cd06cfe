# SPDX-License-Identifier: GPL-2.0-only
"""The kernel lines that tests try the series on."""

import os

from pagemint.kernels import steps

_KNOWN = steps.lines()
_LONG = bool(os.environ.get("PAGEMINT_LONG"))

LINES = _KNOWN if _LONG else [_KNOWN[0], _KNOWN[-1]]
"""The oldest, which differs most, and the newest; in the long run all that the series has."""

WHOLE = _KNOWN if _LONG else _KNOWN[-1:]
"""Those of them for what takes minutes on each line, or is alike on all."""
