# SPDX-License-Identifier: GPL-2.0-only
"""Stock kernels: the choice of a kernel, and the memmap that the module for it leaves."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from guest_records import DEVICE, LONG, from_stock_kernel, passed
from stand_ins import Capture, Patch

from pagemint import cli
from pagemint.base.errors import Failure
from pagemint.base.run import run
from pagemint.guests.outside import binds
from pagemint.guests.outside.guest import Guest
from pagemint.guests.outside.lab import BIND_SCENARIOS, STOCK
from pagemint.trees import image, sources, stock, trees
from pagemint.trees.debian import apt, toolchain
from pagemint.trees.debian.apt import Package
from pagemint.words import STOCK_MODES

LINES = pytest.mark.parametrize("line", ["6.1", "6.12", "7.3"], ids=lambda line: f"linux-{line}")
FAULTS = 13
SCENARIOS = [part for scenario in BIND_SCENARIOS.values() for part in scenario.parts]


def package(name: str, version: str, *depends: str) -> Package:
    return Package(name, version, 1, "0" * 64, depends)


FOUND = [
    package("linux-headers-6.12.9-amd64", "6.12.9-1", "linux-headers-6.12.9-common", "gcc-12"),
    package("linux-headers-6.12.9-cloud-amd64", "6.12.9-1", "gcc-12"),
    package("linux-headers-6.12.9-common", "6.12.9-1"),
    package("linux-headers-6.12.10+deb13-amd64", "6.12.10-1", "linux-kbuild-6.12.10", "gcc-14"),
    package("linux-kbuild-6.12.10", "6.12.10-1"),
    package("linux-kbuild-6.12.10", "6.12.10-1~bpo12+1"),
    package("linux-image-6.12.10+deb13-amd64", "6.12.10-1", "linux-modules-6.12.10"),
    package("linux-modules-6.12.10", "6.12.10-1"),
    package("linux-image-6.12.9-amd64", "6.12.9-1"),
    package("linux-headers-6.12.11-amd64", "6.12.11-1", "gcc-12"),
    package("linux-headers-6.1.0-56-amd64", "6.1.192-2", "linux-compiler-gcc-12-x86"),
    package("linux-image-6.1.0-56-amd64", "6.1.192-2"),
]


def with_compilers(monkeypatch: Patch, *names: str) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name if name in names else None)


def test_the_newest_kernel_is_taken_that_the_compiler_is_for(monkeypatch: Patch) -> None:
    with_compilers(monkeypatch, "gcc-12", "gcc-14")
    assert stock.choose(FOUND, "6.12").version == "6.12.10-1"
    with_compilers(monkeypatch, "gcc-12")
    assert stock.choose(FOUND, "6.12").version == "6.12.9-1"
    assert stock.choose(FOUND, "6.1").version == "6.1.192-2"


def test_a_missing_compiler_is_named(monkeypatch: Patch) -> None:
    with_compilers(monkeypatch)
    with pytest.raises(Failure, match=r"6\.1 need gcc-12, which this machine lacks"):
        stock.choose(FOUND, "6.1")
    with pytest.raises(Failure, match=r"no stock kernel 5\.10"):
        stock.choose(FOUND, "5.10")
    assert stock._compiler(package("linux-headers-5.10", "5.10-1", "linux-kbuild-5.10")) == "gcc"


def test_without_its_compiler_a_kernel_of_a_known_release_is_taken(monkeypatch: Patch) -> None:
    with_compilers(monkeypatch)
    headers = stock.choose(FOUND, "6.12")
    assert headers.version == "6.12.10-1"
    assert toolchain.release_of(headers.name) == "trixie"
    assert toolchain.release_of("linux-headers-6.12.11-amd64") is None


def test_a_compiler_of_another_release_runs_in_its_own_root(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    root, kernel, work = (tmp_path / name for name in ("root", "kernel", "work"))
    headers = kernel / "usr/src/linux-headers-7.2-amd64"
    argv = toolchain.argv(root, kernel, headers, work, "module")
    assert argv[-4:] == ["-s", "-C", Path("/kernel/usr/src", headers.name), "M=/build/module"]
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    with pytest.raises(Failure, match="runs in bubblewrap, which is missing") as caught:
        toolchain.toolchain("trixie", "gcc-14")
    assert "(Debian: bubblewrap; " in caught.value.remedy


def test_an_image_among_the_modules_is_found_in_boot(tmp_path: Path) -> None:
    modules = tmp_path / "usr/lib/modules/7.2-amd64"
    modules.mkdir(parents=True)
    (modules / "vmlinuz").write_text("image")
    stock._move_image(tmp_path, "7.2-amd64")
    assert (tmp_path / "boot/vmlinuz-7.2-amd64").read_text() == "image"
    assert (tmp_path / "lib/modules/7.2-amd64/vmlinuz").exists()


def test_all_packages_of_one_version_are_taken() -> None:
    assert [(deb.name, deb.version) for deb in stock.closure(FOUND, FOUND[3])] == [
        ("linux-headers-6.12.10+deb13-amd64", "6.12.10-1"),
        ("linux-kbuild-6.12.10", "6.12.10-1"),
        ("linux-image-6.12.10+deb13-amd64", "6.12.10-1"),
        ("linux-modules-6.12.10", "6.12.10-1"),
    ]


def test_headers_find_what_they_need_where_they_lie(tmp_path: Path) -> None:
    headers = tmp_path / "linux-headers-7.2.9-amd64"
    headers.mkdir()
    (headers / "vmlinux").touch()
    (headers / "Makefile").write_text(
        f"KBUILD_OUTPUT=/usr/src/{headers.name}\ninclude /usr/src/common/Makefile\n"
    )
    common = tmp_path / "common/Makefile"
    common.parent.mkdir()
    common.write_text("where:\n\t@echo $(realpath $(KBUILD_OUTPUT))\n")
    stock._relocate(headers)
    assert not (headers / "vmlinux").exists()
    argv: list[str | Path] = ["make", "-s", "--no-print-directory", "-C", headers]
    assert run(argv, what="make") == f"{headers.resolve()}\n"


def test_the_first_alternatives_are_what_a_package_depends_on() -> None:
    text = "Package: a\nVersion: 1\nDepends: b (= 1), c | d, e:any\nSize: 1\nSHA256: 0\n"
    assert apt.parse_packages(text)[0].depends == ("b", "c", "e")


def counted(mode: str, **changes: int) -> dict[str, Any]:
    counts = {"pages": 2048, "compound": 1, "pages_filled": 0, "mismatches": 0, "calls": 1}
    return {"scenario": "some", "mode": mode, **counts, **changes}


@pytest.mark.parametrize(
    ("record", "status"),
    [
        (counted("module", pages_filled=2046), 0),
        (counted("module"), 1),
        (counted("module", pages_filled=2046, mismatches=1), 1),
        (counted("module", pages_filled=2046, calls=0), 1),
        (counted("module-off"), 0),
        (counted("module-off", pages_filled=2046), 1),
        (counted("module", compound=512, pages_filled=512), 0),
        (counted("module", compound=512, pages_filled=1024), 1),
        (counted("module", compound=512, pages_filled=2046), 1),
        (counted("module", compound=512), 1),
        (counted("module", compound=512, pages=1024), 0),
        # A compound of 1 GiB whose memmap is deduplicated is left out.
        (counted("module", compound=1 << 18, pages=4 << 18), 0),
        (counted("module", compound=1 << 18, pages=4 << 18, pages_filled=1 << 18), 0),
        (counted("module", compound=1 << 18, pages=4 << 18, pages_filled=2 << 18), 1),
        ({"scenario": "some", "mode": "base"}, 0),
    ],
)
def test_what_the_module_counts_is_judged(record: dict[str, Any], status: int) -> None:
    assert binds.judge_counts([record]) == status


def test_a_bad_line_is_one_line(capsys: Capture) -> None:
    assert cli.main(["vm", "--stock", "new"]) == 1
    assert "'new' is not a kernel line" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    ["6.1", *(pytest.param(line, marks=LONG) for line in ("6.12", "7.2", "7.3"))],
    ids=lambda line: f"linux-{line}",
)
@pytest.mark.usefixtures("in_user_cache")
def test_the_module_leaves_the_same_memmaps(line: str) -> None:
    records = from_stock_kernel(line, SCENARIOS, 2)
    for scenario in SCENARIOS:
        rows = binds.rows_of(scenario, {"stock": records}, DEVICE)
        assert [(row.tree, row.mode) for row in rows] == [
            ("base", ""),
            *(("stock", mode) for mode in STOCK_MODES),
        ]
        assert all(row.hash and row.case.pages > 10_000 for row in rows)
        assert binds.same_hashes(rows) == 0
    assert {"module", "module-off"} <= {r["mode"] for r in records if "pages_filled" in r}
    assert binds.judge_counts(records) == 0


@LONG
@LINES
@pytest.mark.usefixtures("in_user_cache")
def test_the_module_fills_compounds_of_1_gib(line: str) -> None:
    parts = STOCK.scenarios["devdax-1g"].parts
    records = from_stock_kernel(line, list(parts), 2, device=5 << 30)
    for scenario in parts:
        rows = binds.rows_of(scenario, {"stock": records}, 5 << 30)
        assert len(rows) == 1 + len(STOCK_MODES)
        assert binds.same_hashes(rows) == 0
    assert binds.judge_counts(records) == 0
    filled = {
        (record["scenario"], record["mode"]): record["pages_filled"]
        for record in records
        if "pages_filled" in record
    }
    assert filled["devdax-1g", "module"] == 1 << 18
    assert filled["devdax-1g-mem", "module"] == 0


@LONG
@pytest.mark.usefixtures("in_user_cache")
def test_the_module_stays_out_of_a_kernel_that_is_as_fast() -> None:
    base = trees.unpatched("base", sources.get(sources.EXPECTED))
    kernel = image.kernel(trees.with_topics("expected", base, []), ("vm",))
    probes, module = stock.modules(kernel.built, "Linux 7.4 as expected")
    kernel = replace(kernel, module=probes, filler=module)
    guest = Guest("tcg", DEVICE, 600, append="init_on_alloc=0")
    records, _ = guest.run(kernel, "stock-stays-out", 2, DEVICE)
    assert list(passed(records)) == ["stays out", *SCENARIOS]


@LONG
@LINES
@pytest.mark.usefixtures("in_user_cache")
def test_a_hundred_binds_have_no_difference(line: str) -> None:
    records = from_stock_kernel(line, ["stock-verify"], 100)
    records += from_stock_kernel(line, ["stock-verify-1g"], 100, device=5 << 30)
    assert list(passed(records)) == [*SCENARIOS, "devdax-1g"]


@LONG
@LINES
@pytest.mark.usefixtures("in_user_cache")
def test_the_module_fails_as_it_should(line: str) -> None:
    records = from_stock_kernel(line, ["stock-faults"], 200, fault=True)
    assert len(passed(records)) == 2 * FAULTS  # on fsdax and devdax
