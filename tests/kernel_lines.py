# SPDX-License-Identifier: GPL-2.0-only
"""The kernel lines that tests try the series on."""

import os

from pagemint import series

LINES = series.lines() if os.environ.get("PAGEMINT_LONG") else series.lines()[-1:]
"""The newest; in the long run all that the series has edits for."""
