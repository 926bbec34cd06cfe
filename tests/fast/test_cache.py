# SPDX-License-Identifier: GPL-2.0-only
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from stand_ins import Capture, Patch, Refused, wait_until

from pagemint import cli
from pagemint.base import cache
from pagemint.base.errors import Failure

_MAKER = """
import sys
from pathlib import Path
from pagemint.base import cache

def make(path):
    with Path(sys.argv[1]).open("a") as calls:
        calls.write("made\\n")
    (path / "file").write_text("half")
    sys.stdin.readline()
    (path / "file").write_text("whole")

print((cache.entry("kind", "key", make, in_place=sys.argv[2] == "1") / "file").read_text())
"""


def _maker(calls: Path, *, in_place: bool = False) -> subprocess.Popen[str]:
    """Return a process that makes an entry, and completes it when it reads a line."""
    argv = [sys.executable, "-c", _MAKER, str(calls), str(int(in_place))]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _write(path: Path) -> None:
    (path / "file").write_text("whole")


def _names(directory: Path) -> list[str]:
    return sorted(p.name for p in directory.iterdir() if p.suffix != ".lock")


@pytest.mark.parametrize("in_place", [False, True])
def test_entry_is_made_once(cache_home: Path, in_place: bool) -> None:
    calls: list[Path] = []

    def make(path: Path) -> None:
        calls.append(path)
        _write(path)

    first = cache.entry("kind", "key", make, in_place=in_place)
    assert cache.entry("kind", "key", make, in_place=in_place) == first
    assert first == cache_home / "kind/key"
    assert (first / "file").read_text() == "whole"
    assert len(calls) == 1
    assert (calls[0] == first) == in_place
    assert _names(cache_home / "kind") == ["key"]


@pytest.mark.parametrize(
    ("error", "in_place"),
    [(RuntimeError, False), (KeyboardInterrupt, False), (KeyboardInterrupt, True)],
)
def test_interruption_leaves_nothing(
    cache_home: Path, error: type[BaseException], in_place: bool
) -> None:
    def make(path: Path) -> None:
        _write(path)
        raise error

    with pytest.raises(error):
        cache.entry("kind", "key", make, in_place=in_place)
    assert cache.find("kind", "key") is None
    assert _names(cache_home / "kind") == []


def test_failure_in_place_keeps_the_logs_but_is_not_complete(cache_home: Path) -> None:
    def fail(path: Path) -> None:
        (path / "log").touch()
        raise Failure("no", "yes")

    with pytest.raises(Failure):
        cache.entry("kind", "key", fail, in_place=True)
    assert (cache_home / "kind/key/log").exists()
    assert cache.find("kind", "key") is None
    made = cache.entry("kind", "key", _write, in_place=True)
    assert _names(made) == [".complete", "file"]


def test_two_processes_make_it_once(tmp_path: Path, cache_home: Path) -> None:
    calls = tmp_path / "calls"
    first = _maker(calls)
    wait_until((cache_home / "kind/key.staging/file").exists)
    second = _maker(calls)
    assert second.stderr and "waiting for another pagemint" in second.stderr.readline()
    output = [process.communicate("\n", timeout=10) for process in (first, second)]
    assert output == [("whole\n", ""), ("whole\n", "")]
    assert calls.read_text() == "made\n"


@pytest.mark.parametrize("in_place", [False, True])
def test_what_a_killed_process_left_is_removed(
    tmp_path: Path, cache_home: Path, in_place: bool
) -> None:
    calls = tmp_path / "calls"
    victim = _maker(calls, in_place=in_place)
    wait_until((cache_home / "kind" / ("key" if in_place else "key.staging") / "file").exists)
    os.kill(victim.pid, signal.SIGKILL)
    victim.communicate()
    assert cache.find("kind", "key") is None
    made = cache.entry("kind", "key", lambda path: None, in_place=in_place)
    assert _names(made) == [".complete"]
    assert _names(cache_home / "kind") == ["key"]


def test_a_program_that_outlives_a_killed_process_is_waited_for(tmp_path: Path) -> None:
    script = f"touch {tmp_path}/begun; sleep 0.5; touch {tmp_path}/ended"
    program = (
        "from pagemint.base import cache\n"
        "from pagemint.base.run import run\n"
        f"argv = ['sh', '-c', {script!r}]\n"
        "cache.entry('kind', 'key', lambda path: run(argv, what='a test'))\n"
    )
    victim = subprocess.Popen([sys.executable, "-c", program])
    wait_until((tmp_path / "begun").exists)
    victim.kill()
    victim.wait()
    assert not (tmp_path / "ended").exists()
    cache.entry("kind", "key", _write)
    assert (tmp_path / "ended").exists()


def test_what_is_incomplete_in_place_of_an_entry_is_replaced(cache_home: Path) -> None:
    (cache_home / "kind/key").mkdir(parents=True)
    (cache_home / "kind/key/stray").touch()
    assert cache.find("kind", "key") is None
    assert _names(cache.entry("kind", "key", _write)) == [".complete", "file"]


