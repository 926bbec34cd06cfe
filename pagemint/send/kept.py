# SPDX-License-Identifier: GPL-2.0-only
"""The results that are kept in docs/results: one bench for each CPU, and counts of operations."""

import re

from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.bench import timed
from pagemint.results import reader
from pagemint.results.rows import Result
from pagemint.trees import edited

_COUNTS = "*-counts-*.json"
_STOCK_COUNTS = "*-stock-*.json"


def benches() -> list[Result]:
    """Return the results with times: those of which nothing has changed, then newest first."""
    counts = {file for kind in (_COUNTS, _STOCK_COUNTS) for file in files.RESULTS.glob(kind)}
    rest = sorted(set(files.RESULTS.glob("*.json")) - counts)
    results = [reader.read(str(file)) for file in rest]
    return sorted(results, key=lambda result: (not changed(result), result.host.date), reverse=True)


def changed(result: Result) -> list[str]:
    """Return the workloads of a result whose code has changed since it was timed."""
    then, now = result.kernel.code, timed.digests(_line(result))
    workloads = dict.fromkeys(row.case.workload for row in result.rows)
    return [name for name in workloads if name not in then or then[name] != now.get(name)]


def counts_are_current(result: Result) -> bool:
    """Tell whether counts are of the series as it is."""
    return result.kernel.series == edited.digest(_line(result))


def counts() -> Result:
    """Return the newest counts of both trees.

    Raises:
        Failure: there is none.
    """
    paths = sorted(files.RESULTS.glob(_COUNTS))
    if not paths:
        raise Failure("no counts are kept", "make some with: pagemint count --json FILE")
    return reader.read(str(paths[-1]))


def stock_counts() -> list[Result]:
    """Return the counts of stock kernels."""
    return [reader.read(str(file)) for file in sorted(files.RESULTS.glob(_STOCK_COUNTS))]


def _line(result: Result) -> str:
    match = re.match(r"\d+\.\d+", result.kernel.version)
    return match[0] if match else "0.0"
