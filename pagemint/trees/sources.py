# SPDX-License-Identifier: GPL-2.0-only
"""Kernel sources: Debian's linux-source-X.Y packages, or a tree of the user's own."""

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from pagemint.base import cache, disk
from pagemint.base.errors import Failure
from pagemint.base.progress import note, step
from pagemint.base.run import run
from pagemint.trees.debian import apt

EXPECTED = "7.4-expected"
"""Linux 7.4 as far as it is known: the source of `EXPECTED_FROM`, with the topic mainline."""

EXPECTED_FROM = "7.3"
"""The line whose source and configuration stand for those of `EXPECTED`."""

_LINE = r"[0-9]+\.[0-9]+"
_ROOM = 2_500_000_000  # bytes: the package, its tar file and the unpacked tree
_SMALL_ROOM = 20_000_000  # bytes: a configuration package, unpacked
_FLAVOUR = "config.amd64_none_amd64.xz"


@dataclass(frozen=True)
class Source:
    """One kernel source tree.

    Attributes:
        version: the version in its Makefile, such as 7.3.4.
        line: the first two numbers of the version, such as 7.3, or `EXPECTED`.
        package_version: Debian's version, or None for a tree of the user's own.
        tree: the directory, which must not be written to.
    """

    version: str
    line: str
    package_version: str | None
    tree: Path


def get(line: str) -> Source:
    """Return Debian's source of a kernel line ("7.3"), fetching it unless it is in the cache.

    Raises:
        Failure: the mirror has no such line or cannot be reached, or the disk is full.
    """
    if line == EXPECTED:
        return replace(get(EXPECTED_FROM), line=line)
    if not re.fullmatch(_LINE, line):
        raise Failure(f"{line!r} is not a kernel line", "give two numbers, such as 7.3")
    cached = _cached("sources", line)
    if cached:
        return _source_of(cached, line)
    chosen = _newest(_on_mirror("source", line), line)
    disk.need_space(cache.root(), _ROOM, f"the source of Linux {line}")
    configs = _on_mirror("config", line)
    same = [package for package in configs if package.version == chosen.version]
    config = same[0] if same else _newest(configs, line)

    def unpack(staging: Path) -> None:
        with (
            apt.downloaded([chosen, config], f"fetching Linux {chosen.version}") as debs,
            step(f"unpacking Linux {chosen.version}"),
        ):
            _unpack_source(debs[0], staging, line)
            _unpack_config(debs[1], staging, line)

    return _source_of(cache.entry("sources", chosen.version, unpack), line)


def config_for(line: str) -> Path:
    """Return Debian's amd64 configuration of a kernel line, fetching it unless it is cached.

    Raises:
        Failure: the mirror has no such line or cannot be reached.
    """
    if line == EXPECTED:
        return config_for(EXPECTED_FROM)
    kept = _cached("sources", line) or _cached("configs", line)
    if kept:
        return kept / "config"
    package = _newest(_on_mirror("config", line), line)
    disk.need_space(cache.root(), _SMALL_ROOM, f"the configuration of Linux {line}")

    def unpack(staging: Path) -> None:
        what = f"fetching the configuration of Linux {line}"
        with apt.downloaded([package], what) as (deb,):
            _unpack_config(deb, staging, line)

    return cache.entry("configs", package.version, unpack) / "config"


def available() -> list[tuple[str, str, bool]]:
    """Return each kernel line that `get` can return, oldest first.

    Returns:
        the line, its newest version, and whether it is cached, so that it needs no network.

    Raises:
        Failure: nothing is cached and the mirror cannot be reached.
    """
    keys = _keys("sources")
    try:
        on_mirror = apt.packages(f"linux-source-{_LINE}")
    except Failure as failure:
        if not keys:
            raise
        note(f"pagemint: listing only cached sources: {failure.message}")
        on_mirror = []
    lines = {package.name.removeprefix("linux-source-") for package in on_mirror}
    lines |= {match[0] for key in keys if (match := re.match(_LINE, key))}
    kernels = []
    for line in sorted(lines, key=apt.version_key):
        kept = _newest_key("sources", line)
        there = [p.version for p in on_mirror if p.name == f"linux-source-{line}"]
        version = kept or _newest_version(there)
        kernels.append((line, version, kept is not None))
    return kernels


