# SPDX-License-Identifier: GPL-2.0-only
"""A system without apt and dpkg: from a fresh clone and an empty cache to the first screen."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from pagemint.base.git import git
from pagemint.trees import patches, sources

_ROOT = Path(__file__).parents[2]


@pytest.fixture
def no_debian(tmp_path: Path) -> Path:
    """A directory with links to the programs of this machine but those of Debian's packages."""
    made = tmp_path / "bin"
    made.mkdir()
    for folder in os.environ["PATH"].split(":"):
        for program in Path(folder).glob("*"):
            link = made / program.name
            if not program.name.startswith(("apt", "dpkg")) and not link.is_symlink():
                link.symlink_to(program.resolve() if "shims" not in folder else program)
    return made


@pytest.mark.skipif(not os.environ.get("PAGEMINT_LONG"), reason="installs and builds for minutes")
@pytest.mark.usefixtures("in_user_cache")
def test_the_bench_runs_from_a_fresh_clone(
    tmp_path: Path, cache_home: Path, no_debian: Path
) -> None:
    tree = tmp_path / "own tree"
    tree.symlink_to(sources.get(patches.lines()[-1]).tree)
    checkout = tmp_path / "checkout"
    git(tmp_path, "clone", "-q", "--no-local", "--depth", "1", f"file://{_ROOT}", str(checkout))
    ended = subprocess.run(
        ["make", "-s", "bench", f"BENCH_ARGS=--quick --size 1GB --runs 3 --ksrc '{tree}'"],
        cwd=checkout,
        env=os.environ | {"PATH": str(no_debian), "XDG_CACHE_HOME": str(cache_home.parent)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert "using the defconfig" in ended.stderr
    assert "apt-get install" not in ended.stderr
    assert "fsdax" in ended.stdout
    result = json.loads((checkout / "out/bench.json").read_text())
    assert result["kernel"]["config"].startswith("defconfig")
    assert (checkout / "out/bench-report/index.html").exists()
