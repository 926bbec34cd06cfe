# SPDX-License-Identifier: GPL-2.0-only
import re
import sys
import time

import pytest
from stand_ins import Capture, Patch

from pagemint.base import progress
from pagemint.base.progress import doing, note, step


@pytest.fixture(autouse=True)
def fast(monkeypatch: Patch) -> None:
    monkeypatch.setattr(progress, "_SHORT", 0.05)


def wait_for(text: str, capsys: Capture) -> None:
    """Wait until stderr ends with `text`, which is then read."""
    until, seen = time.monotonic() + 10, ""
    while not seen.endswith(text):
        assert time.monotonic() < until, f"{seen!r} does not end with {text!r}"
        time.sleep(0.005)
        seen += capsys.readouterr().err


def test_a_quick_step_says_nothing(capsys: Capture) -> None:
    with step("quick"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_long_step_says_that_it_goes_on_and_how_long_it_took(capsys: Capture) -> None:
    with step("long [a]", 4) as advance:
        advance(1)
        wait_for("long [a] ...\n", capsys)
        note("one")
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"one\nlong \[a\] \.\.\. \d+\.\d s\n", err)


def test_a_failed_step_is_not_called_done(capsys: Capture) -> None:
    with pytest.raises(ValueError), step("broken"):
        wait_for("broken ...\n", capsys)
        raise ValueError
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_steps_and_bars_and_the_part_that_is_under_way(
    capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with step("outer [b]"), step("inner", 2) as advance:
        advance(1)
        time.sleep(0.1)
    with step("other"), doing(lambda: "part [1]"):
        time.sleep(1.2)  # the part is asked for each second
    out, err = capsys.readouterr()
    assert out == ""
    assert "outer [b]" in err
    assert "part [1]" in err
    assert re.search(r"inner \.\.\. \d+\.\d s", err)
    assert re.search(r"other \.\.\. \d+\.\d s", err)
