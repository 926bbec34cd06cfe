# SPDX-License-Identifier: GPL-2.0-only
"""A workload: the kernel code that a bench times, and how to ask the native host for a run of it.

A workload is one C file in workloads/, compiled as kernel code of each tree, and the module beside
it that describes it here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from pagemint.bench.process import Host
from pagemint.results.rows import Case, Limit
from pagemint.words import BASE, PAGE, PUBLISHED, STRUCT_PAGE

FIRST_PFN = 1 << 20
"""The first page of all memory in the host: at 4 GiB, aligned for every compound."""


class Variant(NamedTuple):
    """A tree, and a mode if it has any."""

    tree: str
    mode: str = ""


NEXT = Variant(PUBLISHED, PUBLISHED)
"""The variant that stands for Linux 7.4."""


@dataclass(frozen=True)
class Settings:
    """The settings of a bench.

    Attributes:
        device_bytes: size of the device, or of the memory.
        threads: numbers of threads to share work among, each in turn.
        returns: the kind of returns that the kernel code is patched to.
        modal: the variants of a workload that writes a memmap.
        plain: the variants of a workload without modes: one for each tree.
        against: the tree that the others are compared with.
    """

    device_bytes: int
    threads: tuple[int, ...] = (1,)
    returns: str = "plain"
    modal: tuple[Variant, ...] = ()
    plain: tuple[Variant, ...] = ()
    against: str = BASE


class Timed(NamedTuple):
    """The nanoseconds of one run, and of the walk in it that frees pages, if that is timed too."""

    ns: int
    walk_ns: int = 0


@dataclass(frozen=True)
class Task:
    """A run that is repeated in each round.

    Attributes:
        case: its condition.
        variant: the tree and mode whose code it runs.
        run: runs it once.
    """

    case: Case
    variant: Variant
    run: Callable[[Host], Timed] = field(compare=False)


@dataclass(frozen=True, eq=False)
class Loop:
    """A plain loop that may be the limit of some tasks.

    Attributes:
        limit: its limit, with no runs yet.
        run: runs it once.
    """

    limit: Limit
    run: Callable[[Host], Timed]

    @property
    def bounds(self) -> tuple[object, ...]:
        """The threads and folio size. Loops with equal ones compete: the fastest is the limit."""
        return (self.limit.threads, self.limit.folio_bytes)


@dataclass(frozen=True)
class Workload:
    """The tasks that a bench times under one name.

    Attributes:
        name: its name on the command line and in results.
        memory: bytes that it maps for some settings; 0 if it cannot run with them.
        setup: maps memory in a host that has just been started and returns how many bytes of it
            lie in huge pages; workloads with the same setup share a host.
        tasks: the tasks for some settings.
        loops: the limits of these tasks; none without it.
        rounds: rounds after which a new host is started; 0 keeps one host for all rounds.
        sized: whether it depends on the size of the device; if not, it is timed once, with the
            returns of this machine's kernel.
        since: the first kernel line that has its code.
        uses: the C files of other workloads whose commands it asks, without suffix.
        file: its C file in pagemint/bench/workloads/, without suffix; known() sets it.
    """

    name: str
    memory: Callable[[Settings], int]
    setup: Callable[[Host, Settings], int]
    tasks: Callable[[Settings], Iterable[Task]]
    loops: Callable[[Host, Settings], Iterable[Loop]] = lambda host, settings: ()
    rounds: int = 0
    sized: bool = True
    since: tuple[int, int] = (0, 0)
    uses: tuple[str, ...] = ()
    file: str = ""


def memmap_bytes(settings: Settings) -> int:
    """Return the size of the memmap of the device."""
    return settings.device_bytes // PAGE * STRUCT_PAGE


def map_memmap(host: Host, settings: Settings) -> int:
    """Map the device's memmap in a host; return how many of its bytes are in huge pages."""
    return map_window(host, settings.device_bytes // PAGE)


def map_window(host: Host, pages: int) -> int:
    """Map the memmap of pages in a host; return how many of its bytes are in huge pages."""
    return int(host.ask("map", first=FIRST_PFN, pages=pages)["huge"])


def map_pages(host: Host, pages: int) -> int:
    """Map pages and their memmap in a host; return how many bytes of them are in huge pages."""
    host.ask("map", first=FIRST_PFN, pages=pages)
    return int(host.ask("memory", first=FIRST_PFN, pages=pages)["huge"])


def fill_loops(host: Host, settings: Settings, threads: Sequence[int]) -> Iterable[Loop]:
    """Return the plain loops that fill the memmap of the device."""
    pages = settings.device_bytes // PAGE
    for count in threads:
        for name in host.ask("loops", fills=1)["loop"].split(","):
            limit = Limit(
                "fill",
                name,
                settings.device_bytes,
                pages,
                [],
                threads=count,
                returns=settings.returns,
            )

            def run(host: Host, name: str = name, count: int = count) -> Timed:
                answer = host.ask("fill", loop=name, first=FIRST_PFN, pages=pages, threads=count)
                return Timed(int(answer["ns"]))

            yield Loop(limit, run)


def choose(host: Host, variant: Variant, threads: int = 1) -> None:
    """Choose the mode of a tree, and the most threads that share its work."""
    if variant.mode:
        host.ask("mode", tree=variant.tree, name=variant.mode)
        host.ask("threads", tree=variant.tree, nr=threads)


def command_tasks(
    case: Case,
    variants: Iterable[Variant],
    command: str,
    arguments: Mapping[str, object],
    *,
    answers: Sequence[str] = ("ns",),
    walk: str = "",
    prepare: Callable[[Host], object] = lambda host: None,
) -> Iterable[Task]:
    """Return the tasks that send one command to the tree of each variant.

    Args:
        case: their condition.
        variants: the trees and modes.
        command: the name of the command.
        arguments: its arguments, but the tree.
        answers: the answers whose sum is the time.
        walk: the answer that is the time of the walk, if that is timed too.
        prepare: called before each run.
    """

    def run(variant: Variant, host: Host) -> Timed:
        prepare(host)
        choose(host, variant, case.threads)
        answer = host.ask(command, tree=variant.tree, **arguments)
        return Timed(sum(int(answer[name]) for name in answers), int(answer[walk]) if walk else 0)

    return [Task(case, variant, partial(run, variant)) for variant in variants]


def shares_work(variant: Variant) -> bool:
    """Whether a variant shares its work among threads, as mainline and Linux 7.4 do not."""
    return variant != NEXT and variant.mode not in ("", "slow")