def test_relative_cache_home_is_ignored(monkeypatch: Patch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.root() == Path.home() / ".cache/pagemint"


def test_digest_sees_names_contents_and_boundaries(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one").write_text("1")
    seen = {cache.digest(tmp_path / "a")}
    (tmp_path / "a/one").write_text("2")
    seen.add(cache.digest(tmp_path / "a"))
    (tmp_path / "a/one").rename(tmp_path / "a/two")
    seen.add(cache.digest(tmp_path / "a"))
    (tmp_path / "a/link").symlink_to("two")
    seen.add(cache.digest(tmp_path / "a"))
    assert cache.digest("aB", "b") != cache.digest("a", "Bb")
    seen |= {cache.digest("ab", "c"), cache.digest("a", "bc"), cache.digest("abc")}
    assert len(seen) == 7
    assert cache.digest("a") == cache.digest(b"a")
    assert all(len(digest) == 16 for digest in seen)


def test_digest_of_a_directory_does_not_depend_on_its_place(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub/file").write_text("same")
    assert cache.digest(tmp_path / "x") == cache.digest(tmp_path / "y")


_DAY = 86_400


def _entry(key: str, days: float, size: int = 0) -> Path:
    """Make an entry that was used some days ago, and that no process uses now."""

    def fill(path: Path) -> None:
        (path / "file").write_bytes(b"x" * size)

    path = cache.entry("kind", key, fill)
    cache._in_use.pop(path).close()
    used = time.time() - days * _DAY
    os.utime(path / ".complete", (used, used))
    return path


def test_use_is_what_makes_an_entry_recent() -> None:
    stamp = _entry("key", 9) / ".complete"
    cache.find("kind", "key")
    assert time.time() - stamp.stat().st_mtime > 8 * _DAY
    cache.entry("kind", "key", _write)
    assert time.time() - stamp.stat().st_mtime < 60


def test_the_least_recently_used_are_removed_until_the_rest_fits(
    cache_home: Path, capsys: Capture
) -> None:
    for key, days in (("b", 2), ("c", 1), ("a", 3)):
        _entry(key, days, 1_000_000)
    assert cli.main(["cache", "--prune", "--size", "2.2MB"]) == 0
    assert _names(cache_home / "kind") == ["b", "c"]
    assert "removed 1 of 3 entries" in capsys.readouterr().err
    assert cli.main(["cache", "--prune", "--age", "1.5"]) == 0
    assert _names(cache_home / "kind") == ["c"]
    assert cli.main(["cache", "--prune", "--age", "0", "--size", "100MB"]) == 0
    assert _names(cache_home / "kind") == []


def test_an_entry_that_a_process_uses_is_not_removed(capsys: Capture) -> None:
    path = _entry("key", 0, 10_000)
    assert cache.use("kind", "key") == path
    assert cli.main(["cache", "--prune", "--size", "1B"]) == 0
    err = capsys.readouterr().err
    assert "kind/key is in use and stays" in err
    assert "more than 1 B" in err
    assert cache.find("kind", "key")
    cache._in_use.pop(path).close()
    assert cli.main(["cache", "--prune", "--age", "0"]) == 0
    assert cache.find("kind", "key") is None


def test_an_entry_that_a_process_makes_is_not_removed(tmp_path: Path, cache_home: Path) -> None:
    maker = _maker(tmp_path / "calls")
    wait_until((cache_home / "kind/key.staging/file").exists)
    assert cli.main(["cache", "--prune", "--age", "0"]) == 0
    assert maker.communicate("\n", timeout=10) == ("whole\n", "")


def test_what_a_failure_left_is_removed(cache_home: Path) -> None:
    (cache_home / "kind/key.staging").mkdir(parents=True)
    (cache_home / "kind/other").mkdir()
    assert cli.main(["cache", "--prune", "--age", "0"]) == 0
    assert _names(cache_home / "kind") == []


def test_an_entry_removed_and_made_again_meanwhile_is_not_taken_for_the_old_one(
    monkeypatch: Patch,
) -> None:
    path = _entry("key", 0)
    flock = fcntl.flock

    def slow(file: int, operation: int) -> None:
        flock(file, operation)
        stamp = path / ".complete"
        stamp.rename(path / "kept")  # its inode must not be given to the new one
        stamp.touch()

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", slow)
        assert cache.use("kind", "key") is None
    assert cache.use("kind", "key") == path


def _size() -> int:
    return sum(entry.size for entry in cache.entries())


def test_shared_files_count_once() -> None:
    first = _entry("a", 2, 1_000_000)
    second = _entry("b", 1)
    alone = _size()
    (second / "link").hardlink_to(first / "file")
    assert _size() == alone
    cache.remove(cache.entries()[0])
    assert _size() > 1_000_000


def test_a_cache_that_cannot_be_written_is_usable(monkeypatch: Patch) -> None:
    path = _entry("key", 9)
    refuse = Mock(side_effect=PermissionError)
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(Path, "open", refuse)
    assert cache.entry("kind", "key", _write) == path


def test_the_table_has_each_kind(capsys: Capture) -> None:
    _entry("key", 3)
    _entry("new", 0)
    assert cli.main(["cache"]) == 0
    words = [line.replace("│", " ").split() for line in capsys.readouterr().out.splitlines()]
    (kind,) = [line for line in words if line[:1] == ["kind"] and line[1] != "entries"]
    assert (kind[1], kind[-4:]) == ("2", ["0", "minutes", "3", "days"])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--prune"], "--prune needs a bound"),
        (["--age", "3"], "give --prune too"),
        (["--prune", "--age", "-1"], "--age -1 is not a number of days"),
        (["--prune", "--age", "nan"], "--age nan is not a number of days"),
        (["--prune", "--size", "x"], "'x' is not a size"),
    ],
)
def test_bad_bounds_are_one_line(argv: list[str], message: str, refused: Refused) -> None:
    assert message in refused("cache", *argv)
