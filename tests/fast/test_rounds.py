# SPDX-License-Identifier: GPL-2.0-only
"""Rounds go on until the gains are known; hosts end with a bench; what workloads ask of hosts."""

import itertools
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from stand_ins import Capture, Patch, program

from pagemint.base.errors import Failure
from pagemint.bench import rounds
from pagemint.bench.hosts import Hosts
from pagemint.bench.left_out import LeftOut
from pagemint.bench.link import Program
from pagemint.bench.process import Host
from pagemint.bench.rounds import Budget, _Samples
from pagemint.bench.workload import Settings, Task, Timed, Variant, Workload
from pagemint.bench.workloads import known
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


def test_a_bench_goes_on_while_a_gain_is_unclear_and_renews_its_hosts(monkeypatch: Patch) -> None:
    clock, ran = itertools.count(100), Counter[Host]()
    monkeypatch.setattr(rounds, "time", Mock(monotonic=lambda: next(clock)))

    def run(host: Host) -> Timed:
        ran[host] += 1
        return Timed(round(_noisy(ran.total())))

    tasks = [Task(Case("some", 4096, 1), Variant(tree), run) for tree in "ab"]
    workload = Workload("some", Mock(), Mock(), lambda asked: tasks, rounds=4)
    hosts = (Mock() for _ in itertools.count())
    rounds.measure(hosts, workload, Settings(1, against="a"), Budget(6, 5), Mock(), LeftOut())
    # Ten rounds of both tasks, and one of each host that does not count.
    assert list(ran.values()) == [10, 10, 6]


def test_intervals_are_computed_less_often_the_more_rounds_there_are(monkeypatch: Patch) -> None:
    clock, judged, done = itertools.count(), Mock(return_value=False), Mock()
    monkeypatch.setattr(rounds, "time", Mock(monotonic=lambda: next(clock)))
    monkeypatch.setattr(_Samples, "is_known", judged)
    tasks = [Task(Case("some", 4096, 1), Variant(tree), lambda host: Timed(1)) for tree in "ab"]
    workload = Workload("some", Mock(), Mock(), lambda asked: tasks)
    hosts = iter([Mock()])
    rounds.measure(hosts, workload, Settings(1, against="a"), Budget(6, 1000), done, LeftOut())
    assert done.call_count > 1000
    assert 40 < judged.call_count < 60


@pytest.mark.parametrize(
    ("name", "number", "command", "arguments", "timed"),
    [
        ("fsdax", 0, "init", {"order": 0, "altmap": 0}, Timed(1)),
        ("devdax", 0, "init", {"order": 9, "altmap": 1}, Timed(1)),
        ("hotplug", 0, "hotplug", {"block": 1 << 15}, Timed(6, 4)),
        ("dax-folio", 3, "dax_folio", {"folios": 8, "times": 16, "cold": 0}, Timed(8)),
        ("folio", 0, "evict", {"pages": 2 * 8192}, Timed(1)),
    ],
)
def test_a_workload_asks_for_its_work_and_adds_up_the_times(
    name: str, number: int, command: str, arguments: dict[str, object], timed: Timed
) -> None:
    host, variants = Mock(), (Variant("patched"),)
    host.ask.return_value = {"ns": "1", "init": "2", "walk": "4", "undo": "8"}
    tasks = known()[name].tasks(Settings(1 << 30, modal=variants, plain=variants))
    assert list(tasks)[number].run(host) == timed
    asked = {call.args[0]: call.kwargs for call in host.ask.call_args_list}
    assert asked[command].items() >= arguments.items()
    assert known()[name].rounds == (2 if name == "folio" else 0)


@pytest.mark.parametrize("huge", [8, 9])
def test_a_host_that_loops_is_killed_after_an_error(
    tmp_path: Path, capsys: Capture, huge: int
) -> None:
    answers = f"read setup\necho huge={huge}\nread patch\necho\nexec sleep 600"
    program(tmp_path / "host", answers)
    workload = Workload(
        name="loops",
        memory=lambda asked: 10,
        setup=lambda host, asked: int(host.ask("map")["huge"]),
        tasks=lambda asked: (),
    )
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Hosts([Program(tmp_path, {})]) as hosts:
        next(hosts.of(workload, Settings(1)))
        raise KeyboardInterrupt
    assert time.monotonic() - begun < 60
    assert ("few huge pages" in capsys.readouterr().err) == (huge < 9)


def test_a_host_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    (tmp_path / "host").write_text("")
    with pytest.raises(Failure, match=r"cannot start the native host .*: Permission denied"):
        Host(Program(tmp_path, {}))
