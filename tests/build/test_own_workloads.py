# SPDX-License-Identifier: GPL-2.0-only
"""Workloads in a C file of the user's: the examples run; a wrong file ends in one line."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from stand_ins import pagemint, program

from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.bench import own_workloads
from pagemint.bench.definitions import definition
from pagemint.bench.kernel_half import KernelHalf
from pagemint.bench.link import Program
from pagemint.trees import patches, sources

_DOCS = (Path(__file__).parents[2] / "docs/compare.md").read_text()
(_EXAMPLE,) = re.findall("```c\n(.*?)```", _DOCS, re.DOTALL)


def _bench(home: Path, *argv: str | Path) -> subprocess.CompletedProcess[str]:
    return pagemint("bench", "--runs", "1", "--no-report", *argv, XDG_CACHE_HOME=str(home.parent))


def _refusal(home: Path, *argv: str | Path) -> str:
    ended = _bench(home, *argv)
    assert (ended.returncode, ended.stdout) == (1, ""), ended.stderr
    return ended.stderr.splitlines()[-1]


def test_the_examples_and_that_of_the_documentation_are_timed(
    user_cache: Path, tmp_path: Path
) -> None:
    own = tmp_path / "one.c"
    own.write_text(_EXAMPLE)
    examples = sorted((files.BENCH / "examples").glob("*.c"))
    assert [one.stem for one in examples] == ["clear", "compound", "copy"]
    assert all(f"| `{one.name}` |" in _DOCS for one in examples)
    chosen = ",".join(map(str, [*examples, own]))
    ended = _bench(user_cache, "--workload", chosen, "--json", tmp_path / "a.json")
    assert ended.returncode == 0, ended.stderr
    rows = json.loads((tmp_path / "a.json").read_text())["rows"]
    found = {(row["case"]["workload"], row["case"]["operation"]) for row in rows}
    assert found == {
        ("clear_2m", "2 MiB"),
        ("clear_1g", "1 GiB"),
        ("compound_2m", "32 KiB"),
        ("copy_pages", "2 MiB"),
        ("copy_whole", "2 MiB"),
        ("clear_one", "4 KiB"),
    }
    assert [row["tree"] for row in rows[:3]] == ["base", "base2", "patched"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"return *(": "return !*("}, "check() of clear_one found a wrong result with the "),
        ({"clear_page(": "clear_page(,"}, "one.c does not compile: "),
        (
            {"*(unsigned long *)pfn_to_kaddr(pfn) == 0": "memchr_inv(pfn_to_kaddr(pfn), 0, 9)"},
            "one.c needs memchr_inv, which lib/string.o of Linux ",
        ),
    ],
)
def test_a_wrong_file_is_refused(
    user_cache: Path, tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    text = _EXAMPLE
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "one.c").write_text(text)
    assert said in _refusal(user_cache, "--workload", tmp_path / "one.c")


def test_a_workload_without_memory_is_refused(tmp_path: Path) -> None:
    host = program(tmp_path / "host", "read line\necho pages=0 times=1 moved=0")
    file = tmp_path / "one.c"
    file.write_text(_EXAMPLE)
    with pytest.raises(Failure, match=r"one.c: clear_one has .pages = 0 and .times = 1; both have"):
        own_workloads.describe(Program(host, host, host, {}), KernelHalf([file]), ["base"])


def test_a_file_that_no_tree_can_run_is_refused(tmp_path: Path) -> None:
    host, file = program(tmp_path / "host", "read line"), tmp_path / "one.c"
    file.write_text(_EXAMPLE)
    lacks = {("base", "one"): "it has no new_name", ("a", "one"): "it has no old_name"}
    with pytest.raises(Failure, match=r"no tree can run one.c; a: it has no old_name"):
        own_workloads.describe(Program(host, host, host, lacks), KernelHalf([file]), ["base", "a"])


def test_a_tree_that_lacks_the_code_is_left_out(user_cache: Path, tmp_path: Path) -> None:
    text = _EXAMPLE.replace("clear_page(pfn_to_kaddr(pfn + i));", 'memmap_init_mode_set("slow");')
    declaration = "int memmap_init_mode_set(const char *name);\n"
    (tmp_path / "one.c").write_text(text.replace("static void", f"{declaration}static void", 1))
    ended = _bench(user_cache, "--workload", tmp_path / "one.c")
    assert ended.returncode == 1
    left_out = "pagemint: clear_one is left out for base: it has no memmap_init_mode_set"
    assert left_out in ended.stderr
    assert "there is nothing to time" in ended.stderr.splitlines()[-1]


def test_a_file_that_cannot_be_is_refused_at_once(user_cache: Path, tmp_path: Path) -> None:
    for name, text, said in (
        ("none.c", None, "cannot read "),
        ("empty.c", "", "has no NATIVE_WORKLOAD(); see docs/compare.md"),
        ("device.c", _EXAMPLE, "the name device.c is taken; rename the file"),
        ("one.c", _EXAMPLE.replace("clear_one", "fsdax"), "two workloads named 'fsdax'"),
    ):
        if text is not None:
            (tmp_path / name).write_text(text)
        assert said in _refusal(user_cache, "--workload", tmp_path / name)


@pytest.mark.parametrize(
    ("symbol", "where"),
    [
        ("folio_copy", "mm/util.o"),
        ("prep_compound_page", "mm/page_alloc.o"),
        ("memset", "arch/x86/lib/memset_64.o"),
        ("max_pfn", "mm/memblock.o"),
        ("page_alloc_shuffle_key", "mm/shuffle.o"),
        ("__SCT__cond_resched", "kernel/sched/core.o"),
        ("no_such_symbol", None),
    ],
)
def test_the_object_that_defines_a_symbol_is_found(
    user_cache: Path, monkeypatch: pytest.MonkeyPatch, symbol: str, where: str | None
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(user_cache.parent))
    assert definition(sources.get(patches.lines()[-1]).tree, symbol) == where
