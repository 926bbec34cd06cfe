# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of each test's own, and a place for reports: none sees or touches the user's."""
    home = tmp_path / "cache-home"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-home"))
    return home / "pagemint"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what builds whole kernels, or fetches one: the rest goes on meanwhile."""
    items.sort(key=lambda item: not item.path.name.startswith(("test_stock", "test_vm")))
