# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint series`: applies topics to a tree as branches, or writes them as mails."""

import argparse
from pathlib import Path

from pagemint.base.errors import Failure
from pagemint.base.progress import note
from pagemint.send import branches, code_lines
from pagemint.trees import patches, sources


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint series`."""
    parser.add_argument("--kernel", metavar="LINE", help="the kernel line (default: the tree's)")
    parser.add_argument(
        "--topic",
        metavar="T,...",
        help="only these topics and those they need (all of "
        f"{', '.join(topic.name for topic in patches.topics())})",
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--tree", type=Path, metavar="DIR", help="make branches in this tree")
    target.add_argument("--output", type=Path, metavar="DIR", help="write mails")
    target.add_argument("--stat", action="store_true", help="count the lines of code of each topic")


def main(args: argparse.Namespace) -> int:
    """Run `pagemint series`."""
    known = [*patches.lines(), sources.EXPECTED]
    if args.kernel is not None and args.kernel not in known:
        raise Failure(
            f"the series has no edits for Linux {args.kernel!r}",
            f"choose one of: {', '.join(known)}",
        )
    line = args.kernel or patches.lines()[-1]
    chosen = patches.topics(args.topic.split(",") if args.topic else None)
    if args.stat:
        code_lines.show(sources.get(line), chosen)
        return 0
    # Checked first: fetching a source takes long.
    if args.output:
        branches.check_output(args.output)
    if args.tree:
        made = branches.commit(args.tree, chosen, args.kernel)
        note(f"{args.tree} is on {made[-1]}; its branches: {', '.join(made)}")
        return 0
    for mail in branches.mails(sources.get(line), args.output, chosen):
        print(mail)
    return 0
