# SPDX-License-Identifier: GPL-2.0-only
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import fake_tree
import hypothesis
import pytest
from stand_ins import Capture, Patch, Refused, without_progress

from pagemint import cli
from pagemint.base import cache

# No test depends on how fast the machine is.
hypothesis.settings.register_profile(
    "pagemint", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
# One failure is enough for scripts/mutants, however large its example is.
hypothesis.settings.register_profile(
    "mutants",
    hypothesis.settings.get_profile("pagemint"),
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    database=None,
)
hypothesis.settings.load_profile("pagemint")


@pytest.fixture(autouse=True)
def cache_home(tmp_path: Path, monkeypatch: Patch) -> Path:
    """A cache and a place for reports for each test, so that none touches the user's."""
    home = tmp_path / "cache-home"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-home"))
    return home / "pagemint"


@pytest.fixture
def debian_config(cache_home: Path) -> None:
    """A configuration of Debian's in the cache, so that none is fetched."""
    entry = cache_home / "configs" / f"{fake_tree.LINE}.1-1"
    entry.mkdir(parents=True)
    (entry / "config").write_text("CONFIG_64BIT=y\n")
    (entry / ".complete").touch()


@pytest.fixture
def refused(capsys: Capture) -> Refused:
    """Runs a command line that is refused, and returns the one line that says why."""

    def run(*argv: str | Path, usage: bool = False) -> str:
        with pytest.raises(SystemExit, match="2") if usage else nullcontext():
            assert cli.main([*map(str, argv)]) == 1
        out, err = capsys.readouterr()
        (line,) = without_progress(err)
        assert line.startswith("pagemint: ") and "internal" not in line and out == ""
        return line

    return run


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Signals as at login for the programs of a test, though nohup and `&` leave some ignored.

    Only for the time of the test, so that nohup goes on protecting the run.
    """
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    hang_up = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGHUP, hang_up)


@pytest.fixture(scope="session")
def user_cache() -> Path:
    """The user's own cache."""
    return cache.root()


@pytest.fixture
def in_user_cache(cache_home: Path, user_cache: Path, monkeypatch: Patch) -> None:
    """The user's own cache for a test that needs whole kernels."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(user_cache.parent))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with tests that build or fetch whole kernels: the others run meanwhile."""
    items.sort(key=lambda item: item.path.parent.name != "guest")
