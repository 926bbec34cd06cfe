# SPDX-License-Identifier: GPL-2.0-only
"""The objects that a workload names are all that it runs, and their digest covers their sources."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from kernel_lines import LINES
from stand_ins import Patch

from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.bench import join, link, timed, variants
from pagemint.bench.join import Glue, Named
from pagemint.bench.kernel_half import KernelHalf
from pagemint.bench.process import Answer, Host
from pagemint.bench.workload import Settings
from pagemint.bench.workloads import known
from pagemint.trees import edited, objects, sources, trees
from pagemint.words import BASE, PATCHED

_GLUE = "arch/x86/lib/retpoline.o"  # the returns of every tree
_DEVICE = files.BENCH / "workloads/device.c"  # the command that makes memmaps
_WORKLOADS = [
    (line, name)
    for line in LINES
    for name, workload in known().items()
    if workload.since <= tuple(map(int, line.split(".")))
]


class _Alone(KernelHalf):
    """The glue, and of the lab's workloads the files of one, and that which makes memmaps."""

    def __init__(self, own: Sequence[Path]) -> None:
        super().__init__()
        self.workloads = tuple(dict.fromkeys((*own, _DEVICE)))
        self.sources = (*sorted(files.BENCH.glob("glue/*.c")), *self.workloads)


class _Prepared(Host):
    """A host in which base makes all memmaps."""

    def ask(self, command: str, **arguments: object) -> Answer:
        more = {"tree": BASE} if command == "init" else {}
        return super().ask(command, **arguments | more)


@pytest.mark.parametrize(("line", "name"), _WORKLOADS)
def test_a_workload_runs_with_the_objects_that_it_names(
    in_user_cache: None, monkeypatch: Patch, line: str, name: str
) -> None:
    workload = known()[name]
    own = timed.sources(workload)
    half = _Alone(own)
    wanted = [_GLUE, *half.declared("OBJECTS", *own)]
    every = join.compile_glue

    def few(tree: Named, half: KernelHalf, work: Path) -> Glue:
        """Leave base its other objects: it makes memmaps for what is timed later."""
        # All files are compiled once, for the tests of all workloads.
        glue = every(tree, KernelHalf(), work)
        parts = {source.stem: glue.parts[source.stem] for source in half.sources}
        code = {path: file for path, file in tree.code.items() if path in wanted}
        named = replace(tree, code=code) if tree.name == PATCHED else tree
        return replace(glue, named=named, parts=parts)

    monkeypatch.setattr(join, "compile_glue", few)
    pair = trees.pair(sources.get(line))
    (program,) = link.link_placed(pair, objects.DEBIAN, 1, half)
    chosen = variants.choose(program, pair, "plain", all_modes=True)
    asked = Settings(8 << 30, (1, 2), "plain", chosen.modal, chosen.plain)
    tasks = list(workload.tasks(asked))
    assert len(tasks) > 1
    assert not list(program.at.rglob("whole.o"))
    with (Host if _DEVICE in own else _Prepared)(program) as host:
        host.patch("plain")
        workload.setup(host, asked)
        for task in tasks:
            task.run(host)


@pytest.mark.parametrize("line", LINES)
def test_a_digest_covers_every_edited_file_that_is_compiled(
    in_user_cache: None, tmp_path: Path, line: str
) -> None:
    _, patched = trees.pair(sources.get(line))
    half = KernelHalf()
    built = objects.build(patched, objects.DEBIAN, half.objects)
    glue = join.compile_glue(join.named(patched, "patched", "t0", built, half), half, tmp_path)
    code = edited.edited(line)
    checked = 0
    for workload in known().values():
        linked = timed.linked(code, half, workload)
        own = timed.sources(workload)
        used = [built / path for path in half.declared("OBJECTS", *own)]
        made = [path for path in used if path.exists()]
        made += [glue.parts[file.stem] for file in own if file.stem in glue.parts]
        compiled = {path for part in made for path in _read(part, patched.path)}
        assert {path for path in compiled if path in code.code} <= set(linked), workload.name
        checked += len(made)
    assert checked > 20


def test_code_without_return_sites_is_refused(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(link, "run", lambda argv, what: "")
    with pytest.raises(Failure, match="the host has no return sites"):
        link.link_halves({}, [], [], tmp_path)


def _read(made: Path, tree: Path) -> Iterator[str]:
    """Yield the files of a tree that an object was compiled from."""
    command = made.with_name(f".{made.name}.cmd").read_text()
    for word in re.findall(r"\S+\.[chS]\b", command):
        path = Path(word)
        if path.is_absolute() and path.is_relative_to(tree):
            yield str(path.relative_to(tree))
        elif not path.is_absolute() and (tree / path).exists():
            yield word
