# SPDX-License-Identifier: GPL-2.0-only
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from stand_ins import Patch, wait_until

from pagemint.base.errors import Failure
from pagemint.base.run import interruption_put_off, run


def _gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def test_directory_environment_output_and_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = "pwd; echo $NAME; echo noise >&2"
    env = {**os.environ, "NAME": "value"}
    output = run(["sh", "-c", script], cwd=tmp_path, env=env, log=log, what="a test")
    assert output == f"{tmp_path}\nvalue\n"
    assert log.read_text() == output + "noise\n"


@pytest.mark.parametrize(
    ("program", "remedy"),
    [("objcopy", "install it (Debian: binutils; "), ("no-such-program", "install it")],
)
def test_missing_program(program: str, remedy: str, monkeypatch: Patch) -> None:
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
@pytest.mark.usefixtures("default_signals")
def test_the_whole_group_is_ended_on_interrupt(tmp_path: Path, stubborn: bool) -> None:
    """The child's own child must not survive Ctrl-C, even one that ignores SIGTERM."""
    pids = tmp_path / "pids"
    trap = "trap '' TERM;" if stubborn else ""
    script = f"{trap} sleep 60 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"
    program = (
        "import sys, pagemint.base.run as r; r._GRACE = 0.3\n"
        f"r.run(['sh', '-c', {script!r}], what='a test')"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    wait_until(pids.exists)
    children = [int(pid) for pid in pids.read_text().split()]
    assert not any(map(_gone, children))
    parent.send_signal(signal.SIGINT)
    _, stderr = parent.communicate(timeout=10)
    assert b"KeyboardInterrupt" in stderr
    wait_until(lambda: all(map(_gone, children)), 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("default_signals")
def test_a_child_is_ended_that_was_started_as_the_signal_came(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The signal comes when the child runs and Popen() has not returned."""
    pid = tmp_path / "pid"
    program = f"""
import os, signal, subprocess, pagemint.base.run
signal.signal(signal.SIGTERM, signal.default_int_handler)
start = subprocess.Popen.__init__
def interrupted(child, *args, **kwargs):
    start(child, *args, **kwargs)
    open({str(pid)!r}, "w").write(str(child.pid))
    os.kill(os.getpid(), {int(number)})
    list(range(1000))
subprocess.Popen.__init__ = interrupted
pagemint.base.run.run(["sleep", "60"], what="a test")
"""
    ended = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, timeout=30)
    assert b"KeyboardInterrupt" in ended.stderr
    assert _gone(int(pid.read_text()))


@pytest.mark.usefixtures("default_signals")
def test_an_interruption_waits_for_the_outermost() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interruption_put_off():
        with interruption_put_off():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]
