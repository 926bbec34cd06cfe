# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint series`: makes a git branch for each topic in a kernel tree."""

from argparse import SUPPRESS
from dataclasses import dataclass
from pathlib import Path

from pagemint.base import git
from pagemint.base.errors import Failure
from pagemint.base.progress import note
from pagemint.base.request import option
from pagemint.send import branches
from pagemint.trees import patches, sources


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of `pagemint series`."""

    kernel: str | None = option(None, "the kernel line (default: the tree's, or 7.3)", "LINE")
    topic: str | None = option(
        None,
        "only these topics and those they need (all of "
        f"{', '.join(topic.name for topic in patches.every_topic())})",
        "T,...",
    )
    tree: Path | None = option(
        None, "the tree; made of Debian's source if it is not there (linux-LINE)", "DIR"
    )
    output: str | None = option(None, SUPPRESS)  # up to 0.2.0


def main(request: Request) -> int:
    """Run `pagemint series`."""
    if request.output is not None:
        raise Failure(
            "pagemint series writes no mails any more",
            "take those in kernel/series/, or run git format-patch on a branch",
        )
    known = [*patches.lines(), sources.EXPECTED]
    if request.kernel is not None and request.kernel not in known:
        raise Failure(
            f"there are no patches for Linux {request.kernel!r}",
            f"choose one of: {', '.join(known)}",
        )
    tree = request.tree or Path(f"linux-{request.kernel or patches.lines()[-1]}")
    line = request.kernel
    if line is None:
        version = sources.from_tree(tree).line if tree.exists() else patches.lines()[-1]
        line = patches.nearest_line(version)
    names = request.topic.split(",") if request.topic else None
    if names:
        patches.check_there(names, line)
    git.identity(Path.cwd())  # fetching a source takes long
    if not tree.exists():
        branches.copied(sources.get(line), tree)
    made = branches.commit(tree, patches.topics(names) if names else None, line)
    note(f"{tree} is on {made[-1]}; its branches: {', '.join(made)}")
    return 0
