# SPDX-License-Identifier: GPL-2.0-only
"""The VM lab without a guest: its arguments, and how it judges what guests record."""

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NoReturn
from unittest.mock import Mock

import msgspec
import pytest
from stand_ins import Capture, Patch, Refused, program

from pagemint import cli
from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.commands import guest_kernels
from pagemint.guests.inside import checks as inside_checks
from pagemint.guests.inside import devices, foreign
from pagemint.guests.inside.settings import Settings
from pagemint.guests.outside import binds, checks, lab, runs, scenarios, x86
from pagemint.guests.outside.guest import Guest
from pagemint.guests.outside.lab import Scenario
from pagemint.guests.outside.scenarios import Record
from pagemint.results import rows
from pagemint.results.rows import Case, Check
from pagemint.trees import sources, trees
from pagemint.trees.image import Kernel
from pagemint.words import DEFERRED_INIT


def record(mode: str, digest: str, nanoseconds: int = 1_000_000) -> dict[str, Any]:
    """The record of a guest about one rebind."""
    times = {"bind_ns": 3 * nanoseconds, "init_ns": nanoseconds, "unbind_ns": 2 * nanoseconds}
    return {"scenario": "fsdax", "mode": mode, "hash": digest, "pages": 1000, **times}


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: Patch) -> Guest:
    """A guest that is a shell script in tmp_path."""
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return Guest("tcg", 1 << 30, 5)


KERNEL = Kernel("base", Path("built"), Path("pagemint_guest.ko"), None)
KERNELS = [KERNEL, replace(KERNEL, variant="patched", deferred_init=DEFERRED_INIT)]
FIND_OUTPUT = "for a; do case $a in --rwdir=*) out=${a#--rwdir=}/records;; esac; done\n"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 0", "without a result"),
        ("echo 'BUG: unable to handle page fault'; exit 0", "BUG: unable to handle"),
        ("echo Kernel panic - not syncing; exit 1", "failed"),
        (FIND_OUTPUT + """echo '{"scenario": "fsdax", "error": "no ndctl"}' > $out""", "no ndctl"),
        (
            FIND_OUTPUT + """echo '{"scenario": "kmem", "running": "system-ram"}' > $out""",
            r"failed in kmem \(system-ram\): it ended without a result",
        ),
    ],
)
def test_a_guest_that_fails_is_told_with_its_console(
    script: str, why: str, guest: Guest, tmp_path: Path, capsys: Capture
) -> None:
    program(tmp_path / "vng", f"echo the last words\n{script}")
    with pytest.raises(Failure, match=why) as caught:
        guest.run(KERNEL, "fsdax", 2, 1 << 27)
    assert "the base kernel failed in " in caught.value.message
    assert "the last words" in capsys.readouterr().err
    assert Path(caught.value.remedy.split()[-1]).exists()


def test_a_guest_that_hangs_is_ended(guest: Guest, tmp_path: Path) -> None:
    running = """echo '{"scenario": "fsdax", "running": "binds"}' > $out; """
    program(tmp_path / "vng", FIND_OUTPUT + running + f"echo $$ > {tmp_path}/pid; sleep 60")
    with pytest.raises(Failure, match=r"in fsdax \(binds\): did not end within"):
        replace(guest, limit=0.3).run(KERNEL, "fsdax", 2, 1 << 27)
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_a_clean_guest_gives_its_records(guest: Guest, tmp_path: Path) -> None:
    lines = """echo '{"scenario": "fsdax"}' > $out; echo '{"done": true}' >> $out"""
    program(tmp_path / "vng", FIND_OUTPUT + lines)
    assert guest.run(KERNEL, "fsdax", 2, 1 << 27)[0] == [{"scenario": "fsdax"}]
    assert not list(tmp_path.glob("pagemint-vm-*"))


def test_a_guest_that_cannot_start_is_not_blamed(
    guest: Guest, tmp_path: Path, monkeypatch: Patch
) -> None:
    offline = Mock(side_effect=Failure("the mirror is away", "wait"))
    monkeypatch.setattr("pagemint.guests.outside.x86.argv", offline)
    with pytest.raises(Failure, match=r"^the mirror is away; wait"):
        guest.run(KERNEL, "fsdax", 2, 1 << 27)
    assert not list(tmp_path.glob("pagemint-vm-*"))


