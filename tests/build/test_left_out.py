# SPDX-License-Identifier: GPL-2.0-only
"""Trees whose code fails: each is left out of its workload in one line, and the others go on."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import fake_result
import fake_tree
import pytest
from fake_result import screen
from stand_ins import Capture, Patch, diff_of, program

from pagemint import cli
from pagemint.base.errors import Failure, TreeFailure
from pagemint.bench import definitions, join, link, process, variants
from pagemint.bench.hosts import Hosts
from pagemint.bench.kernel_half import KernelHalf
from pagemint.bench.left_out import LeftOut
from pagemint.bench.link import Program
from pagemint.bench.rounds import Budget, measure
from pagemint.bench.workload import Settings, Task, Timed, Variant, Workload
from pagemint.commands import bench_plan
from pagemint.results import reader
from pagemint.results.rows import Case, Row
from pagemint.trees import objects, patches, sources, trees

# A host in the shell; FAULT is what happens when the code of the tree BAD runs.
_HOST = """
while read -r command arguments; do
	case "$arguments" in
	*tree=BAD) FAULT ;;
	esac
	echo ns=4096
done
"""


def _timed(
    tmp_path: Path,
    fault: str,
    *names: str,
    left_out: LeftOut,
    bad: str = "new",
    against: str = "base",
) -> list[Row]:
    """Time trees, of which one fails."""

    def run(name: str, host: process.Host) -> Timed:
        return Timed(int(host.ask("run", tree=name)["ns"]))

    case, asked = Case("work", 4096, 1), Settings(1, against=against)
    workload = Workload(
        name="work",
        memory=lambda asked: 4096,
        setup=lambda host, asked: int(host.ask("map")["ns"]),
        tasks=lambda asked: [Task(case, Variant(name), partial(run, name)) for name in names],
    )
    program(tmp_path / "host", _HOST.replace("BAD", bad).replace("FAULT", fault))
    with Hosts([Program(tmp_path, {})]) as hosts:
        hosted = hosts.of(workload, asked)
        patience = Budget(least=2, seconds=0)
        return measure(hosted, workload, asked, patience, lambda done: None, left_out)[0]


_FAULTS = {
    "echo error stand-in: key k has no stand-in; exit 3": "key k has no stand-in",
    "echo error fault: Segmentation fault at 0x1; exit 3": "Segmentation fault at 0x1",
    "kill -FPE $$": "it ended by SIGFPE",
    "exit 9": "it ended with status 9",
    "echo error refused: the command run fails; continue": "the command run fails",
    "exec sleep 600": "it did not end within 1 s",
}


@pytest.mark.parametrize(("fault", "why"), _FAULTS.items(), ids=_FAULTS.values())
def test_a_tree_that_fails_is_left_out_in_one_line(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture, fault: str, why: str
) -> None:
    monkeypatch.setattr(process, "PATIENCE", 0.9)
    left_out = LeftOut()
    for _ in range(2):  # the second time it does not take part
        rows = _timed(tmp_path, fault, "base", "new", "other", left_out=left_out)
        assert [(row.tree, len(row.runs_ms)) for row in rows] == [("base", 2), ("other", 2)]
    assert capsys.readouterr().err == f"pagemint: work is left out for new: {why}\n"
    assert left_out.of("new") == {"work": why}
    assert left_out.of("other") == {}


def test_a_workload_with_nothing_to_compare_is_left_out(tmp_path: Path, capsys: Capture) -> None:
    for against, names in (("base", ("base", "base2", "new")), ("new", ("base", "new", "other"))):
        left_out = LeftOut()
        for _ in range(2):
            assert _timed(tmp_path, "exit 9", *names, left_out=left_out, against=against) == []
        assert capsys.readouterr().err.splitlines() == [
            "pagemint: work is left out for new: it ended with status 9",
            "pagemint: work is left out: there is nothing to compare",
        ]


@pytest.mark.parametrize(
    ("fault", "why"),
    [("echo error memory: out of memory; exit 3", "free memory"), ("kill -KILL $$", "was killed")],
)
def test_a_machine_without_memory_is_not_the_fault_of_a_tree(
    tmp_path: Path, fault: str, why: str
) -> None:
    with pytest.raises(Failure, match=why) as failure:
        _timed(tmp_path, fault, "base", "new", "other", left_out=LeftOut())
    assert not isinstance(failure.value, TreeFailure)


@pytest.mark.parametrize("name", ["base", "base2", "patched"])
def test_a_failure_of_the_labs_own_trees_ends_the_bench(tmp_path: Path, name: str) -> None:
    with pytest.raises(Failure, match=f"failed at 'run tree={name}': it ended with status 9"):
        names = ("base", "base2", "patched", "other")
        _timed(tmp_path, "exit 9", *names, left_out=LeftOut(), bad=name)


def _linked(
    monkeypatch: Patch,
    failing: Callable[[Sequence[str]], str],
    needed: frozenset[str] = frozenset({"base"}),
) -> tuple[list[str], LeftOut]:
    """Return the trees of a host, and those left out; `failing` chooses one of those that link."""

    def link_placed(made: Sequence[trees.Tree], *rest: object) -> list[str]:
        if bad := failing([tree.name for tree in made]):
            raise TreeFailure("make failed: a.c:1:1: error: x", "see the log", bad)
        return ["program"]

    monkeypatch.setattr(link, "link_placed", link_placed)
    monkeypatch.setattr(variants, "choose", lambda *rest, **more: None)
    base = trees.Tree("base", Path(), "key", "7.3", "7.3.4")
    made = [base, *(replace(base, name=name) for name in ("broken", "good"))]
    left_out = LeftOut()
    left, _, _ = bench_plan._linked(
        made, needed, left_out, KernelHalf(), 1, objects.DEBIAN, all_modes=False
    )
    return [tree.name for tree in left], left_out


def test_a_tree_that_does_not_build_is_left_out_of_everything(
    monkeypatch: Patch, capsys: Capture
) -> None:
    broken = lambda names: "broken" if "broken" in names else ""  # noqa: E731
    left, left_out = _linked(monkeypatch, broken)
    assert left == ["base", "good"]
    assert left_out.has("fsdax", "broken") and not left_out.has("fsdax", "good")
    assert capsys.readouterr().err == (
        "pagemint: every workload is left out for broken: make failed: a.c:1:1: error: x\n"
    )
    for failing, needed in (
        (broken, frozenset({"base", "broken"})),  # --against or --expect names it
        (lambda names: names[-1] if len(names) > 1 else "", frozenset({"base"})),
    ):
        with pytest.raises(TreeFailure, match="make failed"):
            _linked(monkeypatch, failing, needed)


def test_code_that_a_tree_needs_has_to_compile(tmp_path: Path, monkeypatch: Patch) -> None:
    base = trees.Tree("base", tmp_path, "key", "7.3", "7.3.4")
    named = [
        join.Named(name, "t", replace(base, name=name), tmp_path, {}) for name in ("base", "a")
    ]
    needs = iter([set(), {"f"}, set(), set(), {"f"}, set()])
    monkeypatch.setattr(definitions, "_of", lambda files, defined: next(needs))
    monkeypatch.setattr(definitions, "definitions", lambda tree, wanted: {"f": "mm/f.o"})

    def build(message: str) -> None:
        with monkeypatch.context() as failing:
            failing.setattr(objects, "build", Mock(side_effect=Failure(message, "see the log")))
            definitions.with_definitions(named[1], named[0], objects.DEBIAN, ())

    with pytest.raises(TreeFailure, match=r"mm/f\.c:1:1: ") as failure:
        build("make failed: mm/f.c:1:1: error: x")
    assert failure.value.tree == "a"
    build("make failed: No rule to make target 'mm/f.o'")  # not in this configuration


def test_the_trees_left_out_are_in_the_result() -> None:
    body = fake_result.body(
        variants={"base": 57.5, "base2": 58.0, "a": 35.0, "b": 48.0},
        workloads=("fsdax",),
        trees=("a", "b"),
    )
    why = "x has no stand-in"
    body["trees"][1] |= {"identical": None, "difference": ""}
    body["trees"][1]["left_out"] = {"the memmap comparison": why, "boot": why, "folio": "y"}
    result = fake_result.read(body)
    shown = screen(result)
    assert f"Left out for b: the memmap comparison, boot: {why}." in shown
    assert "Left out for b: folio: y." in shown
    assert not [line for line in shown if "another version" in line]


# A real tree with a fault for each workload, which all show only when the code runs.

_DECLARATIONS = """
DECLARE_STATIC_KEY_FALSE(pagemint_no_key);
void pagemint_no_function(struct page *page);
void pagemint_first(struct page *page);
"""
_DEVICES = (
    "\tif (pgmap->type == MEMORY_DEVICE_FS_DAX && !pgmap->vmemmap_shift &&\n"
    "\t\tstatic_branch_unlikely(&pagemint_no_key))\n"
    "\t\treturn;\n"
    "\tif (pgmap->type == MEMORY_DEVICE_PRIVATE)\n"
    "\t\tpagemint_first(page);\n"
    "\tif (pgmap->type == MEMORY_DEVICE_GENERIC && pgmap->vmemmap_shift == 9)\n"
    "\t\tpagemint_no_function(page);\n"
    "\tif (pgmap->type == MEMORY_DEVICE_GENERIC && pgmap->vmemmap_shift == 18)\n"
    "\t\t*(volatile int *)24 = 1;\n"
)
_EDITS = {
    # By file: the function, the line in it before which the code is inserted, and the code.
    "mm/mm_init.c": (
        ("static void __ref __init_zone_device_page(", "", _DECLARATIONS),
        ("static void __ref __init_zone_device_page(", "\t/*\n", _DEVICES),
        (
            "static unsigned long __init deferred_init_pages(",
            "\tfor (; ",
            "\twhile (READ_ONCE(nid) == nid)\n\t\tcpu_relax();\n",
        ),
    ),
    "mm/util.c": (("void folio_copy(", "\tfor (", "\tBUG_ON(nr);\n"),),
}
_NEW = {
    # Code that the tree defines in files of its own is linked.
    "mm/pagemint_first.c": """// SPDX-License-Identifier: GPL-2.0-only
