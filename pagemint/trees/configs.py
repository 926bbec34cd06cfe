# SPDX-License-Identifier: GPL-2.0-only
"""The configuration that a bench builds all its trees with: the user's, or else a usual one."""

import gzip
from pathlib import Path

from pagemint.base.errors import Failure
from pagemint.base.progress import note
from pagemint.trees import patches
from pagemint.trees.objects import DEBIAN, Config
from pagemint.trees.sources import Source

_FRAGMENT = Path(__file__).with_name("workloads.config")
_X86_64 = "CONFIG_X86_64=y"


def of_user(given: Path | None, source: Source) -> Config | None:
    """Return the configuration that the user names or has in a tree, or None.

    Args:
        given: the user's file, perhaps compressed as /proc/config.gz.
        source: the source; in a tree of the user's own, `.config` counts.

    Raises:
        Failure: the file cannot be read, or lacks an option that a workload needs.
    """
    own = source.tree / ".config"
    if given:
        return _of_file(given, f"file {given.name}")
    if not source.package_version and own.is_file():
        return _of_file(own, ".config of the tree")
    return None


def usual(source: Source) -> Config:
    """Return Debian's configuration, or the defconfig with the options that the workloads need.

    Raises:
        Failure: Debian's cannot be fetched for a source of Debian's.
    """
    try:
        DEBIAN.start(patches.nearest_line(source.line))
    except Failure as failure:
        if source.package_version:
            raise
        note(f"pagemint: using the defconfig, as Debian's is out of reach: {failure.message}")
        return Config("defconfig with options of pagemint", tuple(needs()), "")
    return DEBIAN


def needs() -> dict[str, str]:
    """Return the options that workloads need, each with the workloads."""
    options, of = {}, ""
    for line in _FRAGMENT.read_text().splitlines():
        if line.startswith("# "):
            of = line.removeprefix("# ")
        else:
            options[line] = of
    return options


def _of_file(file: Path, name: str) -> Config:
    remedy = "name another file with --config, such as /boot/config-*"
    try:
        data = file.read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    except (OSError, EOFError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise Failure(f"cannot read the configuration {file}: {why}", remedy) from error
    lines = set(text.splitlines())
    if _X86_64 not in lines:
        raise Failure(f"{file} is no configuration for x86-64: it lacks {_X86_64}", remedy)
    lacks = {option: of for option, of in needs().items() if option not in lines}
    if lacks:
        named = "; ".join(f"{option} ({of})" for option, of in lacks.items())
        raise Failure(
            f"{file} lacks options that workloads need: {named}", f"set them there, or {remedy}"
        )
    return Config(name, tuple(needs()), text)