def test_a_memmap_that_differs_fails_the_run() -> None:
    same = {"base": [record("base", "a")] * 2, "patched": [record("streaming", "a")] * 2}
    assert binds.same_hashes(binds.rows_of("fsdax", same, 1 << 30)) == 0
    other = {**same, "patched": [record("streaming", "b")] * 2}
    assert binds.same_hashes(binds.rows_of("fsdax", other, 1 << 30)) == 1
    unsteady = {**same, "patched": [record("streaming", "a"), record("streaming", "b")]}
    assert binds.same_hashes(binds.rows_of("fsdax", unsteady, 1 << 30)) == 1


Outcome = Literal["pass", "fail", "skip"]


_LISTED = '[[reason]]\nwhy = "it needs swap"\nscenario = "stress"\nchecks = ["vm"]\n'
_NO_REASON = "known-failures.toml has no reason for it"


@pytest.mark.parametrize(
    ("scenario", "reasons", "base", "patched", "said", "status", "line"),
    [
        # Checks of ours, which say something, have to pass.
        ("kmem", "", "pass", "pass", "ok", 0, "kmem: vm: ok, on both kernels"),
        ("kmem", "", "pass", "fail", "no", 1, "base: pass no; patched: fail no\n"),
        ("kmem", "", "fail", "fail", "no", 1, "base: fail no; patched: fail no\n"),
        ("kmem", "", "pass", "skip", "no", 1, "base: pass no; patched: skip no\n"),
        # Tests of others have to end alike; one that fails on both needs a reason.
        ("xfstests", "", "pass", "pass", "", 0, "tests of others: 1 pass, on both kernels alike"),
        ("xfstests", "", "fail", "fail", "", 0, "base: fail; patched: fail\n"),
        ("xfstests", "", "pass", "fail", "", 1, "base: pass; patched: fail\n"),
        ("xfstests", "", "pass", "skip", "", 1, "base: pass; patched: skip\n"),
        ("stress", _LISTED, "fail", "fail", "", 0, "known: it needs swap"),
        ("stress", "", "fail", "fail", "", 1, _NO_REASON),
        ("stress", _LISTED, "pass", "pass", "", 1, "is in known-failures.toml, but did not fail"),
        ("stress", _LISTED, "pass", "fail", "", 1, "base: pass; patched: fail\n"),
        ("private-hmm", "", "fail", "fail", "", 1, _NO_REASON),
    ],
)
def test_a_check_has_to_pass_or_to_end_alike(
    scenario: str,
    reasons: str,
    base: Outcome,
    patched: Outcome,
    said: str,
    status: int,
    line: str,
    tmp_path: Path,
    monkeypatch: Patch,
    capsys: Capture,
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/known-failures.toml").write_text(reasons)
    monkeypatch.setattr(files, "GUESTS", tmp_path)
    ended = {"base": base, "patched": patched}
    both = [Check(scenario, tree, "vm", end, said, bool(said)) for tree, end in ended.items()]
    assert checks.judge(both) == status
    assert line in capsys.readouterr().err
    # If one kernel lacks it, they do not end alike.
    assert checks.judge(both[:1]) == 1


@pytest.mark.parametrize(
    ("outcome", "status", "line"),
    [
        ("pass", 0, "shared-limits: memmap: 2 MiB; base, not booted: 16 GiB\n"),
        ("fail", 1, "shared-limits: memmap: base: skip 16 GiB; patched: fail 2 MiB\n"),
        ("skip", 1, "shared-limits: memmap: base: skip 16 GiB; patched: skip 2 MiB\n"),
    ],
)
def test_the_patched_kernel_is_judged_alone_where_base_can_do_nothing(
    outcome: Outcome, status: int, line: str, guest: Guest, monkeypatch: Patch, capsys: Capture
) -> None:
    booted = []

    def boot(self: Guest, kernel: Kernel, *_: object) -> tuple[list[Record], str]:
        booted.append((kernel.variant, self.device))
        mine = {"scenario": "shared-limits", "base": "16 GiB"}
        done = {"check": "memmap", "outcome": outcome, "said": "2 MiB", "must_pass": True}
        return [{**mine, "running": "memmap"}, {**mine, **done}], ""

    monkeypatch.setattr(Guest, "run", boot)
    chosen = {"shared-limits": lab.SCENARIOS["shared-limits"]}
    assert runs.run(guest, KERNELS, chosen, 2, 3, 1 << 27).judge() == status
    assert line in capsys.readouterr().err
    assert booted == [("patched", 1 << 40)]


def test_selftests_are_read_with_what_they_say() -> None:
    output = """TAP version 13
1..3
#  RUN           hmm.hmm_device_private.open_close ...
#            OK  hmm.hmm_device_private.open_close
ok 1 hmm.hmm_device_private.open_close
# hmm-tests.c:770:anon_read:Expected ret (-22) == 0 (0)
not ok 2 hmm.hmm_device_private.anon_read
ok 3 hmm.hmm_device_coherent.open_close # SKIP DEVICE_COHERENT not available
ok 4 # SKIP Pagecache folio split skipped
# FAILED: 2 / 3 tests passed.
"""
    tests = [(test["outcome"], test["check"], test["said"]) for test in inside_checks.tap(output)]
    failed = "hmm-tests.c:770:anon_read:Expected ret (-22) == 0 (0)"
    assert tests == [
        ("pass", "hmm.hmm_device_private.open_close", ""),
        ("fail", "hmm.hmm_device_private.anon_read", failed),
        ("skip", "hmm.hmm_device_coherent.open_close", "DEVICE_COHERENT not available"),
        ("skip", "Pagecache folio split skipped", "Pagecache folio split skipped"),
    ]


def test_the_name_of_a_selftest_fits_in_a_result(tmp_path: Path, monkeypatch: Patch) -> None:
    output = f"ok 1 {'long ' * 30}\nok 2 {'long ' * 30}\n"
    done = subprocess.CompletedProcess("", 0, output)
    monkeypatch.setattr(foreign, "ran", lambda argv: done)
    monkeypatch.setattr(Path, "write_text", lambda *_: 0)
    (tmp_path / "pagemap_ioctl").touch()
    records = [record for record in foreign.selftests(tmp_path) if "check" in record]
    tests = [Check("selftests", "base", r["check"], r["outcome"], "", False) for r in records]
    assert len({test.name for test in tests}) == 3
    assert msgspec.convert(msgspec.to_builtins(tests), list[Check]) == tests


def test_the_memory_of_a_memmap_is_not_known_before_linux_counts_it(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(devices, "VMSTAT", tmp_path / "vmstat")
    devices.VMSTAT.write_text("nr_free_pages 7\nnr_memmap_pages 3\n")
    assert devices.memmap_bytes() == 3 * 4096
    assert devices.memmap_growth(4096) == 2 * 4096
    devices.VMSTAT.write_text("nr_free_pages 7\n")
    assert devices.memmap_bytes() is devices.memmap_growth(None) is None


def test_binds_are_rows_of_trees_and_modes() -> None:
    first = {**record("streaming", "a", 500), "first": True}
    records = {
        "base": [{**record("base", "a", 300), "use_ns": 5_000_000}] * 2,
        "patched": [first, *[record("streaming", "a", 100)] * 2],
    }
    base, streaming = binds.rows_of("fsdax", records, 1 << 30)
    assert base.case == streaming.case == Case("fsdax", 1 << 30, 1000)
    names = [(row.tree, row.mode) for row in (base, streaming)]
    assert names == [("base", ""), ("patched", "streaming")]
    assert (base.runs_ms, streaming.runs_ms) == ([0.0003] * 2, [0.0001] * 2)
    assert streaming.bind_ms == [0.0003] * 2
    assert (base.use_ms, streaming.use_ms, streaming.unbind_ms) == ([5.0] * 2, [], [0.0002] * 2)
    assert (base.first_ms, streaming.first_ms, streaming.first_bind_ms) == (None, 0.0005, 0.0015)
    assert streaming.hash == "a"


def test_first_binds_of_several_boots_are_one_median() -> None:
    firsts = [{**record("streaming", "a", 10**6 * n), "first": True} for n in (1, 9, 2)]
    (row,) = binds.rows_of("fsdax", {"patched": [*firsts, record("streaming", "a")]}, 1 << 30)
    assert (row.first_ms, row.first_bind_ms) == (2.0, 6.0)


def test_kernels_take_turns_and_are_checked_once(guest: Guest, monkeypatch: Patch) -> None:
    booted = []

    def boot(self: Guest, kernel: Kernel, names: str, *_: int) -> tuple[list[Record], str]:
        booted.append((kernel.variant, names))
        return [record("base", "a")], ""

    monkeypatch.setattr(Guest, "run", boot)
    chosen = {"fsdax": Scenario(("fsdax", "fsdax-files")), "kmem": Scenario(("kmem",))}
    outcome = runs.run(guest, KERNELS, chosen, 2, 3, 1 << 27)
    again = [("base", "fsdax"), ("patched", "fsdax")] * 2
    assert booted[:6] == [("base", "fsdax,fsdax-files"), ("patched", "fsdax,fsdax-files"), *again]
    assert booted[6:] == [("base", "kmem"), ("patched", "kmem")]
    assert [len(row.runs_ms) for row in outcome.binds] == [3, 3]


@pytest.mark.parametrize(
    ("lazy", "status"), [({"stress": "pass"}, 0), ({"stress": "fail"}, 1), ({}, 1)]
)
def test_memory_of_boot_is_used_in_each_mode_and_has_to_end_alike(
    lazy: dict[str, str], status: int, guest: Guest, monkeypatch: Patch, capsys: Capture
) -> None:
    booted = []

    def boot(self: Guest, kernel: Kernel, *_: object) -> tuple[list[Record], str]:
        mode = self.append.partition("deferred_init=")[2]
        booted.append((kernel.variant, mode))
        ends = {"fio": "pass", "stress": "pass"} if mode != "lazy" else {"fio": "pass", **lazy}
        test = {"scenario": "fio-fsdax", "said": "", "must_pass": False}
        return [{**test, "check": name, "outcome": end} for name, end in ends.items()], ""

    monkeypatch.setattr(Guest, "run", boot)
    outcome = runs.run(guest, KERNELS, {"foreign": lab.SCENARIOS["foreign"]}, 2, 1, 1 << 27)
    assert booted == [("base", "eager"), *(("patched", mode) for mode in DEFERRED_INIT)]
    assert len(outcome.checks) == 4
    assert outcome.judge() == status
    line = f"fail eager: pass, background: pass, lazy: {lazy.get('stress', 'missing')}\n"
    assert (line in capsys.readouterr().err) == bool(status)


def test_a_stock_kernel_is_base_until_the_module_is_loaded_and_a_patched_one_never_is() -> None:
    for tree, variants in (
        ("stock", [("base", ""), ("stock", "module-off"), ("stock", "module")]),
        ("patched", [("patched", "")]),
    ):
        records = [record(mode or "base", "a") for _, mode in variants]
        rows = binds.rows_of("fsdax", {tree: records}, 1 << 30)
        assert [(row.tree, row.mode) for row in rows] == variants


def test_moves_are_rows_of_base_and_patched() -> None:
    rest = {"scenario": "migrate", "check": "moves", "said": ""}
    move: Record = {"workload": "migrate", "function": "", "ns": 4_000_000, "bytes": 4 << 20}
    records = {"base": [move, rest] * 3, "patched": [rest, *[move | {"ns": 2_000_000}] * 3]}
    rows = binds.copy_rows(records)
    assert binds.copy_rows({"base": records["base"], "patched": [rest]}) == rows[:1]
    assert [(row.tree, row.mode) for row in rows] == [("base", ""), ("patched", "")]
    assert [row.runs_ms for row in rows] == [[4.0] * 3, [2.0] * 3]
    case = Case("migrate", device_bytes=4 << 20, pages=1024, folio_bytes=2 << 20)
    assert {row.case for row in rows} == {case}


@pytest.mark.parametrize(
    ("cpus", "stock", "first", "last"),
    [
        (1, False, "cpus=0", ""),
        (2, False, "cpus=0", ",cpus=1-1"),
        (3, False, "cpus=0", ",cpus=1-2"),
        (2, True, "cpus=0-1", ""),
    ],
)
def test_a_guest_has_its_cpus_on_the_first_node_and_the_last(
    cpus: int, stock: bool, first: str, last: str
) -> None:
    machine = " ".join(x86.machine_options((1, 2, 3), cpus, "tcg", stock=stock))
    nodes = re.findall(r"-numa node,(\S+)", machine)
    assert nodes == [f"memdev=node0,{first}", "memdev=node1", f"memdev=node2{last}"]


def test_a_guest_may_see_this_machine_elsewhere(tmp_path: Path) -> None:
    kernel = replace(KERNEL, arch=trees.ARM64, filler=Path("pagemint.ko"))
    directories = {"selftests": Path("/tmp/selftests")}
    records = tmp_path / "records"
    command = scenarios.command(kernel, "fsdax", 2, 1 << 27, records, directories=directories)
    program = ["python3", "-m", "pagemint.guests.inside.scenarios"]
    assert command[2:] == [*program, f"/host{tmp_path}/settings"]
    settings = Settings(**json.loads((tmp_path / "settings").read_text()))
    assert settings.output == f"/host{records}"
    assert settings.directory("selftests") == Path("/host/tmp/selftests")
    modules = (settings.module, settings.folio_module, settings.hmm_module, settings.filler)
    assert all(Path(path).is_relative_to("/host") for path in (*modules, settings.headers))


@pytest.mark.parametrize(
    "argv",
    [
        ["--arch", "arm64", "--accel", "kvm"],
        ["--arch", "arm64", "--scenario", "kmem"],
        ["--scenario", "nonesuch"],
        ["--rebinds", "1"],
        ["--rebinds", "5001", "--turns", "2"],
        ["--turns", "0"],
        ["--limit", "0"],
        ["--limit", "inf"],
        ["--limit", "nan"],
        ["--size", "1000TB"],
        ["--size", "x"],
        ["--xfstests", "/nonesuch"],
        ["--arch", "arm64", "--ndctl", "/nonesuch"],
        ["--stock", "6.12", "--arch", "arm64"],
        ["--stock", "6.12", "--scenario", "shared-limits"],
        ["--kernel", "6.12", "--scenario", "fsdax,shared-limits"],
        ["--kernel", "7.2", "--scenario", "shared-limits"],
        ["--kernel", "5.5"],
    ],
)
def test_bad_arguments_are_one_line(argv: list[str], refused: Refused) -> None:
    refused("vm", *argv)


def test_too_little_memory_is_refused_before_a_build(monkeypatch: Patch, refused: Refused) -> None:
    monkeypatch.setattr("pagemint.base.machine.memory", lambda *_: {"MemAvailable": 1_500_000_000})
    line = refused("vm", "--scenario", "shared-limits")
    assert line.startswith("pagemint: a guest takes 1.9 GB of memory, and 1.4 GB are free; end ")


def test_a_scenario_that_a_line_lacks_is_left_out_with_a_note(
    monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setattr("shutil.which", lambda program, path: None)
    assert cli.main(["vm", "--kernel", "6.12"]) == 1
    *notes, _ = capsys.readouterr().err.splitlines()
    topics = {"devdax-unbinds": "devdax", "shared-limits": "devdax-shared"}
    assert notes == [
        f"{name} is left out: the topic {topic} has no edits for Linux 6.12"
        for name, topic in (topics | {"background": "background"}).items()
    ]


def test_a_kernel_that_no_scenario_boots_is_not_built(monkeypatch: Patch, tmp_path: Path) -> None:
    built = []

    def build(tree: trees.Tree, fragments: tuple[str, ...]) -> NoReturn:
        built.append(tree.name)
        raise Failure("that is enough", "stop")

    source = sources.Source("7.3.4", "7.3", "7.3.4-1", tmp_path)
    pair = [trees.Tree(name, tmp_path, name, "7.3", "7.3.4") for name in ("base", "patched")]
    monkeypatch.setattr("pagemint.trees.patches.source_for", lambda *_: source)
    monkeypatch.setattr("pagemint.trees.trees.pair", lambda _: pair)
    monkeypatch.setattr("pagemint.trees.image.kernel", build)
    assert cli.main(["vm", "--scenario", "shared-limits"]) == 1
    assert cli.main(["vm", "--scenario", "shared-limits,fsdax"]) == 1
    assert built == ["patched", "base"]


def test_ndctl_has_kernels_of_its_own(monkeypatch: Patch, tmp_path: Path) -> None:
    ran = []

    def build(source: object, of: lab.Lab, wanted: object = None) -> guest_kernels.Built:
        kernel = Kernel("base", tmp_path / of.fragments[-1], tmp_path, None)
        return guest_kernels.Built([kernel], rows.Kernel("7.3.4", "key", "vm"), None)

    def run(_: object, kernels: list[Kernel], names: list[str], *numbers: int) -> runs.Outcome:
        ran.append((kernels[0].built.name, *names))
        check = Check("".join(names), "base", "all", "pass", "", must_pass=True)
        return runs.Outcome(checks=[check, replace(check, tree="patched")])

    monkeypatch.setattr(guest_kernels, "build", build)
    monkeypatch.setattr(runs, "run", run)
    monkeypatch.setattr("pagemint.base.packages.missing", lambda names: [])
    (tmp_path / "meson-info").mkdir()
    (tmp_path / "meson-info/intro-tests.json").touch()
    told = tmp_path / "result.json"
    argv = ["vm", "--scenario", "boot", "--ndctl", str(tmp_path), "--accel", "tcg"]
    assert cli.main([*argv, "--json", str(told)]) == 0
    assert ran == [("background", "boot"), ("ndctl", "ndctl")]
    assert [check["scenario"] for check in json.loads(told.read_text())["checks"]] == [
        *("boot", "boot", "ndctl", "ndctl")
    ]


@pytest.mark.parametrize(
    ("argv", "texts", "absent"),
    [
        ([], ["(Debian: qemu-system-x86 ndctl daxctl e2fsprogs xfsprogs libnuma-dev; "], "busybox"),
        (["--stock", "6.12"], ["busybox-static"], "libnuma-dev"),
        (["--accel", "kvm"], ["/dev/kvm cannot be used"], "Debian"),
        (
            ["--scenario", "foreign"],
            [
                f"the tests of {name} are not run: --{name} names no directory of theirs\n"
                for name in ("xfstests", "ndctl")
            ],
            "busybox",
        ),
    ],
)
def test_what_is_missing_is_named(
    argv: list[str], texts: list[str], absent: str, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setattr("shutil.which", lambda program, path: None)
    monkeypatch.setattr("subprocess.run", lambda *argv, **options: SimpleNamespace(returncode=1))
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.R_OK | os.W_OK)
    assert cli.main(["vm", *argv]) == 1
    err = capsys.readouterr().err
    assert all(text in err for text in texts) and absent not in err


@pytest.mark.parametrize("source", [("--kernel", "6.12"), ("--kernel", "7.3"), ("--ksrc", ".")])
def test_a_stock_kernel_has_no_other_source(source: tuple[str, str], refused: Refused) -> None:
    line = refused("vm", "--stock", "6.12", *source, usage=True)
    assert f"argument {source[0]}: not allowed with argument --stock" in line


BOOT = {"mem_total_kib": 8_000_000, "zones": ["node 0 Normal: spanned 3"], "deferred_nodes": 2}


@pytest.mark.parametrize(
    ("changes", "outcome", "message"),
    [
        ({}, "pass", "8000000 KiB, 2 nodes with deferred init, slow, streaming alike"),
        ({"mem_total_kib": 7}, "fail", "mem_total_kib: 7 (streaming), not 8000000 (slow)"),
        ({"zones": []}, "fail", "zones: [] (streaming), not ['node 0 Normal: spanned 3'] (slow)"),
        ({"deferred_nodes": 0}, "fail", "streaming: no memory was deferred"),
    ],
)
def test_boots_have_to_leave_the_same_memory(
    changes: dict[str, Any], outcome: str, message: str
) -> None:
    judged = runs.judge_boots("patched", {"slow": BOOT, "streaming": {**BOOT, **changes}})
    assert (judged.tree, judged.outcome, judged.said) == ("patched", outcome, message)


@pytest.mark.parametrize(
    ("zones", "outcomes", "status", "line"),
    [
        (["spanned 3"], "pass", 0, "background: memory: 8000000 KiB, 2 nodes with deferred init"),
        (["spanned 4"], "pass", 1, "zones: ['spanned 4'] (lazy), not ['spanned 3'] (eager)"),
        (["spanned 3"], "fail", 1, "background: lazy, walks: base: skip none; patched: fail ok"),
    ],
)
def test_memory_is_used_after_a_boot_in_each_mode_and_compared(
    zones: list[str],
    outcomes: Outcome,
    status: int,
    line: str,
    guest: Guest,
    monkeypatch: Patch,
    capsys: Capture,
) -> None:
    def boot(self: Guest, *_: object) -> tuple[list[Record], str]:
        assert "hugepages=1 " in self.append
        mode = self.append.partition("deferred_init=")[2]
        lazy = mode == "lazy"
        mine = {"scenario": "background", "base": "none"}
        outcome = outcomes if lazy else "pass"
        done = {"check": f"{mode}, walks", "outcome": outcome, "said": "ok", "must_pass": True}
        last = {**BOOT, "zones": zones if lazy else ["spanned 3"], "base": "none"}
        return [{**mine, **done}, {**mine, **last}], ""

    monkeypatch.setattr(Guest, "run", boot)
    chosen = {"background": lab.SCENARIOS["background"]}
    outcome = runs.run(guest, KERNELS, chosen, 2, 1, 1 << 27)
    assert [check.tree for check in outcome.checks] == ["base", "patched"] * 4
    assert outcome.judge() == status
    assert line in capsys.readouterr().err
