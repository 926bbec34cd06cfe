# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint host`: its refusals, on a fake machine of files; and its measurement, in a guest."""

import json
from pathlib import Path
from typing import Any

import pytest
from guest_records import LONG, from_stock_kernel
from stand_ins import Capture, Patch, Refused

from pagemint import cli
from pagemint.guests.inside import inventory
from pagemint.guests.outside import scenarios
from pagemint.results import reader
from pagemint.trees import stock
from pagemint.trees.image import Kernel


@pytest.fixture
def root(tmp_path: Path, monkeypatch: Patch) -> Path:
    """A machine with an fsdax device of one partition and a devdax device, both unused."""
    for name in ("dev", "proc/42/fd", "proc/42/map_files", "sys/module", "sys/block/loop0/loop"):
        (tmp_path / name).mkdir(parents=True)
    pmem = tmp_path / "sys/bus/nd/drivers/nd_pmem/pfn0.0"
    disk = pmem / "block/pmem0"
    for path, number in ((disk, "259:0"), (disk / "pmem0p1", "259:1")):
        (path / "holders").mkdir(parents=True)
        (path / "dev").write_text(f"{number}\n")
        (tmp_path / "dev" / path.name).touch()
    (disk / "pmem0p1/partition").write_text("1\n")
    dax = tmp_path / "sys/bus/dax/drivers/device_dax/dax1.0"
    dax.mkdir(parents=True)
    # The number of /dev/null, which any process can open.
    (dax / "dev").write_text("1:3\n")
    for path in (pmem, dax):
        (path / "size").write_text("1073741824\n")
    (tmp_path / "proc/42/comm").write_text("qemu\n")
    (tmp_path / "proc/42/mountinfo").write_text("21 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    (tmp_path / "proc/swaps").write_text("Filename Type Size Used Priority\n")
    monkeypatch.setattr(inventory, "ROOT", tmp_path)
    return tmp_path


DISK = "sys/bus/nd/drivers/nd_pmem/pfn0.0/block/pmem0"
USES = {
    "mounted on /srv": ("proc/42/mountinfo", "30 1 259:0 / /srv rw - ext4 /dev/pmem0 rw\n"),
    "mounted on /part": ("proc/42/mountinfo", "30 1 259:1 / /part rw - ext4 /dev/pmem0p1 rw\n"),
    "part of dm-0": (f"{DISK}/holders/dm-0", ""),
    "part of md1": (f"{DISK}/pmem0p1/holders/md1", ""),
    "swap": ("proc/swaps", "Filename Type\n/dev/pmem0p1 partition 1 0 -2\n"),
    "behind loop0": ("sys/block/loop0/loop/backing_file", "/dev/pmem0\n"),
}


@pytest.mark.parametrize("why", USES)
def test_a_disk_in_use_is_left_alone(why: str, root: Path, refused: Refused) -> None:
    file, text = USES[why]
    (root / file).write_text(text)
    line = refused("host", "--device", "pfn0.0", "--yes")
    assert line == f"pagemint: pfn0.0 is {why}; end that, or choose from dax1.0"


@pytest.mark.parametrize(("where", "how"), [("fd/7", "open"), ("map_files/0-1000", "mapped")])
def test_a_file_in_use_is_left_alone(where: str, how: str, root: Path, refused: Refused) -> None:
    (root / "proc/42" / where).symlink_to("/dev/null")
    line = refused("host", "--device", "dax1.0", "--yes")
    assert f"dax1.0 is {how} in process 42 (qemu); end that" in line


def test_nothing_is_done_without_a_yes(root: Path, capsys: Capture, refused: Refused) -> None:
    file, text = USES["swap"]
    (root / file).write_text(text)
    assert cli.main(["host"]) == 0
    out, err = capsys.readouterr()
    words = [line.replace("│", " ").split() for line in out.splitlines()]
    assert ["pfn0.0", "fsdax", "1.1", "GB", "swap"] in words
    assert ["dax1.0", "devdax", "1.1", "GB", "free"] in words
    assert "nothing was changed" in err
    line = refused("host", "--device", "dax1.0")
    assert "would be taken from its driver 90 times; give --yes" in line


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--device", "pmem0"], "pmem0 is not an fsdax or devdax device that is bound"),
        (["--rebinds", "1"], "--rebinds 1 is too few"),
        (["--size", "1MiB"], "1MiB of private memory is too little"),
        (["--size", "9000TB"], "the memmap of 9000TB takes"),
        (["--size", "1GB", "--device", "dax1.0"], "--size is for private memory"),
        (["--headers", "/nowhere"], "/nowhere has no headers of the running kernel"),
    ],
)
def test_what_cannot_be_is_one_line(
    argv: list[str], message: str, root: Path, monkeypatch: Patch, refused: Refused
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert message in refused("host", "--yes", *argv)


def test_it_is_for_root_and_brings_its_own_modules(
    root: Path, monkeypatch: Patch, refused: Refused
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "only root can load the modules" in refused("host", "--yes")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (root / "sys/module/pagemint").mkdir()
    assert "pagemint is loaded already; unload it first: rmmod" in refused("host", "--yes")


def test_a_device_is_looked_at_before_each_unbind(root: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(inventory, "PATIENCE", 0.2)
    driver = root / "sys/bus/nd/drivers/nd_pmem"
    for name in ("bind", "unbind"):
        (driver / name).touch()
    device = inventory.Existing("pfn0.0")
    device.unbind()
    assert (driver / "unbind").read_text() == "pfn0.0"
    (driver / "unbind").write_text("")
    device.restore()
    assert (driver / "bind").read_text() == ""
    file, text = USES["mounted on /srv"]
    (root / file).write_text(text)
    with pytest.raises(RuntimeError, match="is mounted on /srv"):
        device.unbind()
    assert (driver / "unbind").read_text() == ""
    (driver / "pfn0.0").rename(root / "pfn0.0")
    device.restore()
    assert (driver / "bind").read_text() == "pfn0.0"
    with pytest.raises(RuntimeError, match="there is no device pfn0"):
        inventory.Existing("pfn0.0")


def bind(mode: str, filled: int, digest: str = "ab") -> dict[str, Any]:
    """The record that inside/scenarios.py writes about a bind."""
    times = {"bind_ns": 9_000_000, "init_ns": 1_000_000 if filled else 3_000_000, "pages": 1000}
    times["unbind_ns"] = 4_000_000
    counts = {"pages_filled": filled, "mismatches": 0, "calls": 1} if mode != "base" else {}
    about = {"scenario": "existing", "mode": mode, "hash": digest, "compound": 1}
    return {**about, **times, **counts}


GOOD = [bind("base", 0), bind("module", 998), bind("module-off", 0)] * 2


@pytest.mark.parametrize(
    ("records", "status", "message"),
    [
        (GOOD, 0, "every tree and mode left the same memmap"),
        ([*GOOD, bind("module", 998, "cd")], 1, "fsdax: the memmaps differ"),
        ([*GOOD, bind("module", 0)], 1, "fsdax (module): 0 of 1000 pages filled"),
        ([{"error": "pfn0.0 is swap"}], 1, "timing pfn0.0 failed: pfn0.0 is swap; see dmesg"),
    ],
)
def test_a_device_is_timed_as_in_a_guest(
    records: list[dict[str, Any]],
    status: int,
    message: str,
    root: Path,
    monkeypatch: Patch,
    capsys: Capture,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    for name in ("Module.symvers", ".config", "Makefile"):
        (root / name).touch()
    lines = root / "lines"
    lines.write_text("".join(json.dumps(record) + "\n" for record in records))

    def command(
        kernel: Kernel, name: str, count: int, size: int, file: Path, *, bare: bool, device: str
    ) -> list[str]:
        assert (name, count, size, bare, device) == ("existing", 3, 1 << 30, True, "pfn0.0")
        return ["cp", str(lines), str(file)]

    monkeypatch.setattr(scenarios, "command", command)
    monkeypatch.setattr(stock, "modules", lambda headers, what: (root, root))
    argv = ["--device", "pfn0.0", "--yes", "--rebinds", "3", "--headers", str(root)]
    argv += ["--json", str(root / "host.json"), *(["--no-report"] if status else [])]
    assert cli.main(["host", *argv]) == status
    out, err = capsys.readouterr()
    assert message in err
    if "error" in records[0]:
        return
    assert "fsdax" in out
    result = reader.read(str(root / "host.json"))
    assert {row.case.workload for row in result.rows} == {"fsdax"}
    assert [row.variant for row in result.rows] == ["base", "module-off", "module"]
    assert result.rows[2].runs_ms[:2] == [1.0, 1.0]
    assert (root / "host-report/index.html").exists() == (status == 0)


@LONG
@pytest.mark.parametrize("line", ["6.1", "6.12"], ids=lambda line: f"linux-{line}")
@pytest.mark.usefixtures("in_user_cache")
def test_it_times_what_is_free_in_a_guest(line: str) -> None:
    records = from_stock_kernel(line, ["host"], 2)
    assert [record["outcome"] for record in records] == ["pass"] * 8, records
