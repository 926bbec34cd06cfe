# SPDX-License-Identifier: GPL-2.0-only
"""The trees that the user names for a comparison: NAME=WHERE."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pagemint import words
from pagemint.base import cache, disk
from pagemint.base.errors import Failure
from pagemint.base.git import git
from pagemint.base.progress import note, step
from pagemint.trees import mails, patches, sources, trees
from pagemint.trees.mail_order import Chosen, Reading
from pagemint.trees.patches import Topic
from pagemint.trees.trees import Tree

_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,19}"
_SERIES = "series:"
_FORMS = "DIR, DIR@REV, a mailbox or Maildir, a directory of patches, or series:TOPIC,..."


@dataclass(frozen=True)
class Named:
    """A tree as the user named it.

    Attributes:
        name: its name.
        where: the text that says where it comes from.
        make: returns it, made if it is not in the cache; the argument is the tree to which patches
            and topics are applied. Raises Failure if a patch does not apply, or the disk is full.
    """

    name: str
    where: str
    make: Callable[[Tree], Tree] = field(compare=False)


def parse(texts: Sequence[str]) -> list[Named]:
    """Return the trees that several NAME=WHERE name. The user's own files do not change.

    Raises:
        Failure: one has another form; a name is not allowed or given twice; or there is no such
            tree, commit, topic or patch.
    """
    named: list[Named] = []
    for text in texts:
        name, separator, where = text.partition("=")
        if not separator or not where:
            raise Failure(f"--tree {text}: not NAME=WHERE", f"WHERE is {_FORMS}")
        if not re.fullmatch(_NAME, name):
            raise Failure(
                f"--tree {text}: {name!r} is not a name",
                "use up to 20 letters, digits and the characters . _ + -",
            )
        if name in words.OWN:
            raise Failure(f"--tree {text}: the name {name} is taken", "choose another name")
        if name in (tree.name for tree in named):
            raise Failure(f"--tree {text}: there are two trees named {name}", "rename one")
        named.append(Named(name, where, _maker(name, where)))
    return named


def _maker(name: str, where: str) -> Callable[[Tree], Tree]:
    """Return the function that makes a tree; whatever it needs of the user's is read here."""
    if where.startswith(_SERIES):
        names = where.removeprefix(_SERIES).split(",")
        topics = patches.topics(names)
        return lambda base: _with_topics(name, base, names, topics)
    path = _expanded(where)
    if path.is_file() or (mails.is_directory(path) and not sources.is_tree(path)):
        chosen = mails.read(path)
        return lambda base: _patched(name, where, base, chosen)
    if path.is_dir():
        source = sources.from_tree(path)
        return lambda base: trees.unpatched(name, source)
    # DIR@REV
    parts = where.split("@")
    ends = [at for at in range(1, len(parts)) if _expanded("@".join(parts[:at])).is_dir()]
    if not parts[0] or not ends:
        raise Failure(f"--tree {name}: there is no {where}", f"give {_FORMS}")
    directory = _expanded("@".join(parts[: ends[0]]))
    tree = _tree_of(name, directory, "@".join(parts[ends[0] :]))
    return lambda base: _at_commit(name, where, directory, tree)


def _with_topics(name: str, base: Tree, names: list[str], topics: list[Topic]) -> Tree:
    """Return a base tree with topics; those in `names` must have patches for its line.

    Raises:
        Failure: one has none, so that the tree would not be what its name says.
    """
    patches.check_there(names, base.line)
    return trees.with_topics(name, base, topics)


def _patched(name: str, where: str, base: Tree, chosen: Chosen) -> Tree:
    """Return base with patches, and say which those are."""
    parts = [way.diff for patch in chosen.patches for way in (*patch.readings, Reading("", b""))]
    tree = trees.changed(
        name,
        base,
        cache.digest(base.key, *parts),
        f"applying {where} to Linux {base.version}",
        lambda work: mails.apply(chosen, work, _expanded(where), base.version),
    )
    applied, left_out = mails.applied(chosen, tree.path)
    for what, subjects in (("applied", applied), ("left out", left_out)):
        for subject in subjects:
            note(f"pagemint: {name}: {what} {subject}")
    return replace(tree, applied=tuple(applied), not_applied=tuple(left_out))


def _expanded(where: str) -> Path:
    try:
        return Path(where).expanduser()
    except RuntimeError:
        return Path(where)  # ~ and no user's name: perhaps a file's


def _tree_of(name: str, directory: Path, revision: str) -> str:
    """Return git's name for the files of a commit."""
    wanted = f"{revision or 'HEAD'}^{{tree}}"
    try:
        tree = git(directory, "rev-parse", "--verify", "--end-of-options", wanted).strip()
    except Failure as failure:
        raise Failure(
            f"--tree {name}: {directory} has no commit {revision} ({failure.message})",
            "name a commit, branch or tag of a git repository",
        ) from failure
    try:
        git(directory, "cat-file", "-e", f"{tree}:mm/mm_init.c")
    except Failure as failure:
        raise Failure(
            f"--tree {name}: {revision} of {directory} is not a Linux tree",
            "name the top directory of a repository of the kernel",
        ) from failure
    return tree


def _at_commit(name: str, where: str, directory: Path, tree: str) -> Tree:
    """Return the tree with the files that git calls `tree`, copied into the cache."""

    def make(work: Path) -> None:
        disk.need_space(work, trees.ROOM, "a kernel tree")
        with step(f"copying {where}"):
            # An index and files of its own: those of the user stay as they are.
            linux, index = work / "linux", str(work / "index")
            linux.mkdir()
            own = git(directory, "rev-parse", "--absolute-git-dir").strip()
            places = {"GIT_DIR": own, "GIT_WORK_TREE": str(linux), "GIT_INDEX_FILE": index}
            git(linux, "read-tree", tree, **places)
            git(linux, "checkout-index", "--all", **places)
            Path(index).unlink()

    path = cache.entry("trees", f"git-{tree}", make) / "linux"
    source = sources.from_tree(path)
    return Tree(name, path, f"git-{tree}", patches.nearest_line(source.line), source.version)
