# SPDX-License-Identifier: GPL-2.0-only
"""The results that are kept in docs/results: one bench for each CPU, and counts of operations."""

from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.results import reader
from pagemint.results.rows import Result
from pagemint.trees import patches

_COUNTS = "*-counts-*.json"
_STOCK_COUNTS = "*-stock-*.json"


def benches() -> list[Result]:
    """Return the results with times: of the series as it is, then the others, newest first."""
    counts = {one for kind in (_COUNTS, _STOCK_COUNTS) for one in files.RESULTS.glob(kind)}
    rest = sorted(set(files.RESULTS.glob("*.json")) - counts)
    found = [reader.read(str(file)) for file in rest]
    now = patches.digests()  # once: it reads all edits
    return sorted(found, key=lambda one: (one.kernel.series in now, one.host.date), reverse=True)


def is_current(result: Result) -> bool:
    """Tell whether a result is of the series as it is."""
    return result.kernel.series in patches.digests()


def counts() -> Result:
    """Return the newest counts of both trees.

    Raises:
        Failure: there is none.
    """
    found = sorted(files.RESULTS.glob(_COUNTS))
    if not found:
        raise Failure("no counts are kept", "make some with: pagemint count --json FILE")
    return reader.read(str(found[-1]))


def stock_counts() -> list[Result]:
    """Return the counts of stock kernels."""
    return [reader.read(str(file)) for file in sorted(files.RESULTS.glob(_STOCK_COUNTS))]
