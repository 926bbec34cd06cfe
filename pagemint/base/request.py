# SPDX-License-Identifier: GPL-2.0-only
"""Requests: what the user asked a command to do, as a dataclass whose fields are the options.

The parser of a command is made from its request, and the request from what was parsed, here alone.
"""

import argparse
from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

_TYPES = (int, float, Path)  # a value of any other type is a text

_T = TypeVar("_T")


def option(
    default: _T,
    text: str,
    metavar: str | None = None,
    *,
    flags: tuple[str, ...] = (),
    only: str = "",
    **settings: object,
) -> _T:
    """Return a field of a request that is an option of its command.

    A field of type bool is a switch. A field that is a request itself stands for its options.

    Args:
        default: its value if it is not given.
        text: its help.
        metavar: the name of its value in the help.
        flags: its names, if not --like-this for the field like_this; an argument has no hyphens.
        only: the name of a group; of the options in it only one can be given.
        settings: further ones of argparse. With `required`, one of the group has to be given.
    """
    settings |= {"flags": flags, "only": only, "help": text, "metavar": metavar}
    return field(default=default, metadata=settings)


def declare(parser: argparse.ArgumentParser, request: type[Any]) -> None:
    """Declare the options of a request."""
    groups: dict[str, argparse._ActionsContainer] = {"": parser}
    hints = get_type_hints(request)
    for member in fields(request):
        kind, settings = hints[member.name], dict(member.metadata)
        if _is_request(kind):
            declare(parser, kind)
        if not settings:
            continue
        flags = settings.pop("flags") or (f"--{member.name.replace('_', '-')}",)
        only = settings.pop("only")
        if only not in groups:
            required = settings.pop("required", False)
            groups[only] = parser.add_mutually_exclusive_group(required=required)
        if kind is bool:
            settings["action"] = "store_true"
            del settings["metavar"]
        else:
            kinds = (kind, *get_args(kind))
            settings["type"] = next((each for each in _TYPES if each in kinds), str)
        # argparse makes a list of several values, and cannot begin with a tuple.
        default = None if member.default == () else member.default
        groups[only].add_argument(*flags, default=default, **settings)


def made(request: type[_T], given: Mapping[str, Any]) -> _T:
    """Return a request from the parsed options, by their names."""
    hints, parts = get_type_hints(request), {}
    for member in fields(request):  # type: ignore[arg-type]
        kind, value = hints[member.name], given.get(member.name)
        if _is_request(kind):
            value = made(kind, given)
        elif member.default == ():
            value = tuple(value or ())
        parts[member.name] = value
    return request(**parts)


def _is_request(kind: object) -> bool:
    return is_dataclass(kind)