def from_tree(directory: Path) -> Source:
    """Return the user's own kernel tree.

    Raises:
        Failure: `directory` is not a Linux source tree.
    """
    tree = directory.absolute()
    missing = _missing(tree)
    version = None if missing else _tree_version(tree)
    if version is None:
        lack = f"it has no {missing[0]}" if missing else "its Makefile names no version"
        raise Failure(
            f"{directory} is not a Linux source tree: {lack}",
            "give the directory that holds the kernel's top Makefile",
        )
    line = ".".join(version.split(".")[:2])
    return Source(version, line, None, tree)


def is_tree(directory: Path) -> bool:
    """Whether a directory is a Linux source tree."""
    return not _missing(directory)


def _missing(tree: Path) -> list[str]:
    """Return the files that a Linux source tree has and this directory has not."""
    names = ("Makefile", "Kconfig", "mm/mm_init.c")
    return [name for name in names if not (tree / name).is_file()]


def _keys(kind: str) -> list[str]:
    """Return the package versions that are complete in the cache."""
    directory = cache.root() / kind
    names = [path.name for path in directory.iterdir()] if directory.is_dir() else []
    return [name for name in names if cache.find(kind, name)]


def _newest_key(kind: str, line: str) -> str | None:
    keys = [key for key in _keys(kind) if re.match(re.escape(line) + r"[.~-]", key)]
    return _newest_version(keys) if keys else None


def _cached(kind: str, line: str) -> Path | None:
    key = _newest_key(kind, line)
    return cache.use(kind, key) if key else None


def _source_of(entry: Path, line: str) -> Source:
    tree = entry / "linux"
    return Source(_tree_version(tree) or line, line, entry.name, tree)


def _on_mirror(kind: str, line: str) -> list[apt.Package]:
    return apt.packages(re.escape(f"linux-{kind}-{line}"))


def _newest(packages: list[apt.Package], line: str) -> apt.Package:
    if not packages:
        lines = ", ".join(known for known, *_ in available()) or "none"
        raise Failure(
            f"the Debian mirror has no Linux {line}",
            f"choose one that it has ({lines}), or give a tree with --ksrc DIR",
        )
    version = _newest_version([package.version for package in packages])
    return next(package for package in packages if package.version == version)


def _newest_version(versions: list[str]) -> str:
    """Return the newest version; a release candidate only if there is nothing else."""
    return max(versions, key=lambda version: ("~rc" not in version, apt.version_key(version)))


def _tree_version(tree: Path) -> str | None:
    """Return the version in the tree's Makefile, as `make kernelversion` prints it."""
    head = (tree / "Makefile").read_text(errors="replace")[:1000]
    fields: dict[str, str] = dict(re.findall(r"^([A-Z]+) *= *(\S*)$", head, re.MULTILINE))
    if not (fields.get("VERSION") and fields.get("PATCHLEVEL")):
        return None
    numbers = [fields["VERSION"], fields["PATCHLEVEL"], fields.get("SUBLEVEL") or "0"]
    return ".".join(numbers) + fields.get("EXTRAVERSION", "")


def _unpack_source(deb: Path, staging: Path, line: str) -> None:
    scratch, tree = staging / "deb", staging / "linux"
    tree.mkdir()
    run(["dpkg-deb", "-x", deb, scratch], what=f"unpacking {deb.name}")
    archive = scratch / f"usr/src/linux-source-{line}.tar.xz"
    argv: list[str | Path] = ["tar", "-x", "-I", "xz -T0", "--no-same-owner", "-f", archive]
    run([*argv, "--strip-components=1", "-C", tree], what=f"unpacking {archive.name}")
    shutil.rmtree(scratch)


def _unpack_config(deb: Path, staging: Path, line: str) -> None:
    scratch = staging / "deb"
    run(["dpkg-deb", "-x", deb, scratch], what=f"unpacking {deb.name}")
    packed = scratch / f"usr/src/linux-config-{line}" / _FLAVOUR
    (staging / "config").write_text(run(["xz", "-dc", packed], what=f"unpacking {packed.name}"))
    shutil.rmtree(scratch)
