# SPDX-License-Identifier: GPL-2.0-only
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import fake_tree
import pytest
from kernel_lines import LONG
from stand_ins import ARGV, Patch, Refused, wait_until

from pagemint.base import cache, machine
from pagemint.bench import link
from pagemint.trees import objects, patches, sources, trees

# One of the few variables that a kernel build inherits. Processes can be found by its value.
_MARK = "TMPDIR"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A stand-in for a kernel tree, to which the series applies; it cannot be built."""
    return fake_tree.make(tmp_path / "linux")


def _entries(home: Path) -> list[str]:
    """Return the entries of the cache, complete or not, without lock files."""
    return sorted(
        str(path.relative_to(home)) for path in home.glob("*/*") if path.suffix != ".lock"
    )


# Arguments.


_LINES = ", ".join([*patches.lines(), sources.EXPECTED])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        *(
            (
                ["--kernel", line],
                f"no patches for Linux {line!r}; choose one of {_LINES}, or give a tree with --ks",
            )
            for line in ("2.4", "7.3.4", "latest", "")
        ),
        (["--ksrc", "file"], "file is not a Linux source tree: it has no Makefile; give"),
        *(
            ([f"--size={size}"], why)
            for size, why in (
                ("lots", "'lots' is not a size; write a number and a unit"),
                ("1GB,", "'' is not a size"),
                ("1MB", "a device of 1MB is too small; give at least 2MiB"),
                ("1GB,1MB", "a device of 1MB is too small"),
                ("900000TB", "a device of 900000TB is too large; give at most 16TB"),
            )
        ),
        *(
            (["--workload", names], "; choose from fsdax, devdax, devdax-1g, private")
            for names in ("hugetlb", "", "fsdax,", "FSDAX")
        ),
        *(([f"--runs={runs}"], "--runs") for runs in ("0", "-3", "10001", "many", "1.5")),
        (["--kernel", "7.3", "--ksrc", "linux"], "not allowed with"),
    ],
)
def test_an_argument_that_cannot_be_is_refused(
    tree: Path, argv: list[str], message: str, refused: Refused
) -> None:
    if not {"--kernel", "--ksrc"} & set(argv):
        argv = ["--ksrc", str(tree), *argv]
    usage = argv[-1] in ("--runs=many", "--runs=1.5", "linux")
    assert message in refused("bench", *argv, usage=usage)


def test_a_memory_map_larger_than_memory_is_refused(tree: Path, refused: Refused) -> None:
    # The memmap takes a 64th of the device: at this size all memory, which is never all free.
    size = min(64 * machine.memory()["MemTotal"], 16 * 10**12) // 10**9
    if size == 16_000:
        pytest.skip("this machine can map the largest device")
    refusal = refused("bench", "--ksrc", tree, f"--size={size}GB")
    assert "of memory are free; give --size " in refusal


def test_a_workload_that_a_line_does_not_have_is_refused(tmp_path: Path, refused: Refused) -> None:
    tree = fake_tree.make(tmp_path / "linux", "6.12")
    refusal = refused("bench", "--ksrc", tree, "--workload", "fsdax,dax-folio")
    assert "Linux 6.12 does not have the code of dax-folio; give --kernel 7.3" in refusal


@pytest.mark.parametrize("file", ["file/result.json", "directory", "/proc/nowhere/result.json"])
def test_a_result_that_cannot_be_written_is_refused_at_once(
    tmp_path: Path, tree: Path, cache_home: Path, file: str, refused: Refused
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "directory").mkdir()
    refusal = refused("bench", "--ksrc", tree, "--size", "4MiB", "--json", tmp_path / file)
    assert f"cannot write {tmp_path / file}: " in refusal
    assert refusal.endswith("; name another file with --json")
    assert (tmp_path / "file").read_text() == "mine"
    assert _entries(cache_home) == []


# Trees, tools and the disk.


def test_an_edit_that_does_not_apply_is_named(
    tree: Path, cache_home: Path, refused: Refused
) -> None:
    line = next(need for need in fake_tree.needed() if need.topic == "devdax")
    fake_tree.spoil(tree, line)
    text = (tree / line.path).read_text()
    refusal = refused("bench", "--ksrc", tree, "--size", "4MiB")
    assert f"{line.topic}: {line.path}: patch does not apply" in refusal
    assert (tree / line.path).read_text() == text
    # The copy of the tree is complete, and a later bench can use it.
    assert [name.split("-")[0] for name in _entries(cache_home)] == ["trees/own"]


@pytest.mark.usefixtures("debian_config")
def test_a_build_that_fails_says_where_its_log_is(tree: Path, refused: Refused) -> None:
    refusal = refused("bench", "--ksrc", tree, "--size", "4MiB")
    assert "make olddefconfig in the base tree failed: " in refusal
    log = Path(refusal.split("the whole output is in ")[1].strip())
    assert "olddefconfig" in log.read_text()
    assert refused("bench", "--ksrc", tree, "--size", "4MiB") == refusal


@pytest.mark.usefixtures("debian_config")
@pytest.mark.parametrize("program", ["gcc", "make", "git"])
def test_a_missing_tool_is_named_with_its_package(
    tmp_path: Path, tree: Path, program: str, monkeypatch: Patch, refused: Refused
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("cp", "gcc", "git", "make", "sh", "xargs"):
        path = shutil.which(name)
        if path and name != program:
            (tmp_path / "bin" / name).symlink_to(path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    machine.compiler.cache_clear()  # an earlier test may have asked
    refusal = refused("bench", "--ksrc", tree, "--size", "4MiB")
    assert f"needs the program {program}, " in refusal
    assert f"; install it (Debian: {program}; " in refusal


@pytest.mark.usefixtures("debian_config")
def test_no_room_on_the_disk_is_refused_before_anything_is_written(
    tree: Path, cache_home: Path, monkeypatch: Patch, refused: Refused
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    refusal = refused("bench", "--ksrc", tree, "--size", "4MiB")
    assert "a copy of the kernel tree needs 2.0 GB on the disk of " in refusal
    assert refusal.endswith("; free some, or set XDG_CACHE_HOME to a directory on another disk")
    assert [name for name in _entries(cache_home) if not name.startswith("configs/")] == []


# Interruptions.


# Words in the command line of a process, the seconds after its start, and the signal.
_COMPILING = [("make mm/mm_init.o", 0.5, signal.SIGTERM), ("make M=", 0.2, signal.SIGINT)]
_MOMENTS = [
    ("make olddefconfig", 0.2, signal.SIGINT),
    *(_COMPILING if LONG else ()),
    ("/host", 0.3, signal.SIGTERM),
    ("/host", 2.0, signal.SIGINT),
]


@pytest.fixture(scope="module")
def user_cache() -> Path:
    """The user's own cache, after a bench."""
    link.link(trees.pair(sources.get(fake_tree.LINE)), objects.DEBIAN)
    return cache.root()


