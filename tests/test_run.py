# SPDX-License-Identifier: GPL-2.0-only
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pagemint.errors import Failure
from pagemint.run import run


def _gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def test_returns_stdout_alone() -> None:
    assert run(["sh", "-c", "echo data; echo noise >&2"], what="a test") == "data\n"


def test_directory_environment_and_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = "pwd; echo $NAME; echo noise >&2"
    env = {**os.environ, "NAME": "value"}
    output = run(["sh", "-c", script], cwd=tmp_path, env=env, log=log, what="a test")
    assert output == f"{tmp_path}\nvalue\n"
    assert log.read_text() == output + "noise\n"


@pytest.mark.parametrize(
    ("program", "remedy"),
    [("objcopy", "apt-get install binutils"), ("no-such-program", "install it")],
)
def test_missing_program(program: str, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Failure) as caught:
        run([program], what="a test")
    assert program in caught.value.message
    assert remedy in caught.value.remedy


def test_missing_directory_is_not_taken_for_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="no directory"):
        run(["true"], cwd=tmp_path / "none", what="a test")


def test_failure_tells_the_error_line_and_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = (
        "echo 'a.c:1: error: first'; echo 'b.c:2: error: bad' >&2; echo detail >&2;"
        "echo 'make: *** [b.o] Error 1' >&2; exit 2"
    )
    with pytest.raises(Failure) as caught:
        run(["sh", "-c", script], log=log, what="building b.o")
    assert caught.value.message == "building b.o failed: b.c:2: error: bad"
    assert str(log) in caught.value.remedy
    assert "detail" in log.read_text()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 3", "exit status 3"),
        ("kill -9 $$", "ended by SIGKILL"),
        ("echo plain; exit 1", "plain"),
    ],
)
def test_failure_without_an_error_line(script: str, message: str) -> None:
    with pytest.raises(Failure, match=f"failed: {message}$|failed: {message};"):
        run(["sh", "-c", script], what="a test")


@pytest.mark.parametrize("stubborn", [False, True])
def test_the_whole_group_is_ended_on_interrupt(tmp_path: Path, stubborn: bool) -> None:
    """The child's own child must not survive Ctrl-C, even one that ignores SIGTERM."""
    pids = tmp_path / "pids"
    trap = "trap '' TERM;" if stubborn else ""
    script = f"{trap} sleep 60 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"
    program = (
        "import sys, pagemint.run as r; r._GRACE = 0.3\n"
        f"r.run(['sh', '-c', {script!r}], what='a test')"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    until = time.monotonic() + 5
    while not pids.exists():
        assert time.monotonic() < until
        time.sleep(0.005)
    children = [int(pid) for pid in pids.read_text().split()]
    assert not any(map(_gone, children))
    time.sleep(0.3)  # the child can be this far before Popen() has returned in its parent
    parent.send_signal(signal.SIGINT)
    _, stderr = parent.communicate(timeout=10)
    assert b"KeyboardInterrupt" in stderr
    until = time.monotonic() + 2
    while not all(map(_gone, children)) and time.monotonic() < until:
        time.sleep(0.01)
    assert all(map(_gone, children))
