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
    path = Path(where)
    if path.is_file() or mails.is_directory(path):
        patches = mails.read(path)
        return trees.changed(
            named.name,
            base,
            cache.digest(base.key, *(one.text for one in patches)),
            f"applying {where} to Linux {base.version}",
            lambda work: mails.apply(patches, work, path, base.version),
        )
    if path.is_dir():
        return trees.unpatched(named.name, sources.from_tree(path))
    directory, _, revision = where.rpartition("@")
    return _at_commit(named, Path(directory), revision)


def _check(named: Named) -> None:
    """Check what can be checked without a base tree."""
    if named.where.startswith(_SERIES):
        _topics(named)
        return
    path = Path(named.where)
    directory, _, _ = named.where.rpartition("@")
    if path.is_file():
        mails.read(path)
    elif path.is_dir():
        if not mails.is_directory(path):
            sources.from_tree(path)
    elif directory and Path(directory).is_dir():
        _tree_of(named)
    else:
        raise Failure(f"--tree {named.name}: there is no {named.where}", f"give {_FORMS}")


def _topics(named: Named) -> list[steps.Topic]:
    return steps.topics(named.where.removeprefix(_SERIES).split(","))


def _tree_of(named: Named) -> str:
    """Return git's name for the files of a commit."""
    directory, _, revision = named.where.rpartition("@")
    wanted = f"{revision}^{{tree}}"
    argv = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", wanted]
    try:
        tree = run(argv, cwd=Path(directory), what=f"git rev-parse in {directory}").strip()
    except Failure as failure:
        raise Failure(
            f"--tree {named.name}: {directory} has no commit {revision}",
            "name a commit, branch or tag of a git repository",
        ) from failure
    try:
        run(["git", "cat-file", "-e", f"{tree}:mm/mm_init.c"], cwd=Path(directory), what="git")
    except Failure as failure:
        raise Failure(
            f"--tree {named.name}: {revision} of {directory} is not a Linux tree",
            "name the top directory of a repository of the kernel",
        ) from failure
    return tree


def _at_commit(named: Named, directory: Path, revision: str) -> Tree:
    tree = _tree_of(named)

    def make(work: Path) -> None:
        cache.need_space(work, trees.ROOM, "a kernel tree")
        with step(f"copying {named.where}"):
            # An index of its own leaves the user's index and files as they are.
            env = os.environ | {"GIT_INDEX_FILE": str(work / "index")}
            run(["git", "read-tree", tree], cwd=directory, env=env, what="git read-tree")
            argv = ["git", "checkout-index", "--all", f"--prefix={work / 'linux'}/"]
            run(argv, cwd=directory, env=env, what="git checkout-index")
            (work / "index").unlink()

    path = cache.entry("trees", f"git-{tree}", make) / "linux"
    found = sources.from_tree(path)
    return Tree(named.name, path, f"git-{tree}", steps.nearest_line(found.line), found.version)
