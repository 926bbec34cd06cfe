# SPDX-License-Identifier: GPL-2.0-only
"""The files that `make patches` writes."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import patch_files
import pytest
from stand_ins import WHO

from pagemint import __version__
from pagemint.base.git import git
from pagemint.trees import patches, sources

_ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out") / "patches"
    patch_files.write(folder)
    return folder


@pytest.mark.usefixtures("in_user_cache")
@pytest.mark.parametrize("topics", [None, *(topic.name for topic in patches.topics())])
@pytest.mark.parametrize("line", patches.lines())
def test_git_applies_the_patches_and_leaves_what_the_series_does(
    output: Path, tmp_path: Path, line: str, topics: str | None
) -> None:
    tree = sources.get(line).tree
    chosen = patches.topics(topics and [topics])
    changes = patches.plan(tree, line, chosen)
    wanted = {path: data for change in changes for path, data in change.contents.items()}
    for path in wanted:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        if (tree / path).exists():
            shutil.copyfile(tree / path, tmp_path / path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A", "--force")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "base", **WHO)
    order = [path for path in (output / line / "series").read_text().splitlines() if path[0] != "#"]
    mine = [path for path in order if path.split("/")[0] in {topic.name for topic in chosen}]
    assert mine or not changes
    if mine:
        git(tmp_path, "am", "-q", *(str(output / line / path) for path in mine), **WHO)
    assert {path: (tmp_path / path).read_bytes() for path in wanted} == wanted
    log = git(tmp_path, "log", "--reverse", "--format=%B%x00").split("\0\n")[1:-1]
    assert [text.strip() for text in log] == [change.step.message.strip() for change in changes]


def test_each_line_has_a_base() -> None:
    assert [base.rpartition(".")[0] for base in patch_files.bases()] == patches.lines()


def test_an_archive_has_the_patches_and_checksums_cover_all(output: Path, tmp_path: Path) -> None:
    for base in patch_files.bases():
        name = f"pagemint-{__version__}-linux-{base}"
        with tarfile.open(output / f"{name}.tar.xz") as archive:
            archive.extractall(tmp_path, filter="data")
        line = output / base.rpartition(".")[0]
        packed = {path.relative_to(tmp_path / name) for path in (tmp_path / name).rglob("*")}
        assert packed == {path.relative_to(line) for path in line.rglob("*")}
    listed = dict(row.split("  ")[::-1] for row in (output / "SHA256SUMS").read_text().splitlines())
    written = [path for path in output.rglob("*") if path.is_file() and path.name != "SHA256SUMS"]
    assert listed == {
        str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in written
    }


def test_no_package_is_needed_and_the_same_commit_makes_the_same_files(
    output: Path, tmp_path: Path
) -> None:
    for name, program in {
        "python3": os.path.realpath(sys.executable),
        **{name: shutil.which(name) for name in ("git", "make", "sh")},
    }.items():
        assert program
        (tmp_path / name).symlink_to(program)
    checkout = tmp_path / "a checkout"
    git(tmp_path, "clone", "-q", "--no-local", "--depth", "1", f"file://{_ROOT}", str(checkout))
    subprocess.run(
        ["make", "-s", "patches"],
        cwd=checkout,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        check=True,
    )
    made = (checkout / "out/patches/SHA256SUMS").read_text()
    assert made == (output / "SHA256SUMS").read_text()
