# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from pagemint.base import cache


@pytest.fixture(autouse=True)
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache and a place for reports for each test, so that none touches the user's."""
    home = tmp_path / "cache-home"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-home"))
    return home / "pagemint"


@pytest.fixture(scope="session")
def user_cache() -> Path:
    """The user's own cache."""
    return cache.root()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with tests that build or fetch whole kernels: the others run meanwhile."""
    items.sort(key=lambda item: not item.path.name.startswith(("test_stock", "test_vm")))
