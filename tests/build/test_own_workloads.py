# SPDX-License-Identifier: GPL-2.0-only
"""Workloads in a user's C file: the examples run; a wrong file is refused in one line."""

import json
import re
from pathlib import Path

import pytest
from stand_ins import Ended, pagemint, program

from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.bench import own_workloads
from pagemint.bench.definitions import definitions
from pagemint.bench.kernel_half import KernelHalf
from pagemint.bench.link import Program
from pagemint.trees import patches, sources

_DOCS = (Path(__file__).parents[2] / "docs/compare.md").read_text()
(_EXAMPLE,) = re.findall("```c\n(.*?)```", _DOCS, re.DOTALL)


pytestmark = pytest.mark.usefixtures("in_user_cache")


def _bench(*argv: str | Path) -> Ended:
    return pagemint("bench", "--runs", "1", "--no-report", *argv)


def _refusal(*argv: str | Path) -> str:
    ended = _bench(*argv)
    assert (ended.returncode, ended.stdout) == (1, ""), ended.stderr
    return ended.stderr.splitlines()[-1]


def test_all_examples_are_timed(tmp_path: Path) -> None:
    own = tmp_path / "own.c"
    own.write_text(_EXAMPLE)
    examples = sorted((files.BENCH / "examples").glob("*.c"))
    assert [file.stem for file in examples] == ["clear", "compound", "copy"]
    assert all(f"| `{file.name}` |" in _DOCS for file in examples)
    chosen = ",".join(map(str, [*examples, own]))
    ended = _bench("--workload", chosen, "--json", tmp_path / "a.json")
    assert ended.returncode == 0, ended.stderr
    rows = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert {(row["case"]["workload"], row["case"]["operation"]) for row in rows} == {
        ("clear_2m", "2 MiB"),
        ("compound_2m", "32 KiB"),
        ("copy_pages", "2 MiB"),
        ("copy_whole", "2 MiB"),
        ("clear_one", "4 KiB"),
    }
    assert [row["tree"] for row in rows[:3]] == ["base", "base2", "patched"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return *(", "return !*(", "check() of clear_one found a wrong result with the "),
        ("clear_page(", "clear_page(,", "own.c does not compile: "),
        (
            "*(unsigned long *)pfn_to_kaddr(pfn) == 0",
            "memchr_inv(pfn_to_kaddr(pfn), 0, 9)",
            "own.c needs memchr_inv, which lib/string.o of Linux ",
        ),
    ],
)
def test_wrong_code_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in _EXAMPLE
    (tmp_path / "own.c").write_text(_EXAMPLE.replace(old, new))
    assert message in _refusal("--workload", tmp_path / "own.c")


def test_a_workload_without_memory_is_refused(tmp_path: Path) -> None:
    program(tmp_path / "host", "read line\necho pages=0 times=1 moved=0")
    file = tmp_path / "own.c"
    file.write_text(_EXAMPLE)
    with pytest.raises(Failure, match=r"own.c: clear_one has .pages = 0 and .times = 1; both have"):
        own_workloads.describe(Program(tmp_path, {}), KernelHalf([file]), ["base"])


def test_a_file_that_no_tree_can_run_is_refused(tmp_path: Path) -> None:
    program(tmp_path / "host", "read line")
    file = tmp_path / "own.c"
    file.write_text(_EXAMPLE)
    lacks = {("base", "own"): "it has no new_name", ("a", "own"): "it has no old_name"}
    with pytest.raises(Failure, match=r"no tree can run own.c; a: it has no old_name"):
        own_workloads.describe(Program(tmp_path, lacks), KernelHalf([file]), ["base", "a"])


def test_a_tree_that_lacks_the_code_is_left_out(tmp_path: Path) -> None:
    text = _EXAMPLE.replace("clear_page(pfn_to_kaddr(pfn + i));", 'memmap_init_mode_set("slow");')
    declaration = "int memmap_init_mode_set(const char *name);\n"
    (tmp_path / "own.c").write_text(text.replace("static void", f"{declaration}static void", 1))
    ended = _bench("--workload", tmp_path / "own.c")
    assert ended.returncode == 1
    left_out = "pagemint: clear_one is left out for base: it has no memmap_init_mode_set"
    assert left_out in ended.stderr
    assert "there is nothing to time" in ended.stderr.splitlines()[-1]


def test_an_unusable_file_is_refused(tmp_path: Path) -> None:
    for name, text, message in (
        ("nown.c", None, "cannot read "),
        ("empty.c", "", "has no NATIVE_WORKLOAD(); see docs/compare.md"),
        ("device.c", _EXAMPLE, "the name device.c is taken; rename the file"),
        ("own.c", _EXAMPLE.replace("clear_one", "fsdax"), "two workloads named 'fsdax'"),
    ):
        if text is not None:
            (tmp_path / name).write_text(text)
        assert message in _refusal("--workload", tmp_path / name)


def test_the_object_that_defines_a_symbol_is_found() -> None:
    objects = {
        "folio_copy": "mm/util.o",
        "prep_compound_page": "mm/page_alloc.o",
        "memset": "arch/x86/lib/memset_64.o",
        "max_pfn": "mm/memblock.o",
        "page_alloc_shuffle_key": "mm/shuffle.o",
        "__SCT__cond_resched": "kernel/sched/core.o",
        # A function calls it in its first statement, in an earlier file.
        "hugetlb_early_cma": "mm/hugetlb_cma.o",
        # Its initialiser has several lines.
        "migrate_reason_names": "mm/debug.o",
    }
    tree = sources.get(patches.lines()[-1]).tree
    assert definitions(tree, [*objects, "no_such_symbol"]) == objects
