# SPDX-License-Identifier: GPL-2.0-only
"""The trees that the user names for a comparison: NAME=WHERE."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pagemint.base import cache
from pagemint.base.errors import Failure
from pagemint.base.progress import step
from pagemint.base.run import run
from pagemint.kernels import mails, sources, steps, trees
from pagemint.kernels.trees import Tree

_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,19}"
_TAKEN = ("base", "base2", "patched", "stock")
_WHERE_GIT_LOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
_SERIES = "series:"
_FORMS = "DIR, DIR@REV, a mailbox, a directory of patches, or series:TOPIC,..."


@dataclass(frozen=True)
class Named:
    """A tree as the user named it.

    Attributes:
        name: its name.
        where: the text that says where it comes from.
    """

    name: str
    where: str


def parse(texts: Sequence[str]) -> list[Named]:
    """Return the trees that several NAME=WHERE name.

    Raises:
        Failure: one has another form, or a name is not allowed or given twice.
    """
    found: list[Named] = []
    for text in texts:
        name, separator, where = text.partition("=")
        if not separator or not where:
            raise Failure(f"--tree {text}: not NAME=WHERE", f"WHERE is {_FORMS}")
        if not re.fullmatch(_NAME, name):
            raise Failure(
                f"--tree {text}: {name!r} is not a name",
                "use up to 20 letters, digits and the characters . _ + -",
            )
        if name in _TAKEN:
            raise Failure(f"--tree {text}: the name {name} is taken", "choose another name")
        if name in (one.name for one in found):
            raise Failure(f"--tree {text}: there are two trees named {name}", "rename one")
        found.append(Named(name, where))
        _check(found[-1])
    return found


def make(named: Named, base: Tree) -> Tree:
    """Return a named tree, made if it is not in the cache. The user's own files do not change.

    Args:
        named: the tree.
        base: the tree to which patches and topics are applied.

    Raises:
        Failure: there is no such tree, commit or topic; a patch does not apply; the disk is full.
    """
    where = named.where
    if where.startswith(_SERIES):
        return trees.with_topics(named.name, base, _topics(named))
    path = Path(where).expanduser()
    if _is_tree(path):
        return trees.unpatched(named.name, sources.from_tree(path))
    if path.is_file() or mails.is_directory(path):
        patches = mails.read(path)
        return trees.changed(
            named.name,
            base,
            cache.digest(base.key, *(one.text for one in patches)),
            f"applying {where} to Linux {base.version}",
            lambda work: mails.apply(patches, work, path, base.version),
        )
    return _at_commit(named)


def _check(named: Named) -> None:
    """Check what can be checked without a base tree."""
    if named.where.startswith(_SERIES):
        _topics(named)
        return
    path = Path(named.where).expanduser()
    if _is_tree(path):
        return
    if path.is_file():
        mails.read(path)
    elif path.is_dir():
        if not mails.is_directory(path):
            sources.from_tree(path)
    else:
        _tree_of(named)


def _is_tree(path: Path) -> bool:
    return (path / "Makefile").is_file() and (path / "mm/mm_init.c").is_file()


def _repository(named: Named) -> tuple[Path, str]:
    """Return the directory and the revision of DIR@REV.

    Raises:
        Failure: there is no such directory.
    """
    parts = named.where.split("@")
    for end in range(1, len(parts)):
        directory = Path("@".join(parts[:end])).expanduser()
        if parts[0] and directory.is_dir():
            return directory, "@".join(parts[end:])
    raise Failure(f"--tree {named.name}: there is no {named.where}", f"give {_FORMS}")


def _git(directory: Path, *argv: str, **more: str) -> str:
    """Run git on the repository of a directory, whatever repository it is called from."""
    env = {key: value for key, value in os.environ.items() if key not in _WHERE_GIT_LOOKS} | more
    return run(["git", *argv], cwd=directory, env=env, what=f"git {argv[0]} in {directory}")


def _topics(named: Named) -> list[steps.Topic]:
    return steps.topics(named.where.removeprefix(_SERIES).split(","))


def _tree_of(named: Named) -> str:
    """Return git's name for the files of a commit."""
    directory, revision = _repository(named)
    wanted = f"{revision or 'HEAD'}^{{tree}}"
    try:
        tree = _git(directory, "rev-parse", "--verify", "--end-of-options", wanted).strip()
    except Failure as failure:
        raise Failure(
            f"--tree {named.name}: {directory} has no commit {revision} ({failure.message})",
            "name a commit, branch or tag of a git repository",
        ) from failure
    try:
        _git(directory, "cat-file", "-e", f"{tree}:mm/mm_init.c")
    except Failure as failure:
        raise Failure(
            f"--tree {named.name}: {revision} of {directory} is not a Linux tree",
            "name the top directory of a repository of the kernel",
        ) from failure
    return tree


def _at_commit(named: Named) -> Tree:
    directory, _ = _repository(named)
    tree = _tree_of(named)

    def make(work: Path) -> None:
        cache.need_space(work, trees.ROOM, "a kernel tree")
        with step(f"copying {named.where}"):
            # An index and files of its own: those of the user stay as they are.
            linux, index = work / "linux", str(work / "index")
            linux.mkdir()
            own = _git(directory, "rev-parse", "--absolute-git-dir").strip()
            for argv in (["read-tree", tree], ["checkout-index", "--all"]):
                where = {"GIT_DIR": own, "GIT_WORK_TREE": str(linux), "GIT_INDEX_FILE": index}
                _git(linux, *argv, **where)
            Path(index).unlink()

    path = cache.entry("trees", f"git-{tree}", make) / "linux"
    found = sources.from_tree(path)
    return Tree(named.name, path, f"git-{tree}", steps.nearest_line(found.line), found.version)
