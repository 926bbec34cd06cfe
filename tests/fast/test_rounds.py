# SPDX-License-Identifier: GPL-2.0-only
"""Rounds go on until the gains are known that the result will have; hosts end with a bench."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from stand_ins import program

from pagemint.base.errors import Failure
from pagemint.bench.hosts import Hosts
from pagemint.bench.link import Program
from pagemint.bench.process import Host
from pagemint.bench.rounds import _Samples
from pagemint.bench.workload import Settings, Task, Timed, Variant, Workload
from pagemint.results.rows import Case


def _never(host: Host) -> Timed:
    raise NotImplementedError


def _taken(*tasks: tuple[str, int, Callable[[int], float]]) -> _Samples:
    """Return the state after ten rounds: of each tree and number of threads, the ns of a run."""
    made = [
        Task(Case("fsdax", 4096, 1, threads), Variant(tree), _never) for tree, threads, _ in tasks
    ]
    taken = _Samples(made, [], "a")
    for task, (_, _, of) in zip(made, tasks, strict=True):
        taken.runs[task] = [Timed(round(of(number))) for number in range(10)]
    return taken


def _steady(number: int) -> float:
    return 1e6


def _noisy(number: int) -> float:
    return 1e6 * (1 + number % 3)


@pytest.mark.parametrize(("other", "known"), [(_steady, True), (_noisy, False)])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_gain_is_known_when_it_is_steady(
    other: Callable[[int], float], known: bool, threads: int
) -> None:
    assert _taken(("a", threads, _steady), ("b", threads, other)).is_known() is known


def test_the_gain_is_over_the_same_number_of_threads() -> None:
    # Both trees have the same noise with two threads, so their ratio is steady.
    tasks = [(tree, threads, of) for tree in "ab" for threads, of in ((1, _steady), (2, _noisy))]
    assert _taken(*tasks).is_known()


def test_a_tree_without_threads_is_compared_with_one_thread() -> None:
    assert not _taken(("a", 1, _steady), ("b", 2, _noisy)).is_known()


def test_a_host_that_loops_is_killed_after_an_error(tmp_path: Path) -> None:
    answers = "read setup\necho huge=1\nread patch\necho\nexec sleep 600"
    script = program(tmp_path / "host", answers)
    workload = Workload(
        name="loops",
        memory=lambda asked: 1,
        setup=lambda host, asked: int(host.ask("map")["huge"]),
        tasks=lambda asked: (),
    )
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Hosts([Program(script, script, script, {})]) as hosts:
        next(hosts.of(workload, Settings(1)))
        raise KeyboardInterrupt
    assert time.monotonic() - begun < 60


def test_a_host_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    script = tmp_path / "host"
    script.write_text("")
    with pytest.raises(Failure, match=r"cannot start the native host .*: Permission denied"):
        Host(Program(script, script, script, {}))