def _running(mark: str) -> dict[int, str]:
    """Return the processes that inherited a mark, with their command lines."""
    processes = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"{_MARK}={mark}".encode() in (path / "environ").read_bytes().split(b"\0"):
                words = (path / "cmdline").read_bytes().split(b"\0")
                processes[int(path.name)] = " ".join(map(os.fsdecode, words))
        except OSError:
            pass  # it has ended meanwhile, or belongs to another user
    return processes


def _wait_for(mark: str, words: str, child: subprocess.Popen[str]) -> None:
    """Wait until a process other than the bench itself has all words in its command line."""

    def runs() -> bool:
        assert child.poll() is None, f"it ended before {words!r} ran: {child.communicate()}"
        lines = (line for process, line in _running(mark).items() if process != child.pid)
        return any(all(word in line for word in words.split()) for line in lines)

    wait_until(runs, 200)


@pytest.mark.usefixtures("default_signals")
def test_an_interrupted_bench_leaves_no_process_and_the_next_run_succeeds(
    user_cache: Path, cache_home: Path, tmp_path: Path
) -> None:
    cache_home.mkdir(parents=True)
    for kind in ("sources", "configs", "trees"):
        (cache_home / kind).symlink_to(user_cache / kind)
    result = tmp_path / "result.json"
    pipe = subprocess.PIPE
    argv = ("bench", "--kernel", fake_tree.LINE, "--workload", "fsdax", "--json", str(result))
    # Compiling all objects again takes minutes.
    compiled = cache_home if LONG else user_cache
    for words, seconds, number in _MOMENTS:
        home = compiled if words == "/host" else cache_home
        mark = tempfile.mkdtemp(dir=tmp_path)
        env = {**os.environ, _MARK: mark, "XDG_CACHE_HOME": str(home.parent)}
        command = [*ARGV, *argv, "--size", "1GB", "--runs", "10000"]
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=env) as child:
            try:
                _wait_for(mark, words, child)
                time.sleep(seconds)
                child.send_signal(number)
                out, err = child.communicate(timeout=20)
            finally:
                child.kill()
        assert (child.returncode, out) == (130, ""), words
        assert "Traceback" not in err
        assert err.splitlines()[-1] == "pagemint: interrupted; run again to continue"
        time.sleep(0.1)  # until the killed processes are gone
        assert _running(mark) == {}, words
        # All entries that exist are complete.
        for kind in ("builds", "native"):
            left = [path for path in (cache_home / kind).glob("*") if path.is_dir()]
            assert [path for path in left if not (path / ".complete").exists()] == []
        assert not result.exists()
    mark = tempfile.mkdtemp(dir=tmp_path)
    env = {**os.environ, _MARK: mark, "XDG_CACHE_HOME": str(compiled.parent)}
    command = [*ARGV, *argv, "--size", "4MiB", "--runs", "1"]
    # A lock that an interrupted run left held would keep it waiting.
    ended = subprocess.run(command, capture_output=True, text=True, env=env, timeout=200)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(result.read_text())["rows"]
    assert _running(mark) == {}
