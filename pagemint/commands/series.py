# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint series`: applies topics to a tree as branches, or writes them as mails."""

from dataclasses import dataclass
from pathlib import Path

from pagemint.base.errors import Failure
from pagemint.base.progress import note
from pagemint.base.request import option
from pagemint.send import branches
from pagemint.trees import patches, sources


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of `pagemint series`."""

    kernel: str | None = option(None, "the kernel line (default: the tree's)", "LINE")
    topic: str | None = option(
        None,
        "only these topics and those they need (all of "
        f"{', '.join(topic.name for topic in patches.topics())})",
        "T,...",
    )
    tree: Path | None = option(
        None, "make branches in this tree", "DIR", only="target", required=True
    )
    output: Path | None = option(None, "write mails", "DIR", only="target")


def main(request: Request) -> int:
    """Run `pagemint series`."""
    known = [*patches.lines(), sources.EXPECTED]
    if request.kernel is not None and request.kernel not in known:
        raise Failure(
            f"the series has no edits for Linux {request.kernel!r}",
            f"choose one of: {', '.join(known)}",
        )
    line = request.kernel or patches.lines()[-1]
    chosen = patches.topics(request.topic.split(",") if request.topic else None)
    if request.output:
        # Checked first: fetching a source takes long.
        branches.check_output(request.output)
        for mail in branches.mails(sources.get(line), request.output, chosen):
            print(mail)
    if request.tree:
        made = branches.commit(request.tree, chosen, request.kernel)
        note(f"{request.tree} is on {made[-1]}; its branches: {', '.join(made)}")
    return 0
