# SPDX-License-Identifier: GPL-2.0-only
"""A result is current as long as the code that it timed or counted is the same."""

import re
import shutil
from pathlib import Path

import fake_result
import pytest
from stand_ins import Patch

from pagemint.base import files
from pagemint.bench import timed
from pagemint.results.rows import Result
from pagemint.send import kept
from pagemint.trees import edited

_LINE = "7.3"
_PGMAP = "kernel/series/7.3/fixes/0001-*"
_THREADS = "kernel/series/7.3/threads/0003-*"
_TEMPLATE = "kernel/series/7.3/device/0002-*"
_SHARING = "kernel/series/7.3/shared/0001-*"
_DEVICES = {"fsdax", "devdax", "devdax-1g", "private"}
_MEMMAPS = {*_DEVICES, "hotplug", "boot", "online", "vmemmap", "populate"}
_SHARED = {*_DEVICES, "vmemmap", "populate"}
_DAX = {"dax-folio", "device-folio"}
_ALL = {*_MEMMAPS, *_DAX, "folio"}


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: Patch) -> Path:
    """A directory with the kernel part and the C of the bench, which a test may change."""
    for name in ("KERNEL", "BENCH"):
        shutil.copytree(getattr(files, name), tmp_path / name.lower())
        monkeypatch.setattr(files, name, tmp_path / name.lower())
    return tmp_path


def _result() -> Result:
    return fake_result.result(
        series=edited.digest(_LINE), code=timed.digests(_LINE), workloads=tuple(sorted(_ALL))
    )


def _changed(result: Result) -> set[str]:
    return set(kept.changed(result))


def _only(folder: Path, pattern: str) -> Path:
    (file,) = folder.glob(pattern)
    return file


def _change_edit(diff: Path, path: str) -> None:
    """Change the first statement that an edit of a file adds."""
    before, mark, edit = diff.read_text().partition(f"+++ b/{path}\n")
    after, count = re.subn(r"^(\+\s*\w.*);$", r"\1 + 1;", edit, count=1, flags=re.MULTILINE)
    assert mark and count
    diff.write_text(before + mark + after)


@pytest.mark.parametrize(
    ("patch", "path", "stale"),
    [
        ("copies/0002", "mm/util.c", {"folio"}),
        ("fixes/0003", "fs/dax.c", _DAX),
        ("online/0003", "mm/mm_init.c", _MEMMAPS),
        ("threads/0001", "kernel/padata.c", _MEMMAPS),
        ("online/0001", "mm/memory_hotplug.c", {"hotplug", "boot", "online"}),
        ("fixes/0011", "drivers/hv/hv_balloon.c", set()),
        # Any code can include a header of the kernel.
        ("fixes/0002", "include/linux/mmzone.h", _ALL),
    ],
)
def test_a_change_of_code_concerns_the_workloads_that_link_it(
    copies: Path, patch: str, path: str, stale: set[str]
) -> None:
    result = _result()
    assert _changed(result) == set() and kept.counts_are_current(result)
    _change_edit(_only(copies, f"kernel/series/{_LINE}/{patch}-*"), path)
    assert _changed(result) == stale
    assert not kept.counts_are_current(result)


@pytest.mark.parametrize(
    ("path", "before", "after", "stale"),
    [
        (_THREADS, "_MAX\t\t4", "_MAX\t\t5", _SHARED),
        (_SHARING, "+static bool ", "+static int ", {"populate"}),
        (_TEMPLATE, "_RUN_IMAGES\t2U", "_RUN_IMAGES\t3U", _MEMMAPS),
        (_PGMAP, "b/mm/mm_init.c\n@@", "b/mm/util.c\n@@", {*_MEMMAPS, "folio"}),
        ("bench/workloads/vmemmap.c", "_now();", "_now() + 1;", {"vmemmap", "populate"}),
        # A comment or a test concerns none.
        (_THREADS, "A CPU can have", "/ A CPU has", set()),
        (_THREADS, "+\treturn ", "+\t\treturn  ", set()),
        (_THREADS, '+\t.name = "', '+\t.title = "', set()),
        (_THREADS, "Checks that a", "Sees whether a", set()),
        (_PGMAP, "not a tail yet", "no tail", set()),
        (_PGMAP, "@@ -9", "@@ -8", set()),
        (_PGMAP, "Subject: [PATCH 01/12] mm", "Subject: [PATCH 01/12] fs", set()),
        ("kernel/series/6.12/copies/0002-*", ";", " + 1;", set()),
        ("kernel/series/topics", "# ", "# Note: ", set()),
        ("bench/workloads/vmemmap.c", "as the page allocator", "like the page allocator", set()),
        ("bench/host/stubs.c", ";", ";;", set()),
    ],
)
def test_a_change_of_a_file_concerns_the_workloads_that_link_it(
    copies: Path, path: str, before: str, after: str, stale: set[str]
) -> None:
    result = _result()
    file = _only(copies, path)
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
    assert _changed(result) == stale
    assert stale or kept.counts_are_current(result)


def test_a_workload_without_a_digest_or_that_is_gone_has_changed() -> None:
    result = fake_result.result(workloads=("fsdax", "later"))
    assert kept.changed(result) == ["fsdax", "later"]
    assert kept.changed(fake_result.result(workloads=("gone",), code={"gone": ""})) == ["gone"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a = 1; /* one */\n", ["a = 1;"]),
        (" * the end of a comment */\na = 1;\n", ["a = 1;"]),
        (" * its middle\n *\n * and its end\n */\na = 1;\n", ["a = 1;"]),
        (" * a part\n *\n *\tof it\n", []),
        ("\t*p = 1;\n\t/* one */\n", ["*p = 1;"]),
        ("\t*p = 1;\n", ["*p = 1;"]),
        ("\t*p = 1; /* one */\n", ["*p = 1;"]),
        ('f("/*", "*/", "//");\n', ['f("/*", "*/", "//");']),
        ("c = '\"'; /* \" */ d = 1;\n", ["c = '\"'; d = 1;"]),
        ("a /*\n*/ = 1;\n", ["a", "= 1;"]),
    ],
)
def test_comments_are_not_code(text: str, code: list[str]) -> None:
    assert edited.lines_of_code("mm/a.c", text) == code


def test_an_option_of_a_test_is_not_code() -> None:
    text = (
        "config A\n\tbool\n\nconfig A_KUNIT_TEST\n\tbool\n\n\thelp\n\t  One.\n\nconfig B\n\tbool\n"
    )
    assert edited.lines_of_code("mm/Kconfig", text) == ["config A", "bool", "config B", "bool"]
    text = "obj-y += a.o\nobj-$(CONFIG_A_KUNIT_TEST) += tests/a_kunit.o\n"
    assert edited.lines_of_code("mm/Makefile", text) == ["obj-y += a.o"]
