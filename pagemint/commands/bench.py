# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint bench`: kernel code that writes memmaps or copies folios, timed on this machine."""

import argparse
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rich.console import Console

from pagemint.base import cache, machine, returns
from pagemint.base.errors import Failure
from pagemint.base.memmap import MOST_THREADS, PAGE, STRUCT_PAGE
from pagemint.base.progress import bar, note
from pagemint.base.sizes import format_size, parse_size
from pagemint.commands import options
from pagemint.kernels import named, objects, sources, steps, trees
from pagemint.kernels.named import Named
from pagemint.native import identity, link, variants
from pagemint.native.hosts import Hosts
from pagemint.native.link import BASE, Program
from pagemint.native.rounds import Patience, measure
from pagemint.native.variants import Variants
from pagemint.native.workload import Asked, Workload
from pagemint.native.workloads import known
from pagemint.report import tables
from pagemint.report.write import after_run
from pagemint.results import writer
from pagemint.results.rows import Kernel, Limit, Machine, Result, Row, Tree

_SMALLEST = 2 << 20  # bytes: one compound
_LARGEST = 16 * 10**12  # bytes: native/glue/tree.c has no more sections
_PRECISE = 60.0  # seconds of rounds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint bench`."""
    options.add_source_arguments(parser)
    parser.add_argument(
        "--size", default="100GB", metavar="SIZE,...", help="size of the device (100GB)"
    )
    parser.add_argument(
        "--workload", metavar="W,...", help=f"workloads to time (all of {', '.join(known())})"
    )
    parser.add_argument(
        "--threads",
        metavar="N,...",
        help=f"threads that share a device's memmap (1, and up to {MOST_THREADS} as in the kernel)",
    )
    parser.add_argument(
        "--tree",
        action="append",
        metavar="NAME=WHERE",
        help="a tree to compare; WHERE is a kernel tree (DIR), its commit (DIR@REV), a mailbox, a "
        "directory of patches, or series:TOPIC,... (our whole series)",
    )
    parser.add_argument(
        "--against", default=BASE, metavar="NAME", help="the tree to compare the others with (base)"
    )
    parser.add_argument(
        "--modes", action="store_true", help="all modes of each --tree, instead of the default one"
    )
    rounds = parser.add_mutually_exclusive_group()
    rounds.add_argument(
        "--runs", type=int, metavar="N", help="runs of each variant (10, and more if it is noisy)"
    )
    rounds.add_argument(
        "--precise",
        action="store_true",
        help=f"up to {_PRECISE:.0f} s instead of 10 for each workload that is noisy",
    )
    parser.add_argument("--tables", action="store_true", help="also print every row at the end")
    parser.add_argument(
        "--json", metavar="FILE", help="write the result there; - for standard output"
    )
    options.add_run_argument(parser)


def main(args: argparse.Namespace) -> int:
    """Run `pagemint bench`."""
    workloads = _chosen(args.workload)
    sizes = list(dict.fromkeys(_checked_size(text) for text in args.size.split(",")))
    threads = _threads(args.threads)
    patience = _patience(args.runs, args.precise)
    asked_trees = named.parse(args.tree or ())
    _check_against(args.against, asked_trees)
    _check_machine(workloads, [Asked(size, threads) for size in sizes])
    writer.check_writable(args.json)
    found = steps.source_for(args.kernel, args.ksrc)
    workloads = _present(workloads, found.line, named=args.workload is not None)

    compared = _trees(found, asked_trees)
    program = link.link(compared, objects.DEBIAN)
    chosen = variants.choose(program, compared, all_modes=args.modes)
    described = _described(program, chosen, compared, asked_trees)
    able = variants.able(chosen, program, compared, workloads, args.against)
    own = returns.of_this_machine()
    rows: list[Row] = []
    limits: list[Limit] = []
    with Hosts(program) as hosts:
        for workload, plain in _settings(list(able), sizes, threads, own):
            of = able[workload]
            asked = replace(plain, modal=of.modal, plain=of.plain, against=args.against)
            with bar(_title(workload, asked), patience.least) as done:
                more, bounds = measure(hosts.of(workload, asked), workload, asked, patience, done)
            rows += more
            limits += bounds
        huge = hosts.huge_bytes

    base = compared[0]
    result = Result(
        Machine(**machine.about(), huge_bytes=huge),
        Kernel(
            found.version,
            base.key,
            _config(base),
            "" if described else steps.digest(found.line, code=True),
            own,
        ),
        rows,
        limits,
        trees=described,
        against=args.against,
    )
    writer.write(args.json, result)
    where = after_run(args, result)
    console = Console(stderr=args.json == "-")
    if args.tables:
        tables.show_all(result, console)
    tables.show_first_screen(result, console, json=args.json, report=where)
    return 0


def _check_against(name: str, asked: Sequence[Named]) -> None:
    names = [BASE, *(one.name for one in asked)]
    if name not in names:
        raise Failure(f"--against {name}: there is no such tree", f"choose from {', '.join(names)}")


def _trees(found: sources.Source, asked: Sequence[Named]) -> list[trees.Tree]:
    """Return base, and the trees to compare with it: those that were named, or the series."""
    if not asked:
        return list(trees.pair(found))
    base = trees.unpatched(BASE, found)
    return [base, *(named.make(one, base) for one in asked)]


