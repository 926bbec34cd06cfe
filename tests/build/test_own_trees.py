# SPDX-License-Identifier: GPL-2.0-only
"""Kernel trees of the user's own: the copy has all that a build needs, and the tree stays."""

import hashlib
import os
from pathlib import Path

import fake_tree
import pytest
from stand_ins import Patch, contents, program
from stand_ins import git as _git

from pagemint.base import run
from pagemint.base.errors import Failure
from pagemint.trees import own, sources, trees
from pagemint.trees.trees import Tree

_ROOT = Path("/")
_IGNORED = "*.o\n.config\n"


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A tree without git, at a path with spaces."""
    made = fake_tree.make(tmp_path / "my own" / "linux tree")
    (made / "scripts").mkdir()
    program(made / "scripts/run", "")
    (made / "link").symlink_to("mm")
    (made / ".gitignore").write_text(_IGNORED)
    (made / "mm/built.o").write_bytes(b"\x7fELF")
    return made


@pytest.fixture
def repository(plain: Path) -> Path:
    """The same tree in git, with a local change, a new file, a deleted file and a build in it."""
    (plain / "COPYING").touch()
    _git(plain, "init", "-q")
    _git(plain, "add", ".")
    _git(plain, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all")
    (plain / "Kconfig").write_text("changed\n")
    (plain / "mm/new.c").write_text("int a;\n")
    (plain / "COPYING").unlink()
    (plain / ".config").write_text("CONFIG_A=y\n")
    return plain


def _digest(top: Path) -> str:
    """Return a digest of all names, contents, modes and times of a directory and below it."""
    total = hashlib.sha256()
    for path in [top, *sorted(top.rglob("*"))]:
        info = path.lstat()
        total.update(f"{path} {info.st_mode} {info.st_mtime_ns}".encode())
        if path.is_file() and not path.is_symlink():
            total.update(path.read_bytes())
    return total.hexdigest()


def _pair(tree: Path) -> tuple[Tree, Tree]:
    """Return the trees that a bench builds, and check that the user's stays as it is."""
    before = _digest(tree)
    made = trees.pair(sources.from_tree(tree))
    assert _digest(tree) == before
    return made


def test_a_plain_tree_is_taken_whole(plain: Path) -> None:
    base, patched = _pair(plain)
    assert set(contents(base.path)) == set(contents(plain)) - {"mm/built.o"}
    assert os.access(base.path / "scripts/run", os.X_OK)
    assert (base.path / "link").readlink() == Path("mm")
    assert (patched.path / "mm/mm_init.c").read_bytes() != (plain / "mm/mm_init.c").read_bytes()


def test_a_repository_is_taken_as_it_lies_there(repository: Path) -> None:
    base, _ = _pair(repository)
    assert (base.path / "Kconfig").read_text() == "changed\n"
    names = set(contents(base.path))
    assert "mm/new.c" in names
    assert not names & {"COPYING", ".config", "mm/built.o"}
    assert not (base.path / ".git").exists()


def test_a_build_in_the_tree_makes_no_new_copy(repository: Path) -> None:
    base, _ = _pair(repository)
    (repository / "mm/other.o").touch()
    assert _pair(repository)[0].key == base.key
    (repository / "Kconfig").write_text("changed again\n")
    assert _pair(repository)[0].key != base.key


def test_a_worktree_and_a_shallow_clone(repository: Path, tmp_path: Path) -> None:
    _git(repository, "worktree", "add", "-q", tmp_path / "worktree")
    _git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", tmp_path / "shallow")
    for tree in (tmp_path / "worktree", tmp_path / "shallow"):
        assert contents(_pair(tree)[0].path) == contents(tree)
    # A worktree without its repository.
    (repository / ".git").rename(tmp_path / "elsewhere")
    (tmp_path / "worktree/new.c").touch()
    assert contents(_pair(tmp_path / "worktree")[0].path) == contents(tmp_path / "worktree")


def test_a_hook_of_the_repository_does_not_run(repository: Path, tmp_path: Path) -> None:
    hook = program(tmp_path / "hook", f"touch {tmp_path}/ran")
    _git(repository, "config", "core.fsmonitor", hook)
    _pair(repository)
    assert not (tmp_path / "ran").exists()


def test_files_that_cannot_be_linked_are_copied(plain: Path, monkeypatch: Patch) -> None:
    def refuse(argv: list[str | Path], *, cwd: Path = _ROOT, what: str) -> str:
        if "--link" in argv and "xargs" in argv:
            # As if a later file could not be linked: some are already.
            run.run(["cp", "--link", cwd / "Makefile", argv[10]], what="linking")
            raise Failure("cp: Operation not permitted", "none")
        return run.run(argv, cwd=cwd, what=what)

    monkeypatch.setattr(own, "run", refuse)
    monkeypatch.setattr(own, "_HOW", own._HOW[1:])
    base, _ = _pair(plain)
    assert (base.path / "Makefile").stat().st_nlink == 2  # base and patched
    assert (plain / "Makefile").stat().st_nlink == 1


def test_a_tree_that_changes_is_refused_and_leaves_nothing(
    plain: Path, cache_home: Path, monkeypatch: Patch
) -> None:
    names = [*own.files(plain), "gone.c"]
    with pytest.raises(Failure, match=r"cannot read .*gone\.c: No such file"):
        own.listing(plain, names)
    monkeypatch.setattr(own, "files", lambda tree: names)
    monkeypatch.setattr(own, "listing", lambda tree, names: "key")
    with pytest.raises(Failure, match=r"gone\.c") as caught:
        trees.pair(sources.from_tree(plain))
    assert "nothing changes the tree" in caught.value.remedy
    assert not list((cache_home / "trees").glob("own-key*/"))
