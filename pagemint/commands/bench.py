# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint bench`: the memory map's bring-up, before and after, natively on this machine."""

import argparse
import os
import platform
from dataclasses import asdict
from itertools import chain

from rich.console import Console
from rich.table import Table

from pagemint.base import cache, machine, returns
from pagemint.base.errors import Failure
from pagemint.base.memmap import MOST_THREADS, PAGE, STRUCT_PAGE
from pagemint.base.progress import bar, note, step
from pagemint.base.sizes import format_size, parse_size
from pagemint.commands import options
from pagemint.kernels import objects, sources, steps, trees
from pagemint.native import folio, link, ordinary, process
from pagemint.native.device import FIRST_PFN, WORKLOADS, Limit, NativeRow, measure
from pagemint.report.write import after_run
from pagemint.results import writer

_SMALLEST = 2 << 20  # bytes: one compound
_NAMES = (*WORKLOADS, *ordinary.WORKLOADS, "folio")
_LARGEST = 16 * 10**12  # bytes: what the sections of native/glue.c reach


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint bench`."""
    options.add_source_arguments(parser)
    parser.add_argument(
        "--size", default="100GB", metavar="SIZE,...", help="size of the device (100GB)"
    )
    parser.add_argument(
        "--workload",
        default=",".join(_NAMES),
        metavar="W,...",
        help=f"what to time (all of {', '.join(_NAMES)})",
    )
    parser.add_argument(
        "--threads",
        metavar="N,...",
        help=f"threads that share a device's memmap (1, and up to {MOST_THREADS} as in the kernel)",
    )
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="runs of each (10)")
    parser.add_argument(
        "--json", metavar="FILE", help="write the result there; - for standard output"
    )
    options.add_run_argument(parser)


def main(args: argparse.Namespace) -> int:
    """Run `pagemint bench`."""
    names = _names(args.workload)
    workloads = [WORKLOADS[name] for name in names if name in WORKLOADS]
    memory = [name for name in names if name in ordinary.WORKLOADS]
    sizes = list(dict.fromkeys(_checked_size(text) for text in args.size.split(",")))
    threads = _threads(args.threads)
    if args.runs < 1:
        raise Failure(f"--runs {args.runs} is too few", "give 1 or more")
    _check_machine(max(sizes) if workloads or memory else 0, "folio" in names)
    writer.check_writable(args.json)
    found = steps.source_for(args.kernel, args.ksrc)

    pair = trees.pair(found)
    program = link.link(pair, objects.DEBIAN)
    console = Console(stderr=args.json == "-")
    own = returns.of_this_machine()
    rows: list[NativeRow] = []
    limits: list[Limit] = []
    brought_up: list[list[ordinary.MemoryRow]] = []
    copies: list[folio.FolioRow] = []
    copy_loops: list[folio.Loop] = []
    copy_limit = None
    huge = 0
    with process.Host(program) as host:
        for size in sizes if workloads or memory else []:
            huge = _touch(host, size)
            # What a kernel does on this machine, and what it does where returns need nothing.
            for condition in dict.fromkeys((own, returns.PLAIN)):
                host.patch(condition)
                how = returns.NAMES[condition]
                # A compound of devdax-1g may not fit.
                fit = [one for one in workloads if one.pages(size)]
                if fit:
                    what = f"timing a device of {format_size(size)}, {how}"
                    with bar(what, args.runs + 1) as done:
                        more, found_limits = measure(
                            host, condition, size, fit, threads, args.runs, done
                        )
                    rows += more
                    limits += found_limits
                if memory:
                    what = f"timing ordinary memory of {format_size(size)}, {how}"
                    with bar(what, args.runs + 1) as done:
                        brought_up.append(
                            ordinary.measure(host, condition, size, memory, args.runs, done)
                        )
    if "folio" in names:
        with bar("timing copies of folios", folio.rounds(args.runs)) as done:
            copies, copy_loops, copy_limit = folio.measure(program, own, args.runs, done)

    body = {
        "host": {**machine.about(), "huge_bytes": huge},
        "kernel": {
            "version": found.version,
            "source": pair[0].key,
            "config": f"{objects.DEBIAN.name} ({cache.digest(sources.config_for(pair[0].line))})",
            "series": steps.digest(found.line, code=True),
            "returns": own,
        },
        "limit": {
            "fill_bytes_per_s": max((one.bytes_per_s for one in limits), default=None),
            "copy_bytes_per_s": copy_limit,
            "fill_loops": [asdict(limit) for limit in limits],
            "copy_loops": [asdict(loop) for loop in copy_loops],
        },
        "rows": [asdict(row) for row in (*rows, *chain(*brought_up), *copies)],
    }
    _print_tables(rows, limits, own, console)
    for one in brought_up:
        console.print(ordinary.table(one))
    if copies:
        console.print(folio.table(copies, copy_loops))
    writer.write(args.json, body)
    after_run(args, body)
    return 0


def _names(text: str) -> list[str]:
    unknown = [name for name in text.split(",") if name not in _NAMES]
    if unknown:
        raise Failure(f"there is no workload {unknown[0]!r}", f"choose from {', '.join(_NAMES)}")
    return list(dict.fromkeys(text.split(",")))


def _touch(host: process.Host, size: int) -> int:
    """Give `host` the memory map of a device of `size` bytes; the bytes in huge pages."""
    pages = size // PAGE
    with step(f"touching {format_size(pages * STRUCT_PAGE)} of memory map"):
        host.patch(returns.PLAIN)
        huge = int(host.ask("map", FIRST_PFN, pages, -1))
    if huge < pages * STRUCT_PAGE * 0.9:
        note("pagemint: few huge pages, unlike in a kernel; see 'pagemint doctor'")
    return huge


def _threads(text: str | None) -> list[int]:
    if text is None:
        return sorted({1, min(MOST_THREADS, len(os.sched_getaffinity(0)))})
    return list(dict.fromkeys(_checked_threads(one) for one in text.split(",")))


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


def _check_machine(size: int, folios: bool) -> None:
    if platform.machine() != "x86_64":
        raise Failure(f"this machine is {platform.machine()}", "run this on x86-64")
    needed = size // PAGE * STRUCT_PAGE
    free = machine.memory()["MemAvailable"]
    if needed > free * 0.95:
        raise Failure(
            f"the memory map of {format_size(size)} takes {format_size(needed)}, "
            f"and {format_size(free)} of memory are free",
            f"give --size {int(free * 0.9) * PAGE // STRUCT_PAGE // 10**9}GB or less",
        )
    if folios and free * 0.95 < folio.MEMORY:
        raise Failure(
            f"the copies of folios take {format_size(folio.MEMORY)}, "
            f"and {format_size(free)} of memory are free",
            f"leave folio out: --workload {','.join(WORKLOADS)}",
        )


def _print_tables(rows: list[NativeRow], limits: list[Limit], own: str, console: Console) -> None:
    for limit in limits:
        mine = [
            row
            for row in rows
            if (row.returns, row.threads, row.device_bytes)
            == (limit.returns, limit.threads, limit.device_bytes)
        ]
        here = " as this machine's kernel has them" if limit.returns == own else ""
        shared = f", {limit.threads} threads" if limit.threads > 1 else ""
        table = Table(
            title=f"Memory map of a {format_size(limit.device_bytes)} device, "
            f"{returns.NAMES[limit.returns]}{here}{shared}",
            caption=f"fill limit: {limit.bytes_per_s / 1e9:.1f} GB/s ({limit.loop}); "
            f"medians of {len(limit.runs_ms)} runs, ratios in pairs",
        )
        table.add_column("workload", no_wrap=True)
        table.add_column("variant", no_wrap=True)
        for name in ("ms", "min", "max", "ns/page", "speed-up", "of limit"):
            table.add_column(name, justify="right")
        for number, row in enumerate(mine):
            table.add_row(
                row.workload,
                row.variant,
                f"{row.median_ms:.2f}",
                f"{min(row.runs_ms):.2f}",
                f"{max(row.runs_ms):.2f}",
                f"{row.ns_per_page:.2f}",
                f"{row.speedup:.2f}x",
                f"{row.limit_ratio:.2f}",
                end_section=number + 1 == len(mine) or mine[number + 1].variant == "base",
            )
        console.print(table)
