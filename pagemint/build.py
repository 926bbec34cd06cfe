# SPDX-License-Identifier: GPL-2.0-only
"""Kernel objects, compiled by the kernel's own build from the base and the patched tree."""

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from pagemint import cache, steps
from pagemint.errors import Failure
from pagemint.progress import step
from pagemint.run import run
from pagemint.source import Source, config_for

_TREE_ROOM = 2_000_000_000  # bytes: a kernel tree
_OBJECTS = (  # of either tree
    "mm/mm_init.o",
    "mm/page_alloc.o",
    "mm/memory_hotplug.o",
    "lib/list_debug.o",
    "mm/util.o",
    "mm/memory.o",
    "arch/x86/lib/copy_mc.o",
    "arch/x86/lib/copy_mc_64.o",
    "arch/x86/lib/copy_page_64.o",
    "arch/x86/lib/memcpy_64.o",
    "arch/x86/lib/retpoline.o",
)
_PATCHED_OBJECTS = (  # of the patched tree, besides
    "mm/memmap_template.o",
    "mm/memmap_threads.o",
    "kernel/padata.o",
    "arch/x86/lib/usercopy_64.o",
)
_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LANG")  # what a kernel build gets to see
_BUILD_ROOM = 300_000_000  # bytes: a build directory with a few objects


@dataclass(frozen=True)
class Config:
    """A kernel configuration.

    Attributes:
        name: what results call it.
        options: lines to put on top of Debian's configuration.
    """

    name: str
    options: tuple[str, ...] = ()


DEBIAN = Config("debian")
"""What people run."""

NO_MASK = Config(
    "debian, no HVO, page_ref events",
    ("# CONFIG_HUGETLBFS is not set", "CONFIG_DEBUG_PAGE_REF=y"),
)
"""Tails point to their head instead of holding a mask, and page_ref_set can be traced."""


@dataclass(frozen=True)
class Arch:
    """An architecture that kernels are built for.

    Attributes:
        prefix: what the names of its compiler and its like begin with.
        image: what is booted, in a build directory.
        variables: what the kernel's make is told of it.
    """

    prefix: str
    image: str
    variables: tuple[str, ...]


X86 = Arch("", "arch/x86/boot/bzImage", ())
"""That of this machine, as the kernel's make assumes it."""

ARM64 = Arch(
    "aarch64-linux-gnu-",
    "arch/arm64/boot/Image",
    ("ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"),
)


@dataclass(frozen=True)
class Tree:
    """A kernel tree to build from.

    Attributes:
        variant: base or patched.
        path: the directory, which stays as it is.
        key: names its contents.
        line: the kernel line whose edits and configuration it takes.
        objects: what is built from it.
        arch: what it is built for.
    """

    variant: str
    path: Path
    key: str
    line: str
    objects: tuple[str, ...]
    arch: Arch = X86


def trees(found: Source) -> tuple[Tree, Tree]:
    """Return the base tree of a source and the patched one, made if they are not in the cache.

    Raises:
        Failure: an edit of the series does not apply, or there is no room.
    """
    if found.package_version:
        path, key = found.tree, found.package_version
    else:
        key = f"own-{_listing(found.tree)}"
        path = cache.entry("trees", key, lambda work: _copy_own(found, work)) / "linux"
    line = steps.nearest_line(found.line)
    base = Tree("base", path, key, line, _OBJECTS)

    def make(work: Path) -> None:
        cache.need_space(work, _TREE_ROOM, "a patched kernel tree")
        with step(f"applying the series to Linux {found.version}"):
            # The two trees share the files that are alike.
            run(["cp", "-al", path, work / "linux"], what="copying the kernel tree")
            steps.patch(work / "linux", line)

    patched_key = cache.digest(key, steps.digest(found.line))
    objects = (*_OBJECTS, *_PATCHED_OBJECTS)
    patched = cache.entry("trees", patched_key, make) / "linux"
    return base, Tree("patched", patched, patched_key, line, objects)


