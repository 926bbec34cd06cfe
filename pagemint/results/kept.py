# SPDX-License-Identifier: GPL-2.0-only
"""The results that are kept in docs/results: one bench for each CPU, and counts of operations."""

from pathlib import Path

from pagemint.base import files
from pagemint.base.errors import Failure

_COUNTS = "*-counts-*.json"
_STOCK_COUNTS = "*-stock-*.json"


def benches() -> list[Path]:
    """Return the files with times, newest first."""
    counts = {one for kind in (_COUNTS, _STOCK_COUNTS) for one in files.RESULTS.glob(kind)}
    return sorted(set(files.RESULTS.glob("*.json")) - counts, reverse=True)


def counts() -> Path:
    """Return the newest file with counts of both trees.

    Raises:
        Failure: there is none.
    """
    return _newest(_COUNTS, "pagemint vm --count --json FILE")


def stock_counts() -> Path:
    """Return the newest file with counts of a stock kernel.

    Raises:
        Failure: there is none.
    """
    return _newest(_STOCK_COUNTS, "pagemint vm --stock 6.12 --count --json FILE")


def _newest(kind: str, command: str) -> Path:
    found = sorted(files.RESULTS.glob(kind))
    if not found:
        raise Failure("no counts are kept", f"make some with: {command}")
    return found[-1]
