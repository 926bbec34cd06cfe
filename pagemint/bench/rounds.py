# SPDX-License-Identifier: GPL-2.0-only
"""Rounds: all variants of a workload in turn, until their gains are known well enough."""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pagemint.base.errors import Failure, TreeFailure
from pagemint.bench.left_out import LeftOut
from pagemint.bench.process import Host
from pagemint.bench.workload import Loop, Settings, Task, Timed, Workload
from pagemint.results import estimates
from pagemint.results.rows import Case, Limit, Row

_SEED = 73  # fixed, so that the order of the runs is the same in each bench
_CLOSE = 0.03  # a gain is known if its 95% interval reaches no further from it than this share
_MORE = 1.1  # by which the rounds grow before the intervals are looked at again: that takes time
_CHOICE = 3  # after so many rounds only the fastest of competing plain loops goes on


@dataclass(frozen=True)
class Budget:
    """The number of rounds, and the time for further rounds.

    Attributes:
        least: the least number of rounds.
        seconds: further rounds begin within this time; with 0 there are none.
    """

    least: int = estimates.FEWEST
    seconds: float = 10.0


class _Samples:
    """The runs of one workload so far."""

    def __init__(self, tasks: Sequence[Task], loops: Sequence[Loop], against: str) -> None:
        self.tasks = tasks
        self.loops = loops
        self.against = against
        self.runs = defaultdict[Task | Loop, list[Timed]](list)

    def round(self, host: Host, order: random.Random) -> dict[Task | Loop, Timed]:
        """Run everything once, in a shuffled order."""
        jobs: list[Task | Loop] = [*self.tasks, *self.loops]
        # A run also writes back the dirty cache lines of the run before it. So the order changes.
        order.shuffle(jobs)
        return {job: job.run(host) for job in jobs}

    def add(self, timed: dict[Task | Loop, Timed]) -> None:
        for job, run in timed.items():
            self.runs[job].append(run)
        if len(self.runs[self.tasks[0]]) == _CHOICE:
            self._choose()

    def drop(self, tree: str) -> None:
        """Drop all runs of a tree."""
        self.tasks = [task for task in self.tasks if task.variant.tree != tree]

    def _choose(self) -> None:
        """Drop all but the fastest of the loops that compete."""
        fastest: dict[tuple[object, ...], Loop] = {}
        for loop in self.loops:
            held = fastest.setdefault(loop.bounds, loop)
            if min(self.runs[loop]) < min(self.runs[held]):
                fastest[loop.bounds] = loop
        self.loops = list(fastest.values())

    def is_known(self) -> bool:
        """Whether the interval of every gain is narrow."""
        base: dict[Case, Task] = {}
        for task in self.tasks:
            if task.variant.tree == self.against:
                base.setdefault(task.case, task)
        for task in self.tasks:
            # The base tree has no variants with more threads than one.
            over = base.get(task.case) or base.get(replace(task.case, threads=1))
            if over and over is not task:
                gain = estimates.gain(_ms(self.runs[over]), _ms(self.runs[task]), paired=True)
                middle = gain.paired
                if max(middle.high - middle.value, middle.value - middle.low) > (
                    _CLOSE * middle.value
                ):
                    return False
        return True

    def result(self) -> tuple[list[Row], list[Limit]]:
        """Return a row for each task, and the limits."""
        rows = [
            Row(
                task.case,
                task.variant.tree,
                task.variant.mode,
                _ms(self.runs[task]),
                walk_ms=[run.walk_ns / 1e6 for run in self.runs[task] if run.walk_ns],
            )
            for task in self.tasks
        ]
        self._choose()
        workload = self.tasks[0].case.workload
        limits = [
            replace(loop.limit, workload=workload, runs_ms=_ms(self.runs[loop]))
            for loop in self.loops
        ]
        return rows, limits


def measure(
    hosts: Iterator[Host],
    workload: Workload,
    settings: Settings,
    budget: Budget,
    done: Callable[[float], None],
    left_out: LeftOut,
) -> tuple[list[Row], list[Limit]]:
    """Time a workload in rounds, and call `done` after each.

    The next host is taken after workload.rounds rounds, and after a failure. The tree whose code
    failed then joins `left_out`, and the others go on.

    Returns:
        a row for each of its tasks, and its limits; none if nothing is left to compare.

    Raises:
        Failure: the workload has no tasks, or the host fails.
    """
    order = random.Random(_SEED)
    tasks = list(workload.tasks(settings))
    if not tasks:
        raise Failure(f"the workload {workload.name} has no tasks", "its tasks() must yield some")
    able = [task for task in tasks if not left_out.has(workload.name, task.variant.tree)]
    if able != tasks and not left_out.comparable(workload.name, _trees(able), settings.against):
        return [], []
    host = next(hosts)
    samples = _Samples(able, list(workload.loops(host, settings)), settings.against)
    begun = time.monotonic()
    number = 0
    fresh = True
    judged = 0
    while number < budget.least or time.monotonic() - begun < budget.seconds:
        if number >= max(budget.least, judged * _MORE):
            judged = number
            if samples.is_known():
                break
        if workload.rounds and number % workload.rounds == 0 and not fresh:
            host, fresh = next(hosts), True
        try:
            if fresh:
                # The first round in a process does not count.
                samples.round(host, order)
            timed = samples.round(host, order)
        except TreeFailure as failure:
            left_out.failed(workload.name, failure)
            samples.drop(failure.tree)
            if not left_out.comparable(workload.name, _trees(samples.tasks), settings.against):
                return [], []
            host, fresh = next(hosts), True
            continue
        fresh = False
        samples.add(timed)
        number += 1
        done(1)
    return samples.result()


def _trees(tasks: Sequence[Task]) -> set[str]:
    return {task.variant.tree for task in tasks}


def _ms(runs: Sequence[Timed]) -> list[float]:
    return [run.ns / 1e6 for run in runs]