def _described(
    program: Program, chosen: Variants, compared: Sequence[trees.Tree], asked: Sequence[Named]
) -> list[Tree]:
    """Describe the trees that were named, and compare the memmaps that they leave with base's."""
    base, *others = compared
    if not asked:
        return []
    alike = [one.name for one in others if _release(one) == _release(base)]
    differences = identity.differences(program, [one for one in chosen.modal if one.tree in alike])
    described = []
    for one, tree in zip(asked, others, strict=True):
        difference = differences.get(one.name)
        described.append(
            Tree(
                one.name,
                one.where,
                tree.version,
                tree.key,
                _config(tree),
                None if difference is None else not difference,
                difference or "",
            )
        )
        if difference:
            note(f"pagemint: the memmap of {one.name} differs from base's: {difference}")
    return described


def _release(tree: trees.Tree) -> list[str]:
    return tree.version.split(".")[:2]


def _config(tree: trees.Tree) -> str:
    return f"{objects.DEBIAN.name} ({cache.digest(sources.config_for(tree.line))})"


def _settings(
    workloads: Sequence[Workload], sizes: Iterable[int], threads: tuple[int, ...], own: str
) -> Iterator[tuple[Workload, Asked]]:
    """Yield workloads with settings, in an order that needs few starts of a host."""
    for size in sizes:
        # Time the returns of this machine's kernel, and those of a CPU that needs no mitigation.
        for condition in dict.fromkeys((own, returns.PLAIN)):
            asked = Asked(size, threads, condition)
            for workload in workloads:
                # memory() is 0 if the device is smaller than a compound of devdax-1g.
                if workload.sized and workload.memory(asked):
                    yield workload, asked
    for workload in workloads:
        if not workload.sized:
            yield workload, Asked(0, threads, own)


def _title(workload: Workload, asked: Asked) -> str:
    words = [workload.name]
    if workload.sized:
        words += [format_size(asked.device_bytes), returns.NAMES[asked.returns]]
    return f"timing {', '.join(words)}"


def _chosen(text: str | None) -> list[Workload]:
    all_ = known()
    if text is None:
        return list(all_.values())
    names = text.split(",")
    unknown = [name for name in names if name not in all_]
    if unknown:
        raise Failure(f"there is no workload {unknown[0]!r}", f"choose from {', '.join(all_)}")
    return [all_[name] for name in dict.fromkeys(names)]


def _present(workloads: Sequence[Workload], line: str, *, named: bool) -> list[Workload]:
    """Return the workloads whose code a kernel line has.

    Raises:
        Failure: a workload that was named is not among them.
    """
    major, minor = (int(number) for number in line.split(".")[:2])
    absent = [one for one in workloads if one.since > (major, minor)]
    names = ", ".join(one.name for one in absent)
    if absent and named:
        first = ".".join(map(str, max(one.since for one in absent)))
        raise Failure(f"Linux {line} does not have the code of {names}", f"give --kernel {first}")
    if absent:
        note(f"pagemint: left out, as Linux {line} does not have their code: {names}")
    return [one for one in workloads if one not in absent]


def _patience(runs: int | None, precise: bool) -> Patience:
    if runs is None:
        return Patience(seconds=_PRECISE) if precise else Patience()
    if runs < 1:
        raise Failure(f"--runs {runs} is too few", "give 1 or more")
    return Patience(least=runs, seconds=0)


def _threads(text: str | None) -> tuple[int, ...]:
    if text is None:
        return tuple(sorted({1, min(MOST_THREADS, len(os.sched_getaffinity(0)))}))
    return tuple(dict.fromkeys(_checked_threads(one) for one in text.split(",")))


def _checked_threads(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_THREADS:
        raise Failure(f"--threads {text}: not a valid thread count", f"give 1 to {MOST_THREADS}")
    return int(text)


def _checked_size(text: str) -> int:
    size = parse_size(text)
    if size < _SMALLEST:
        raise Failure(f"a device of {text} is too small", "give at least 2MiB")
    if size > _LARGEST:
        raise Failure(f"a device of {text} is too large", "give at most 16TB")
    return size


def _check_machine(workloads: Sequence[Workload], asked: Sequence[Asked]) -> None:
    if platform.machine() != "x86_64":
        raise Failure(f"this machine is {platform.machine()}", "run this on x86-64")
    free = int(machine.memory()["MemAvailable"] * 0.95)
    for one in asked:
        for workload in workloads:
            needed = workload.memory(one)
            if needed > free and workload.sized:
                most = free * PAGE // STRUCT_PAGE // 10**9
                raise Failure(
                    f"the memmap of {format_size(one.device_bytes)} takes {format_size(needed)}, "
                    f"and {format_size(free)} of memory are free",
                    f"give --size {most}GB or less",
                )
            if needed > free:
                others = ",".join(each.name for each in known().values() if each.sized)
                raise Failure(
                    f"{workload.name} takes {format_size(needed)} of memory, "
                    f"and {format_size(free)} are free",
                    f"leave it out: --workload {others}",
                )
