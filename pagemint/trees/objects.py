# SPDX-License-Identifier: GPL-2.0-only
"""Kernel objects, compiled by the kernel's own build from the base and the patched tree."""

import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pagemint.base import cache, disk, machine
from pagemint.base.errors import Failure
from pagemint.base.progress import step
from pagemint.base.run import run
from pagemint.trees import trees
from pagemint.trees.sources import config_for
from pagemint.trees.trees import Tree

_BUILD_ROOM = 300_000_000  # bytes: a build directory with a few objects
_BARE = "CONFIG_DEBUG_INFO_NONE=y"  # gcc makes the same code, and takes a quarter less time
# An error in the source. A full disk is a fatal error, which gcc can report with a source line.
_IN_SOURCE = re.compile(r"\S+:\d+(:\d+)?: ([Ee]rror: |fatal error: .*: No such file or directory$)")


@dataclass(frozen=True)
class Config:
    """A kernel configuration.

    Attributes:
        name: its name on the screen and in results.
        options: lines that are added to `text`; a build fails if kconfig drops one.
        text: the text to start from. None stands for Debian's configuration of a tree's line, and
            "" for the defconfig of the architecture.
    """

    name: str
    options: tuple[str, ...] = ()
    text: str | None = None

    def start(self, line: str) -> Path | str:
        """Return the file or the text to start from for a kernel line.

        Raises:
            Failure: Debian's configuration cannot be fetched.
        """
        return config_for(line) if self.text is None else self.text

    def described(self, line: str) -> str:
        """Return its name with a digest, for results; fetches as `start` does."""
        return f"{self.name} ({cache.digest(self.start(line), *self.options)})"


DEBIAN = Config("debian")
"""Debian's own configuration, as people run it."""

NO_MASK = Config(
    "debian, no HVO, page_ref events",
    ("# CONFIG_HUGETLBFS is not set", "CONFIG_DEBUG_PAGE_REF=y"),
)
"""Tails point to their head instead of holding a mask, and page_ref_set can be traced."""


def build(tree: Tree, config: Config, objects: Iterable[str]) -> Path:
    """Return a build directory of `tree` that has some objects, made if it is not in the cache.

    Args:
        tree: the tree to build.
        config: the configuration to build it with.
        objects: paths such as mm/mm_init.o; those whose source the tree lacks are left out.

    Raises:
        Failure: the build fails, or the configuration loses an option.
    """
    start = config.start(tree.line)
    options = (_BARE, *config.options)
    key = cache.digest(tree.key, str(tree.path), start, *options, machine.compiler())

    def configure(work: Path) -> None:
        disk.need_space(work, _BUILD_ROOM, "a kernel build")
        with step(f"configuring the {tree.name} tree ({config.name})"):
            text = start.read_text() if isinstance(start, Path) else start
            if not text:
                make(tree, work, "defconfig")
                text = (work / ".config").read_text()
            (work / ".config").write_text("\n".join([text, *options, ""]))
            make(tree, work, "olddefconfig")
            check_config(work / ".config", config.name, config.options)
            make(tree, work, "prepare")

    built = cache.entry("builds", key, configure, in_place=True)
    present = [path for path in sorted(set(objects)) if has_source(tree, path)]
    if all(_stamp(built, path).exists() for path in present):
        return built
    with cache.locked(built, f"objects of the {tree.name} tree"):
        missing = [path for path in present if not _stamp(built, path).exists()]
        with step(f"compiling {len(missing)} objects of the {tree.name} tree"):
            _compile(tree, built, missing)
    return built


def _compile(tree: Tree, built: Path, missing: list[str]) -> None:
    # kbuild descends into arch/x86/lib twice, and two jobs would write the same object.
    serial = [path for path in missing if path.startswith("arch/x86/lib/")]
    parallel = [path for path in missing if path not in serial]
    for paths, jobs in ((parallel, None), (serial, 1)):
        if paths:
            make(tree, built, *paths, jobs=jobs)
        for path in paths:
            _stamp(built, path).touch()


def _stamp(built: Path, path: str) -> Path:
    """Return the file whose presence says that an object is complete."""
    return built / f"{path}.complete"


def has_source(tree: Tree, path: str) -> bool:
    """Whether a tree has the C or assembly file of an object such as mm/mm_init.o."""
    return any((tree.path / path).with_suffix(suffix).exists() for suffix in (".c", ".S"))


def compile_glue(tree: Tree, built: Path, sources: Iterable[Path], scratch: Path) -> dict[str, str]:
    """Compile C files as kernel code of `tree`, with the flags that its modules have.

    Args:
        tree: the tree whose headers they include.
        built: its build directory.
        sources: the C files, and the headers that they include.
        scratch: an empty directory, which receives an object for each C file that compiles.

    Returns:
        the compiler's first error for each other C file, by its name without suffix.

    Raises:
        Failure: make fails without an error in the source, for example because /tmp is full.
    """
    copies = [Path(shutil.copyfile(file, scratch / file.name)) for file in sources]
    targets = [file.with_suffix(".o") for file in copies if file.suffix == ".c"]
    names = [target.name for target in targets]
    (scratch / "Kbuild").write_text(f"obj-m := {' '.join(names)}\n")
    errors = {}
    # Without -Wno-error, CONFIG_WERROR makes an error of each warning about the user's code.
    module = (f"M={scratch}", "KCFLAGS=-Wno-error")
    with suppress(Failure):
        make(tree, built, *module, "-k", *names)
    for target in (target for target in targets if not target.exists()):
        try:
            make(tree, built, *module, target.name)
        except Failure as failure:
            if not in_source(failure):
                raise
            errors[target.stem] = failure.message
    return errors


def in_source(failure: Failure) -> bool:
    """Whether a build failed by an error in its source."""
    return bool(_IN_SOURCE.search(failure.message))


def make(tree: Tree, build_dir: Path, *targets: str, jobs: int | None = None) -> None:
    """Run the kernel's own make for `tree` in a build directory.

    Args:
        tree: the tree to build.
        build_dir: the build directory, which also keeps a log of each target.
        targets: targets and variables of make.
        jobs: number of jobs at once; by default the number of CPUs that this process can use.
    """
    name = re.sub(r"\W+", "_", targets[-1])
    what = f"make {targets[-1]} in the {tree.name} tree"
    argv = ["make", "-s", f"-j{jobs or machine.cpus()}", f"O={build_dir}"]
    argv += [*tree.arch.variables, *targets]
    run(argv, cwd=tree.path, env=trees.environment(), log=build_dir / f"{name}.log", what=what)


def check_config(file: Path, name: str, options: Iterable[str]) -> None:
    """Check that kconfig kept all options of a configuration.

    Raises:
        Failure: an option is lost. The message names it, and the configuration by `name`.
    """
    kept = set(file.read_text().splitlines())
    for option in options:
        # kconfig leaves out an option that is off if its dependencies are not met.
        off = re.fullmatch(r"# (\w+) is not set", option)
        lost = any(line.startswith(f"{off[1]}=") for line in kept) if off else option not in kept
        if lost:
            raise Failure(
                f"the configuration {name!r} loses {option!r} on this tree",
                "its dependencies are not met there; use another tree",
            )
