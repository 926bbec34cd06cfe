# SPDX-License-Identifier: GPL-2.0-only
"""An expected ratio: its text, its interval, and the exit status of a bench that judges it."""

import os
import random
import subprocess
from pathlib import Path

import fake_tree
import pytest
from stand_ins import ARGV, Ended, pagemint

from pagemint.base import disk
from pagemint.base.errors import Failure, MachineFailure, TreeFailure
from pagemint.results import expect
from pagemint.results.expect import PLACEMENTS, Expectation
from pagemint.results.rows import Case, Row
from pagemint.trees import trees


def test_an_expectation_is_read() -> None:
    assert expect.parse("fsdax: v5/base >= 1.5") == Expectation(
        "fsdax", (), "v5", "base", False, 1.5
    )
    assert expect.parse(" hotplug, 2 GiB blocks :new-1/old.2<1 ") == Expectation(
        "hotplug", ("2 GiB blocks",), "new-1", "old.2", True, 1.0
    )


@pytest.mark.parametrize(
    "text",
    ["", "fsdax", "fsdax: v5 >= 1", "fsdax v5/base > 1", "a: b/c = 1", "a: b/c > -1", "a: b/c > 0"],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(Failure, match="cannot be read; write, for example, 'fsdax: v5/base"):
        expect.parse(text)


def test_a_case_is_found_by_words_of_its_title() -> None:
    small, large = (Case("hotplug", 1, 1, block_bytes=128 << at) for at in (20, 24))
    expected = expect.parse("hotplug, 2 GiB blocks: a/base > 1")
    assert expected.case([small, large]) == large
    for text, many in (("hotplug: a/base > 1", "several"), ("hotplug, 4 GiB: a/base > 1", "no")):
        with pytest.raises(Failure, match=f"--expect names {many} cases of hotplug; add words of"):
            expect.parse(text).case([small, large])


def _rows(ratio: float, *, placement: float, noise: float, seed: int) -> tuple[Row, Row]:
    """Return rows whose ratio differs from placement to placement, and from run to run."""
    chance = random.Random(seed)
    case = Case("fsdax", 1, 1)
    base, mine = [], []
    for _ in range(PLACEMENTS):
        own = ratio * chance.gauss(1, placement)
        for _ in range(6):
            busy = chance.gauss(1, noise)
            base.append(busy * 10)
            mine.append(busy * 10 / own * chance.gauss(1, noise))
    return Row(case, "base", "", base), Row(case, "new", "", mine)


def test_the_interval_has_the_true_ratio_19_times_of_20() -> None:
    ratios = [
        expect.ratio(*_rows(0.8, placement=0.04, noise=0.05, seed=seed)) for seed in range(400)
    ]
    inside = sum(ratio.low <= 0.8 <= ratio.high for ratio in ratios) / len(ratios)
    assert 0.92 < inside < 0.98


@pytest.mark.parametrize(
    ("ratio", "sign", "bound", "verdict"),
    [
        (2.0, ">=", 1.5, True),
        (2.0, ">=", 2.5, False),
        (2.0, ">=", 2.0, None),
        (2.0, "<=", 2.5, True),
        (2.0, "<", 1.5, False),
        (2.0, "<", 2.0, None),
    ],
)
def test_a_verdict_needs_the_whole_interval(
    ratio: float, sign: str, bound: float, verdict: bool | None
) -> None:
    expected = expect.parse(f"fsdax: new/base {sign} {bound}")
    measured = expect.ratio(*_rows(ratio, placement=0.02, noise=0.02, seed=1))
    assert expected.holds(measured) is verdict
    word = {True: "yes", False: "no", None: "undecided"}[verdict]
    assert expect.sentence(expected, Case("fsdax", 1, 1), measured).endswith(f" {bound:g}: {word}")


# The command.


def _bench(*argv: str) -> Ended:
    return pagemint("bench", "--size", "4GB", *argv)


@pytest.mark.usefixtures("in_user_cache")
def test_the_exit_status_is_the_verdict() -> None:
    for bound, status, word in (("0.01", 0, "yes"), ("1000", 1, "no")):
        ended = _bench("--expect", f"fsdax: patched/base >= {bound}")
        assert ended.returncode == status, ended.stderr
        assert ended.stdout.startswith("fsdax: patched/base is ")
        assert ended.stdout.endswith(f"at least {bound}: {word}\n")


@pytest.mark.usefixtures("in_user_cache")
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--expect", "fsdax"], "--expect 'fsdax' cannot be read"),
        (["--expect", "none: patched/base > 1"], "there is no workload 'none'"),
        (["--expect", "fsdax: v5/base > 1"], "there is no tree v5; choose from base, patched"),
        (["--expect", "hotplug: patched/base > 1"], "--expect names several cases of hotplug"),
        (["--expect", "fsdax: a/base > 1", "--tree", "a=nowhere"], "there is no nowhere"),
        (["--expect", ""], "--expect '' cannot be read"),
        (["--expect=fsdax: base/base > 1"], "compares base with itself"),
        (["--expect", "fsdax: patched/base > 1", "--tables"], "does not go with --tables"),
        (["--expect", "fsdax: patched/base > 1", "--bogus"], "unrecognized arguments: --bogus"),
    ],
)
def test_a_wrong_argument_ends_a_bisection(argv: list[str], message: str) -> None:
    ended = _bench(*argv)
    assert (ended.returncode, ended.stdout) == (128, "")
    assert message in ended.stderr.splitlines()[-1]


@pytest.mark.usefixtures("in_user_cache")
def test_a_reader_that_has_gone_ends_a_bisection() -> None:
    argv = [*ARGV, "bench", "--size", "4GB", "--expect", "fsdax: patched/base > 0.01"]
    read, write = os.pipe()
    os.close(read)
    assert subprocess.call(argv, stdout=write, stderr=subprocess.DEVNULL) == 128
    os.close(write)


@pytest.mark.usefixtures("in_user_cache")
def test_a_tree_that_does_not_build_is_skipped_by_a_bisection(tmp_path: Path) -> None:
    broken = tmp_path / "broken.patch"
    broken.write_text("--- a/mm/none.c\n+++ b/mm/none.c\n@@ -1 +1 @@\n-old\n+new\n")
    argv = ["--tree", f"new={broken}", "--expect", "fsdax: new/base > 1"]
    ended = _bench(*argv)
    assert (ended.returncode, ended.stdout) == (125, "")
    assert f"patch 1 of {broken} (broken.patch) does not apply to Linux 7.3" in ended.stderr


def test_a_full_disk_is_not_the_fault_of_a_tree(tmp_path: Path) -> None:
    with pytest.raises(MachineFailure, match="GB free"), trees.blamed("new"):
        disk.need_space(tmp_path, 1 << 60, "a tree")
    with pytest.raises(TreeFailure), trees.blamed("new"):
        raise Failure("it does not compile", "mend it")


def test_a_base_that_cannot_be_built_ends_a_bisection(tmp_path: Path) -> None:
    tree = fake_tree.make(tmp_path / "linux")
    argv = ["--ksrc", str(tree), "--tree", "new=series:device", "--expect", "fsdax: new/base > 1"]
    ended = _bench(*argv)
    assert (ended.returncode, ended.stdout) == (128, "")
