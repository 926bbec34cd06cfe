# SPDX-License-Identifier: GPL-2.0-only
"""Workloads that a user wrote in one C file each; see pagemint/bench/glue/workload.h."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from pagemint.base.errors import Failure
from pagemint.bench.kernel_half import KernelHalf
from pagemint.bench.link import Program
from pagemint.bench.process import Answer, Host
from pagemint.bench.workload import FIRST_PFN, Settings, Task, Timed, Variant, Workload, map_pages
from pagemint.results.cases import size_of
from pagemint.results.rows import Case
from pagemint.trees.trees import blamed
from pagemint.words import AGAIN, BASE, PAGE

_MOST = 1 << 32


def is_file(name: str) -> bool:
    """Whether an argument of --workload is a file, not a name."""
    return name.endswith(".c")


def describe(program: Program, half: KernelHalf, trees: Sequence[str]) -> list[Workload]:
    """Return the workloads of the user's files in a host, as one of `trees` describes each.

    Raises:
        Failure: a file describes a workload that cannot run.
    """
    made: list[Workload] = []
    if not half.own:
        return made
    with Host(program) as host:
        for file, names in half.own.items():
            able = next((tree for tree in trees if (tree, file.stem) not in program.lacks), None)
            if able is None:
                why = f"{trees[-1]}: {program.lacks[trees[-1], file.stem]}"
                raise Failure(f"no tree can run {file.name}; {why}", "use what one of them has")
            for name in names:
                about = host.ask(f"own_{name}", tree=able, about=1)
                made.append(_workload(file, name, about))
    return made


def _workload(file: Path, name: str, about: Answer) -> Workload:
    pages, times = int(about["pages"]), int(about["times"])
    if not (0 < pages < _MOST and 0 < times < _MOST):
        raise Failure(
            f"{file.name}: {name} has .pages = {pages} and .times = {times}",
            "both have to be at least 1, and less than 2^32",
        )
    if not 0 <= int(about["moved"]) < _MOST:
        raise Failure(f"{file.name}: .moved of {name} is too large", "give less than 2^32")
    return Workload(
        name=name,
        memory=lambda settings: pages * PAGE,
        setup=lambda host, settings: map_pages(host, pages),
        tasks=partial(_tasks, file.name, name, about),
        sized=False,
        file=file.stem,
    )


def _tasks(file: str, name: str, about: Answer, settings: Settings) -> Iterable[Task]:
    moved, times = int(about["moved"]), int(about["times"])
    case = Case(
        name,
        max(1, moved * times),
        int(about["pages"]),
        returns=settings.returns,
        operation=size_of(moved) if moved else "run",
        times=times,
    )
    # Base a second time shows the noise: nothing else is known about a user's code.
    again = {BASE: (Variant(BASE), Variant(AGAIN))}
    for plain in settings.plain:
        for variant in again.get(plain.tree, (plain,)):
            yield Task(case, variant, partial(_run, file, name, variant))


def _run(file: str, name: str, variant: Variant, host: Host) -> Timed:
    answer = host.ask(f"own_{name}", tree=variant.tree, pfn=FIRST_PFN)
    if answer["right"] == "0":
        with blamed(variant.tree):
            raise Failure(
                f"{file}: check() of {name} found a wrong result with the {variant.tree} tree",
                "fix the workload, or the tree",
            )
    return Timed(max(1, int(answer["ns"])))