def build(tree: Tree, config: Config, given: Path | None = None) -> Path:
    """Return a build directory of `tree` with its objects in it, made if it is not in the cache.

    Args:
        tree: what to build.
        config: which configuration.
        given: a file to take instead of Debian's configuration for the line.

    Raises:
        Failure: the build fails, or the configuration loses an option.
    """
    base = given or config_for(tree.line)
    key = cache.digest(tree.key, str(tree.path), *tree.objects, base, *config.options, compiler())

    def fill(work: Path) -> None:
        cache.need_space(work, _BUILD_ROOM, "a kernel build")
        options = "".join(f"{option}\n" for option in config.options)
        (work / ".config").write_text(base.read_text() + options)
        with step(f"configuring the {tree.variant} tree ({config.name})"):
            make(tree, work, "olddefconfig")
            check_config(work / ".config", config.name, config.options)
            make(tree, work, "prepare")
        with step(f"compiling {len(tree.objects)} objects of the {tree.variant} tree"):
            # One after the other: kbuild reaches arch/x86/lib by two ways, which would race.
            for one in tree.objects:
                make(tree, work, one, jobs=1)

    return cache.entry("builds", key, fill, in_place=True)


def compile_glue(tree: Tree, built: Path, sources: list[Path], scratch: Path) -> list[Path]:
    """Compile C files as kernel code of `tree`, with the flags that its modules have.

    Args:
        tree: whose headers they see.
        built: its build directory.
        sources: the C files, and the headers that they include.
        scratch: an empty directory to do it in.

    Returns:
        an object for each C file.
    """
    for one in sources:
        shutil.copyfile(one, scratch / one.name)
    names = [one.with_suffix(".o").name for one in sources if one.suffix == ".c"]
    (scratch / "Kbuild").write_text(f"obj-m := {' '.join(names)}\n")
    for name in names:
        make(tree, built, f"M={scratch}", name, jobs=1)
    return [scratch / name for name in names]


@once
def compiler(arch: Arch = X86) -> str:
    """Return the version line of the compiler that builds everything for an architecture."""
    program = f"{arch.prefix}gcc"
    return run([program, "--version"], what=f"asking {program} for its version").splitlines()[0]


def make(tree: Tree, build_dir: Path, *targets: str, jobs: int | None = None) -> None:
    """Run the kernel's own make for `tree` in a build directory.

    Args:
        tree: what to build.
        build_dir: where, and where a log of each target stays.
        targets: what to make, and variables.
        jobs: how many at once, if not as many as there are CPUs.
    """
    name = re.sub(r"\W+", "_", targets[-1])
    what = f"make {targets[-1]} in the {tree.variant} tree"
    argv = ["make", "-s", f"-j{jobs or os.cpu_count() or 1}", f"O={build_dir}"]
    argv += [*tree.arch.variables, *targets]
    run(argv, cwd=tree.path, env=environment(), log=build_dir / f"{name}.log", what=what)


def environment() -> dict[str, str]:
    """Return the environment of a kernel build, which takes many settings from it.

    None of those is in a cache key, so none is let through.
    """
    return {key: os.environ[key] for key in _ENVIRONMENT if key in os.environ}


def check_config(file: Path, name: str, options: Iterable[str]) -> None:
    """Refuse a configuration that lost an option on the way through kconfig.

    Raises:
        Failure: names the option, and the configuration by `name`.
    """
    kept = set(file.read_text().splitlines())
    for option in options:
        # An option that is off may also not be there at all.
        off = re.fullmatch(r"# (\w+) is not set", option)
        lost = any(line.startswith(f"{off[1]}=") for line in kept) if off else option not in kept
        if lost:
            raise Failure(
                f"the configuration {name!r} loses {option!r} on this tree",
                "its dependencies are not met there; use another tree",
            )


def _listing(tree: Path) -> str:
    """Return a digest of the names, sizes and times of a tree's files, which is quick to make."""
    lines = []
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(one for one in folders if one != ".git")
        for name in sorted(names):
            info = (Path(folder) / name).lstat()
            lines.append(f"{folder}/{name} {info.st_size} {info.st_mtime_ns}")
    return cache.digest(str(tree), "\n".join(lines))


def _copy_own(found: Source, work: Path) -> None:
    """Copy the user's tree without what was built in it: it may be in use, and may change."""
    cache.need_space(work, _TREE_ROOM, "a copy of the kernel tree")
    with step(f"copying {found.tree}"):
        built = shutil.ignore_patterns(".git", "*.o", "*.ko")
        shutil.copytree(found.tree, work / "linux", symlinks=True, ignore=built)
        run(["make", "-s", "mrproper"], cwd=work / "linux", what="cleaning the copy")
