# SPDX-License-Identifier: GPL-2.0-only
"""Builds native hosts whose patched tree has one changed file, without a tree for each.

Only the objects that contain the file are compiled again, with the commands that kbuild left. The
changed file lies in a directory of its own, which the compiler searches first.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pagemint.base import files
from pagemint.base.progress import step
from pagemint.base.run import run
from pagemint.bench import join, link
from pagemint.bench.join import Glue, Named
from pagemint.bench.kernel_half import KernelHalf
from pagemint.trees import objects
from pagemint.trees.objects import Config
from pagemint.trees.trees import Tree
from pagemint.words import AGAIN, BASE, PATCHED

LATE_HEADER = "arch/x86/include/asm/memfill_streaming.h"
"""The file that has other contents where stores land late."""

_INCLUDES = ("arch/x86/include", "include")


@dataclass(frozen=True)
class _Command:
    """The command that compiled an object.

    Attributes:
        text: the command, for a shell.
        directory: where it runs: the build directory, or the glue's own.
        source: the C file.
        made: the object, as the command names it.
        needs: the files that it contains.
    """

    text: str
    directory: Path
    source: Path
    made: str
    needs: frozenset[Path]


class HostBuilder:
    """Makes hosts of one configuration.

    Attributes:
        sources: the files of the patched tree that its objects contain, relative to the tree, and
            that have the tree's text in every host.
    """

    def __init__(self, pair: tuple[Tree, Tree], config: Config, work: Path, *, late: bool) -> None:
        """Build what all hosts share in the empty directory `work`.

        Args:
            pair: the base tree and the patched one.
            config: their configuration.
            work: the directory.
            late: whether streaming stores land late, as bench/host/late.c says.
        """
        self._half = half = KernelHalf()
        self._tree = pair[1].path
        late_header = files.BENCH / "host/late/memfill_streaming.h"
        self._replaced = {LATE_HEADER: late_header.read_text()} if late else {}
        with step(f"building what all hosts share ({work.name})"):
            built = [objects.build(tree, config, half.objects) for tree in pair]
            named = [
                join.named(pair[0], BASE, "t0", built[0], half),
                join.named(pair[0], AGAIN, "t1", built[0], half),
                join.named(pair[1], PATCHED, "t2", built[1], half),
            ]
            self._plain = link.compile_plain()
            self._given = link.stand_ins(self._plain)
            glues = [join.compile_glue(tree, half, work) for tree in named]
            shared = work / "shared"
            shared.mkdir()
            self._gap = join.gap(0, shared)
            self._others = {
                glue.named.name: join.join(glue, half, self._gap, shared) for glue in glues[:2]
            }
        self._glue = glues[2]
        self._commands = {
            **{name: _command(file, built[1]) for name, file in glues[2].named.code.items()},
            **{name: _command(file, file.parent) for name, file in glues[2].parts.items()},
        }
        needed = {dep for command in self._commands.values() for dep in command.needs}
        inside = (dep.relative_to(self._tree) for dep in needed if dep.is_relative_to(self._tree))
        self.sources = frozenset(map(str, inside)) - self._replaced.keys()

    def objects(self, path: str, text: str, work: Path) -> dict[str, Path]:
        """Compile the objects that contain a file of the patched tree, with another text.

        Args:
            path: the file, relative to the tree.
            text: its text.
            work: a directory; what an earlier call left there is overwritten.

        Returns:
            the objects, by name.

        Raises:
            Failure: one does not compile, or only with a warning.
        """
        over = work / "over"
        shutil.rmtree(over, ignore_errors=True)
        changed = {path: text, **self._replaced}
        for name, content in changed.items():
            (over / name).parent.mkdir(parents=True, exist_ok=True)
            (over / name).write_text(content)
        there = {self._tree / name for name in changed}
        made = {}
        for name, command in self._commands.items():
            if there & command.needs:
                target = over / name.replace("/", "-")
                self._compile(command, over, target)
                made[name] = target
        return made

    def host(self, made: dict[str, Path], work: Path) -> None:
        """Link a host with some objects in place of those of the patched tree.

        Args:
            made: the objects, from `objects`.
            work: the directory for `host`, `traps` and `sites`.
        """
        scratch = work / "linked"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        named: Named = self._glue.named
        code = {name: made.get(name, file) for name, file in named.code.items()}
        parts = {name: made.get(name, file) for name, file in self._glue.parts.items()}
        glue: Glue = replace(self._glue, named=replace(named, code=code), parts=parts)
        whole = join.join(glue, self._half, self._gap, scratch)
        kernel = {**self._others, named.name: whole}
        link.link_halves(kernel, self._plain, self._given, scratch)

    def _compile(self, command: _Command, over: Path, made: Path) -> None:
        """Compile an object with the files in `over` before those of the tree."""
        source = command.source
        if source.is_relative_to(self._tree):
            # A file in quotes is looked for beside the file that includes it.
            source = over / source.relative_to(self._tree)
            if not source.exists():
                source.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(command.source, source)
        first = " ".join(f"-I{over / folder}" for folder in _INCLUDES)
        # WARN() names the file, so its directory must not show.
        first += f" -fmacro-prefix-map={over}/="
        # make check sees a new warning.
        first += " -Werror"
        text = re.sub(r"^gcc -Wp,-MMD,\S+", f"gcc {first}", command.text)
        text = text.replace(str(command.source), str(source)).replace(
            f" {command.made}", f" {made}"
        )
        run(["sh", "-c", text], cwd=command.directory, what=f"compiling {made.name}")


def code(made: Mapping[str, Path]) -> list[bytes]:
    """Return objects without debug information and without the name of their directory.

    UBSAN's data has that name. Those that are compared must be equally long.
    """
    contents = []
    for file in made.values():
        bare = file.with_suffix(".bare")
        run(["objcopy", "--strip-debug", file, bare], what=f"stripping {file.name}")
        name = str(file.parent).encode()
        contents.append(bare.read_bytes().replace(name, bytes(len(name))))
    return contents


def _command(made: Path, directory: Path) -> _Command:
    """Return the command that compiled an object, from the file that kbuild left beside it."""
    text = made.with_name(f".{made.name}.cmd").read_text()
    command = re.search(r"^savedcmd_(\S+) := (.*)$", text, re.MULTILINE)
    source = re.search(r"^source_\S+ := (\S+)$", text, re.MULTILINE)
    assert command and source, made
    needs = re.findall(r"^  (/\S+) \\$", text, re.MULTILINE)
    return _Command(
        command[2],
        directory,
        Path(source[1]),
        command[1],
        frozenset(map(Path, (source[1], *needs))),
    )
