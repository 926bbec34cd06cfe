# SPDX-License-Identifier: GPL-2.0-only
"""The VM lab: what it says of guests that fail, and one quick run of both kernels."""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pagemint import build, cli, series, vm, vmkernel
from pagemint.errors import Failure
from pagemint.vmkernel import Kernel


def record(mode: str, digest: str, nanoseconds: int = 1_000_000) -> dict[str, Any]:
    """What a guest says of one rebind."""
    times = {"bind_ns": 3 * nanoseconds, "init_ns": nanoseconds, "pages": 1000}
    return {"scenario": "fsdax", "mode": mode, "hash": digest, **times}


def fake_vng(directory: Path, script: str) -> None:
    program = directory / "vng"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> vm.Guest:
    """A guest that is a shell script in tmp_path."""
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return vm.Guest("tcg", 1 << 30, 5)


KERNEL = Kernel("base", Path("bzImage"), Path("pagemint_guest.ko"))
FIND_OUTPUT = "for a; do case $a in --rwdir=*) out=${a#--rwdir=}/records;; esac; done\n"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 0", "without a result"),
        ("echo 'BUG: unable to handle page fault'; exit 0", "BUG: unable to handle"),
        ("echo Kernel panic - not syncing; exit 1", "failed"),
        (FIND_OUTPUT + """echo '{"scenario": "fsdax", "error": "no ndctl"}' > $out""", "no ndctl"),
        (FIND_OUTPUT + """echo '{"scenario": "fsdax"}' > $out""", "without a result"),
    ],
)
def test_a_guest_that_fails_is_told_with_its_console(
    script: str,
    why: str,
    guest: vm.Guest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake_vng(tmp_path, f"echo the last words\n{script}")
    with pytest.raises(Failure, match=why) as caught:
        guest.run(KERNEL, [])
    assert "the base kernel" in caught.value.message
    assert "the last words" in capsys.readouterr().err
    assert Path(caught.value.remedy.split()[-1]).exists()


def test_a_guest_that_hangs_is_ended(guest: vm.Guest, tmp_path: Path) -> None:
    fake_vng(tmp_path, "sleep 60")
    with pytest.raises(Failure, match="did not end within"):
        vm.Guest(guest.accel, guest.device, 0.3).run(KERNEL, [])


def test_a_clean_guest_gives_its_records(guest: vm.Guest, tmp_path: Path) -> None:
    lines = """echo '{"scenario": "fsdax"}' > $out; echo '{"done": true}' >> $out"""
    fake_vng(tmp_path, FIND_OUTPUT + lines)
    assert guest.run(KERNEL, [])[0] == [{"scenario": "fsdax"}]
    assert not list(tmp_path.glob("pagemint-vm-*"))


def test_a_memory_map_that_differs_fails_the_run() -> None:
    same = {"base": [record("base", "a")] * 2, "patched": [record("fill", "a")] * 2}
    assert vm._same_hashes(vm._rows("fsdax", same, 1 << 30)) == 0
    other = {**same, "patched": [record("fill", "b")] * 2}
    assert vm._same_hashes(vm._rows("fsdax", other, 1 << 30)) == 1
    unsteady = {**same, "patched": [record("fill", "a"), record("fill", "b")]}
    assert vm._same_hashes(vm._rows("fsdax", unsteady, 1 << 30)) == 1


def test_speed_up_is_that_of_the_medians() -> None:
    records = {"base": [record("base", "a", 300)] * 2, "patched": [record("fill", "a", 100)] * 2}
    base, fill = vm._rows("fsdax", records, 1 << 30)
    assert (base.speedup, fill.speedup) == pytest.approx((1.0, 3.0))


@pytest.mark.parametrize(
    "argv", [["--scenario", "nonesuch"], ["--rebinds", "1"], ["--size", "1000TB"], ["--size", "x"]]
)
def test_bad_arguments_are_one_line(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["vm", *argv]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pagemint: ")


def test_missing_programs_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None)
    assert cli.main(["vm"]) == 1
    assert "apt-get install qemu-system-x86 ndctl" in capsys.readouterr().err


@pytest.fixture(scope="module")
def kernels() -> list[Kernel]:
    """The base kernel, and the patched one with the KUnit suites of the series."""
    base, patched = build.trees(series.source_for("7.3", None))
    return [vmkernel.kernel(base, ("vm",)), vmkernel.kernel(patched, ("vm", "kunit"))]


@pytest.mark.parametrize("suite", ["memcpy_flushcache", "memcpy_streaming", "memmap_template"])
def test_the_kunit_suites_pass(suite: str, kunit_console: str) -> None:
    assert re.search(rf"^ok \d+ {suite}$", kunit_console, re.MULTILINE)


@pytest.fixture(scope="module")
def kunit_console(kernels: list[Kernel]) -> str:
    arguments = ["--scenario", "private", "--rebinds", "2", "--private-size", str(1 << 27)]
    return vm.Guest("tcg", 1 << 27, 600).run(kernels[1], arguments)[1]


def test_both_kernels_bring_up_the_same_memory_maps(
    kernels: list[Kernel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter(kernels)
    monkeypatch.setattr(vmkernel, "kernel", lambda tree, fragments: next(found))
    monkeypatch.setattr(build, "trees", lambda source: (argparse.Namespace(key="k"),) * 2)
    monkeypatch.setattr(series, "source_for", lambda line, own: argparse.Namespace(version="7.3"))
    out = tmp_path / "vm.json"
    argv = ["vm", "--size", "1GiB", "--rebinds", "2", "--accel", "tcg", "--json", str(out)]
    assert cli.main(argv) == 0
    rows = json.loads(out.read_text())["rows"]
    for name in ("fsdax", "devdax", "devdax-mem", "private"):
        mine = {row["variant"]: row for row in rows if row["workload"] == name}
        assert list(mine) == ["base", "slow", "template", "streaming", "fill"]
        assert len({row["hash"] for row in mine.values()}) == 1
        assert all(row["hash"] and row["pages"] > 200_000 for row in mine.values())
