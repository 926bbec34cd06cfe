# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint source`: lists and fetches kernel sources."""

from dataclasses import dataclass

from pagemint.base.errors import Failure
from pagemint.base.request import option
from pagemint.trees import sources


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of `pagemint source`."""

    verb: str = option(
        "",
        "list the kernel lines at hand (line, version, cached or not), or get a line's source "
        "and print its directory",
        flags=("verb",),
        choices=("list", "get"),
    )
    version: str | None = option(
        None, "the kernel line to get, such as 7.3", "VERSION", flags=("version",), nargs="?"
    )


def main(request: Request) -> int:
    """Run `pagemint source`."""
    if (request.verb == "get") != (request.version is not None):
        raise Failure("source get takes a kernel line, and list none", "give, for example, get 7.3")
    if request.version is not None:
        print(sources.get(request.version).tree)
        return 0
    for line, version, cached in sources.available():
        state = "cached" if cached else "on the mirror"
        print(f"{line:6} {version:24} {state}")
    return 0
