# SPDX-License-Identifier: GPL-2.0-only
"""Kernel trees of the user's own: their files, and a directory like them that a build can use.

The directory shares its files with the user's tree where the file system allows that, so nobody
may write into a file there, only replace it.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from pagemint.base import cache
from pagemint.base.errors import Failure, MachineFailure
from pagemint.base.git import git
from pagemint.base.run import run

# 500 MB of headers for GPUs, which no build here includes.
_LEFT_OUT = "drivers/gpu/drm/amd/include/asic_reg/"
_BUILT = (".o", ".ko", ".cmd", ".a")
# With one of these a source tree cannot be built from in another directory.
_BUILT_IN = (".config", "include/config", "include/generated", "arch/x86/include/generated")
_STILL = "run again when nothing changes the tree"
_HOW = ("--reflink=always", "--link", "--reflink=auto")  # options of cp, the best one first


def files(tree: Path) -> list[str]:
    """Return the files of a tree, as they lie there: all but built ones.

    In a git repository these are the files that git tracks or would add.
    """
    names = _known_to_git(tree) or _walked(tree)
    return sorted(name for name in names if not name.startswith(_LEFT_OUT))


def listing(tree: Path, names: Sequence[str]) -> str:
    """Return a digest of the names, sizes and times of a tree's files; quicker than contents.

    Raises:
        Failure: a file has gone.
    """
    lines = [str(tree)]
    for name in names:
        try:
            info = (tree / name).lstat()
        except OSError as error:
            raise Failure(f"cannot read {tree / name}: {error.strerror}", _STILL) from error
        lines.append(f"{name} {info.st_size} {info.st_mtime_ns}")
    return cache.digest("\n".join(lines))


def link(tree: Path, names: Sequence[str], to: Path, environment: Mapping[str, str]) -> None:
    """Make a directory with files of a tree, without a build that was made in it.

    A file that is changed in place meanwhile changes there as well if it is a hard link.

    Args:
        tree: the tree, which stays as it is.
        names: its files, relative to it.
        to: the new directory.
        environment: the environment of a kernel build.

    Raises:
        Failure: a file cannot be read.
    """
    probe, listed = to.with_name("probe"), to.with_name("files")
    listed.write_bytes(b"".join(os.fsencode(f"{name}\0") for name in names))
    argv: list[str | Path] = ["xargs", "-0", "-a", listed, "-P", str(os.cpu_count() or 1)]
    argv += ["cp", "--no-dereference", "--parents", "--target-directory", to]
    for how in _HOW:
        try:
            # A file system that cannot do it says so for one file, not for 90,000.
            run(["cp", how, tree / "Makefile", probe], what=f"copying {tree}/Makefile")
            probe.unlink()
            # Two programs that make the same directory at once would fail.
            for folder in sorted({(to / name).parent for name in names}):
                folder.mkdir(parents=True, exist_ok=True)
            run([*argv, how, "--"], cwd=tree, what=f"copying {tree}")
            break
        except MachineFailure:
            raise
        except Failure as failure:
            # Never copy over hard links: that would write into the user's files.
            probe.unlink(missing_ok=True)
            shutil.rmtree(to, ignore_errors=True)
            if how == _HOW[-1]:
                raise Failure(failure.message, _STILL) from None
    listed.unlink()
    if any((to / name).exists() for name in _BUILT_IN):
        run(["make", "-s", "mrproper"], cwd=to, env=environment, what="cleaning the copy")


def _known_to_git(tree: Path) -> list[str]:
    """Return the files that git tracks or would add; none if git does not know the tree."""
    if not (tree / ".git").exists():
        return []
    # Listing names runs nothing of the repository, so its owner does not matter.
    settings = ("-c", f"safe.directory={tree.resolve()}")
    try:
        listed = git(tree, *settings, "ls-files", "-z", "-c", "-o", "--exclude-standard")
    except Failure:
        return []  # such as a worktree whose repository is not mounted here
    names = dict.fromkeys(listed.split("\0")[:-1])
    # A deleted file is not there, and a repository within it is a directory.
    there = [name for name in names if (tree / name).is_symlink() or (tree / name).is_file()]
    return there if "Makefile" in there else []


def _walked(tree: Path) -> list[str]:
    """Return all files below a directory but `.git` and most that are built."""
    paths = []
    for folder, folders, names in os.walk(tree):
        at = Path(folder)
        if at == tree:
            folders[:] = [name for name in folders if name != ".git"]
            names[:] = [name for name in names if name != ".git"]
        links = [name for name in folders if (at / name).is_symlink()]
        paths += [
            str((at / name).relative_to(tree))
            for name in (*names, *links)
            if not name.endswith(_BUILT)
        ]
    return paths
