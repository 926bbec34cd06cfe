# SPDX-License-Identifier: GPL-2.0-only
import time

import pytest

from pagemint.base import progress
from pagemint.base.progress import bar, step


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_QUIET", 0.05)
    monkeypatch.setattr(progress, "_EVERY", 0.05)
    monkeypatch.setattr(progress, "_WORTH", 0.02)


def test_a_quick_step_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with step("quick"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_long_step_says_so_and_when_it_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    with step("long [a]"):
        time.sleep(0.15)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "long [a] ...\nlong [a]  0.2 s\n" or err == "long [a] ...\nlong [a]  0.1 s\n"


def test_a_failed_step_is_not_called_done(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError), step("broken"):
        time.sleep(0.08)
        raise ValueError
    assert capsys.readouterr().err == "broken ...\n"


def test_a_bar_tells_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with bar("copy", 4) as advance:
        advance(1)
        time.sleep(0.08)
        advance(2)
        time.sleep(0.08)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "copy  25%"
    assert "copy  75%" in lines
    assert lines[-1].endswith(" s")


def test_a_terminal_shows_both(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with step("outer [b]"), bar("inner", 2) as advance:
        advance(1)
        time.sleep(0.05)
    out, err = capsys.readouterr()
    assert out == ""
    assert "outer [b]" in err
    assert "inner" in err