#include <linux/jump_label.h>
#include <linux/mm.h>
void pagemint_first(struct page *page);
DECLARE_STATIC_KEY_TRUE(pagemint_key);
void pagemint_no_function(struct page *page);
void pagemint_first(struct page *page)
{
	if (!static_branch_likely(&pagemint_key))
		pagemint_no_function(page);
}
""",
    "lib/pagemint_key.c": """// SPDX-License-Identifier: GPL-2.0-only
#include <linux/jump_label.h>
DEFINE_STATIC_KEY_TRUE(pagemint_key);
""",
}
_WHY = {
    "the memmap comparison": "the static key pagemint_no_key has no stand-in",
    "fsdax": "the static key pagemint_no_key has no stand-in",
    "devdax": "pagemint_no_function has no stand-in",
    "devdax-1g": "Segmentation fault at ",
    "boot": "it did not end within ",
    "folio": "BUG or WARN at ",
}


def _patch(tmp_path: Path) -> Path:
    """Return a patch with all faults."""
    tree = sources.get(fake_tree.LINE).tree
    diffs = [diff_of(path, "", new) for path, new in _NEW.items()]
    for path, edits in _EDITS.items():
        old = text = (tree / path).read_text()
        for function, line, code in edits:
            at = text.index(line, text.index(f"\n{function}") + 1)
            text = text[:at] + code + text[at:]
        diffs.append(diff_of(path, old, text))
    patch = tmp_path / "faulty.patch"
    patch.write_text("".join(diffs))
    return patch


def test_each_fault_of_a_real_tree_leaves_it_out_of_one_workload(
    in_user_cache: None, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setattr(process, "PATIENCE", 10)
    # The whole series, as other tests have built it.
    topics = ",".join(topic.name for topic in patches.topics())
    trees_ = ["--tree", f"faulty={_patch(tmp_path)}", "--tree", f"same=series:{topics}"]
    argv = ["bench", *trees_, "--size", "1GiB", "--runs", "1", "--no-report"]
    able = ["hotplug", "private"]
    file = tmp_path / "result.json"
    workloads = ["--workload", ",".join([*list(_WHY)[1:], *able]), "--json", str(file)]
    assert cli.main([*argv, *workloads]) == 0
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if " is left out" in line]
    assert len(lines) == len(_WHY)
    for workload, why in _WHY.items():
        assert f"pagemint: {workload} is left out for faulty: {why}" in "\n".join(lines)
    result = reader.read(str(file))
    timed = {(row.case.workload, row.tree) for row in result.rows}
    assert timed == {
        (workload, tree)
        for workload in [*list(_WHY)[1:], *able]
        for tree in ("base", "base2", "faulty", "same")
        if (tree != "base2" or workload != "folio") and (tree != "faulty" or workload in able)
    }
    faulty, same = result.trees
    assert (faulty.identical, same.identical) == (None, True)
    assert faulty.left_out.keys() == _WHY.keys() and not same.left_out
    assert "Left out for faulty: " in out


def test_a_tree_whose_code_fails_is_skipped_by_a_bisection(
    in_user_cache: None, tmp_path: Path, capsys: Capture
) -> None:
    argv = ["bench", "--tree", f"faulty={_patch(tmp_path)}", "--size", "256MiB"]
    assert cli.main([*argv, "--expect", "fsdax: faulty/base > 0.5"]) == bench_plan.UNDECIDED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == "pagemint: faulty cannot run fsdax; name another workload"
    assert cli.main([*argv, "--runs", "1", "--expect", "private: faulty/base > 0.01"]) == 0
