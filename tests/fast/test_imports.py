# SPDX-License-Identifier: GPL-2.0-only
"""The imports of pagemint/ keep the contracts in pyproject.toml."""

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def test_imports_keep_the_contracts() -> None:
    argv: list[str | Path] = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    ended = subprocess.run(argv, capture_output=True, text=True, cwd=_ROOT)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "2 kept, 0 broken" in ended.stdout
