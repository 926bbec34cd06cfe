# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint source`: lists and fetches kernel sources."""

import argparse

from pagemint.trees import sources


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint source`."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list | get")
    verbs.add_parser("list", help="list the kernel lines at hand: line, version, cached or not")
    getter = verbs.add_parser("get", help="fetch a line's source and print its directory")
    getter.add_argument("version", metavar="VERSION", help="a kernel line, such as 7.3")


def main(args: argparse.Namespace) -> int:
    """Run `pagemint source`."""
    if args.verb == "get":
        print(sources.get(args.version).tree)
    else:
        for one in sources.available():
            state = "cached" if one.cached else "on the mirror"
            print(f"{one.line:6} {one.package_version:24} {state}")
    return 0
