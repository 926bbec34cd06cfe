# SPDX-License-Identifier: GPL-2.0-only
"""Checks the arguments of `pagemint bench`, and builds the code that it times."""

import platform
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pagemint.base import machine, returns
from pagemint.base.errors import Failure, OutOfMemory, TreeFailure
from pagemint.base.progress import note
from pagemint.base.request import option
from pagemint.base.sizes import format_size, parse_size
from pagemint.bench import identity, link, own_workloads, timed, variants
from pagemint.bench.kernel_half import KernelHalf
from pagemint.bench.left_out import LeftOut
from pagemint.bench.link import Program
from pagemint.bench.rounds import Budget
from pagemint.bench.variants import Variants
from pagemint.bench.workload import Settings, Workload
from pagemint.bench.workloads import known
from pagemint.commands import bench_room, options
from pagemint.results import expect, writer
from pagemint.results.expect import Expectation
from pagemint.results.rows import EVERYTHING, MOST_RUNS, Kernel, Limit, Machine, Result, Row, Tree
from pagemint.trees import configs, edited, named, patches, trees
from pagemint.trees.named import Named
from pagemint.trees.objects import Config
from pagemint.words import BASE, MOST_THREADS, PATCHED

ABORTED = 128
"""The exit status that ends a `git bisect run`: no commit is to blame."""

UNDECIDED = 125
"""The exit status with which `git bisect run` skips a commit."""

PRECISE = 60.0
"""Seconds of rounds with --precise."""

_FIRST = ("fsdax", "devdax", "hotplug", "boot", "private")
"""The workloads that people ask for first, in that order."""

QUICK = _FIRST[:4]
"""The workloads of --quick."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of `pagemint bench`."""

    source: options.Source
    config: Path | None = option(
        None,
        "the kernel configuration (the .config of --ksrc, else Debian's, else defconfig)",
        "FILE",
    )
    size: str = option("100GB", "size of the device (100GB)", "SIZE,...")
    workload: str | None = option(
        None, f"workloads to time (all of {', '.join(known())}), or C files with your own", "W,..."
    )
    threads: str | None = option(
        None,
        f"threads that share a device's memmap (1, and up to {MOST_THREADS} as in the kernel)",
        "N,...",
    )
    tree: tuple[str, ...] = option(
        (),
        "a tree to compare; WHERE is a kernel tree (DIR), its commit (DIR@REV), a mailbox, a "
        "directory of patches, or series:TOPIC,... (our whole series)",
        "NAME=WHERE",
        action="append",
    )
    against: str = option(BASE, "the tree to compare the others with (base)", "NAME")
    modes: bool = option(False, "all modes of each --tree, instead of the default one")
    expect: str | None = option(
        None,
        "time two trees at several placements of their code; end with status 0 if EXPR "
        "holds (such as 'fsdax: v5/base >= 1.5'), 1 if not, 125 if that cannot be decided",
        "EXPR",
    )
    quick: bool = option(False, f"only {', '.join(QUICK)}, with plain returns: about a minute")
    runs: int | None = option(
        None, "runs of each variant (6, and more if it is noisy)", "N", only="rounds"
    )
    precise: bool = option(
        False, f"up to {PRECISE:.0f} s instead of 10 for each workload that is noisy", only="rounds"
    )
    tables: bool = option(False, "also print every row at the end")
    output: options.Output


@dataclass(frozen=True)
class Plan:
    """A bench whose arguments are checked and whose code is built.

    Attributes:
        kernel: the kernel code, for the result.
        compared: base, and the trees that are compared with it.
        described: the trees that the user named.
        programs: the hosts, one for each placement of the code.
        able: the workloads, and the variants that can run each.
        against: the tree that the others are compared with.
        sizes: the sizes of the device, in bytes.
        threads: the numbers of threads.
        quick: time plain returns alone.
        budget: the rounds.
        left_out: the trees that are left out of workloads.
    """

    kernel: Kernel
    compared: Sequence[trees.Tree]
    described: list[Tree]
    programs: Sequence[Program]
    able: Mapping[Workload, Variants]
    against: str
    sizes: Sequence[int]
    threads: tuple[int, ...]
    quick: bool
    budget: Budget
    left_out: LeftOut

    def settings(self, workload: Workload, setting: Settings) -> Settings:
        """Return a setting with the variants of a workload."""
        of = self.able[workload]
        return replace(setting, modal=of.modal, plain=of.plain, against=self.against)

    def result(self, rows: list[Row], limits: list[Limit], huge_bytes: int) -> Result:
        """Return the result of a bench."""
        return Result(
            Machine(**machine.about(), huge_bytes=huge_bytes),
            self.kernel,
            rows,
            limits,
            trees=[
                replace(one, left_out=dict(self.left_out.of(one.name))) for one in self.described
            ],
            against=self.against,
        )


def plan(request: Request, expected: Expectation | None) -> Plan:
    """Check a request, and build the code.

    Raises:
        TreeFailure: a tree that was named cannot be made; or does not build, and nothing is left
            to compare.
        Failure: an argument is wrong, or base does not build.
    """
    if expected:
        _check_alone(request)
    if request.quick and request.workload:
        raise Failure("--quick does not go with --workload", "leave out one of them")
    named_workloads = ",".join(QUICK) if request.quick else request.workload
    words = None if named_workloads is None else list(dict.fromkeys(named_workloads.split(",")))
    half = KernelHalf([Path(word) for word in words or () if own_workloads.is_file(word)])
    workloads = _chosen(words, half, expected.workload if expected else "")
    sizes = list(dict.fromkeys(_checked_size(text) for text in request.size.split(",")))
    threads = (1,) if expected else _threads(request.threads)
    count = expect.PLACEMENTS if expected else 1
    budget = Budget(seconds=PRECISE) if request.precise else Budget()
    if request.runs is not None:
        options.check_number("--runs", request.runs, 1, MOST_RUNS // count)
        budget = Budget(least=request.runs, seconds=0)
    asked_trees = named.parse(request.tree)
    against = expected.over if expected else request.against
    names = [BASE, *([one.name for one in asked_trees] or [PATCHED])]
    for name in (against, expected.tree if expected else against):
        if name not in names:
            raise Failure(f"there is no tree {name}", f"choose from {', '.join(names)}")
    check_machine(workloads, [Settings(size, threads) for size in sizes])
    if expected:
        writer.check_file(request.output.json)  # there is no report
    else:
        request.output.check()
    found = patches.source_for(request.source.kernel, request.source.ksrc)
    theirs = configs.of_user(request.config, found)
    workloads = _present(workloads, found.line, named=bool(expected or request.workload))

    if asked_trees:
        made = [trees.unpatched(BASE, found)]
        for one in asked_trees:
            with trees.blamed(one.name):
                made.append(one.make(made[0]))
    else:
        made = list(trees.pair(found))
    config = theirs or configs.usual(found)
    left_out = LeftOut()
    needed = {against, expected.tree} if expected else {against}
    all_modes = request.modes or not (asked_trees or expected)
    compared, programs, chosen = _linked(
        made, needed, left_out, half, count, config, all_modes=all_modes
    )
    own = own_workloads.describe(programs[0], half, [tree.name for tree in compared])
    check_machine(own, [Settings(0)])
    workloads += own
    if expected:
        workloads = [one for one in workloads if one.name == expected.workload]
    able = variants.able(chosen, programs[0], compared, workloads, against, left_out)
    name = config.described(compared[0].line)
    kernel = Kernel(found.version, compared[0].key, name, returns=returns.of_this_machine())
    if not asked_trees:  # then the series takes part
        code = timed.digests(found.line)
        mine = {one.name: code[one.name] for one in able if one.name in code}
        kernel = replace(kernel, series=edited.digest(found.line), code=mine)
    return Plan(
        kernel,
        compared,
        _described(programs[0], chosen, made, asked_trees, left_out, config),
        programs,
        able,
        against,
        sizes,
        threads,
        request.quick,
        budget,
        left_out,
    )


def runs(of: Plan) -> list[tuple[Workload, Settings]]:
    """Return workloads with settings, in the order in which they are timed and shown.

    Plain returns come first, since they are the same on every machine, then workloads that no
    size or returns concern, then the returns of this machine's kernel.

    Raises:
        Failure: no workload can run with these sizes.
    """
    workloads = sorted(of.able, key=lambda one: (*_FIRST, one.name).index(one.name))
    once = [(one, Settings(0, of.threads, of.kernel.returns)) for one in workloads if not one.sized]
    found: list[tuple[Workload, Settings]] = []
    for condition in dict.fromkeys((returns.PLAIN, of.kernel.returns)[: 1 if of.quick else 2]):
        for size in of.sizes:
            asked = Settings(size, of.threads, condition)
            # memory() is 0 if the device is smaller than a compound or block of the workload.
            found += [(one, asked) for one in workloads if one.sized and one.memory(asked)]
        if condition == returns.PLAIN:
            found += once
    if not found:
        raise nothing()
    return [(one, of.settings(one, asked)) for one, asked in found]


def nothing() -> Failure:
    """Return the failure of a bench whose workloads are all left out."""
    return Failure("there is nothing to time", "give a larger --size, or another --workload")


def _linked(
    made: Sequence[trees.Tree],
    needed: Set[str],
    left_out: LeftOut,
    half: KernelHalf,
    count: int,
    config: Config,
    *,
    all_modes: bool,
) -> tuple[Sequence[trees.Tree], list[Program], Variants]:
    """Link `count` hosts, without trees that do not build or that the host cannot patch.

    Returns:
        the trees that are left, the hosts and the variants.

    Raises:
        TreeFailure: such a tree is in `needed`, or only base is left.
    """
    while True:
        try:
            programs = link.link_placed(made, config, count, half=half)
            own = returns.of_this_machine()
            return made, programs, variants.choose(programs[0], made, own, all_modes=all_modes)
        except TreeFailure as failure:
            made = [one for one in made if one.name != failure.tree]
            if failure.tree in needed or len(made) < 2:
                raise
            left_out.failed(EVERYTHING, failure)


def _check_alone(request: Request) -> None:
    """Check that --expect comes without the options that it has no use for."""
    given = {
        "--threads": request.threads,
        "--against": request.against != BASE,
        "--modes": request.modes,
        "--tables": request.tables,
        "--precise": request.precise,
        "several sizes": "," in request.size,
    }
    for name, value in given.items():
        if value:
            raise Failure(f"--expect does not go with {name}", f"leave out {name}")


def _described(
    program: Program,
    chosen: Variants,
    made: Sequence[trees.Tree],
    asked: Sequence[Named],
    left_out: LeftOut,
    config: Config,
) -> list[Tree]:
    """Describe the trees that were named, and compare the memmaps that they leave with base's."""
    base, *others = made
    if not asked:
        return []
    alike = [one.name for one in others if one.release == base.release]
    compared = [one for one in chosen.modal if one.tree in alike]
    differences = identity.differences(program, compared, left_out)
    described = []
    for one, tree in zip(asked, others, strict=True):
        difference = differences.get(one.name)
        described.append(
            Tree(
                one.name,
                one.where,
                tree.version,
                tree.key,
                config.described(tree.line),
                None if difference is None else not difference,
                difference or "",
                applied=list(tree.applied),
                not_applied=list(tree.not_applied),
            )
        )
        if difference:
            note(f"pagemint: the memmap of {one.name} differs from base's: {difference}")
    return described


def _chosen(words: Sequence[str] | None, half: KernelHalf, expected: str) -> list[Workload]:
    """Return the lab's workloads that --workload or --expect names.

    Args:
        words: the words of --workload; None stands for all of the lab's workloads.
        half: has the workloads in the files among these words.
        expected: the workload of --expect; "" if there is none.

    Raises:
        Failure: there is no such workload, or two have one name.
    """
    all_ = known()
    theirs = [name for names in half.own.values() for name in names]
    for name in theirs:
        if name in all_ or theirs.count(name) > 1:
            raise Failure(f"there are two workloads named {name!r}", "rename one")
    names = (
        list(all_) if words is None else [one for one in words if not own_workloads.is_file(one)]
    )
    if expected:
        names = [] if expected in theirs else [expected]
    unknown = [name for name in names if name not in all_]
    if unknown:
        choice = ", ".join([*all_, *theirs])
        raise Failure(f"there is no workload {unknown[0]!r}", f"choose from {choice}")
    return [all_[name] for name in names]


def _present(workloads: Sequence[Workload], line: str, *, named: bool) -> list[Workload]:
    """Return the workloads whose code a kernel line has.

    Raises:
        Failure: a workload that was named is not among them.
    """
    major, minor = (int(number) for number in re.findall(r"[0-9]+", line)[:2])
    absent = [one for one in workloads if one.since > (major, minor)]
    names = ", ".join(one.name for one in absent)
    if absent and named:
        first = ".".join(map(str, max(one.since for one in absent)))
        raise Failure(f"Linux {line} does not have the code of {names}", f"give --kernel {first}")
    if absent:
        note(f"pagemint: left out, as Linux {line} does not have their code: {names}")
    return [one for one in workloads if one not in absent]


def _threads(text: str | None) -> tuple[int, ...]:
    if text is None:
        return tuple(sorted({1, min(MOST_THREADS, machine.cpus())}))
    for one in text.split(","):
        if not one.isdecimal() or not 1 <= int(one) <= MOST_THREADS:
            raise Failure(f"--threads {one}: not a valid thread count", f"give 1 to {MOST_THREADS}")
    return tuple(dict.fromkeys(map(int, text.split(","))))


def _checked_size(text: str) -> int:
    size = parse_size(text)
    if size < bench_room.SMALLEST:
        raise Failure(f"a device of {text} is too small", "give at least 2MiB")
    if size > bench_room.LARGEST:
        raise Failure(f"a device of {text} is too large", "give at most 16TB")
    return size


def check_machine(workloads: Sequence[Workload], asked: Sequence[Settings]) -> None:
    """Check that this machine can run workloads, and has the memory for all settings.

    Raises:
        Failure: it cannot, or has not.
    """
    if platform.machine() != "x86_64":
        raise Failure(f"this machine is {platform.machine()}", "run this on x86-64")
    free = bench_room.free()
    for one in workloads:
        for setting in asked:
            needed = one.memory(setting)
            if needed <= free:
                continue
            room = f"{format_size(free)} of memory are {machine.unused()}"
            missing = f"takes {format_size(needed)}, and {room}"
            if not one.sized:
                raise Failure(f"{one.name} {missing}", _without(workloads, free))
            most = bench_room.largest(workloads, free)
            raise Failure(
                f"the memmap of {format_size(setting.device_bytes)} {missing}",
                f"give --size {most} or less" if most else "end some programs",
            )


@contextmanager
def smaller_size(workload: Workload, asked: Settings) -> Iterator[None]:
    """Let a failure for want of memory name a --size that fits.

    The free memory was enough by its figures; half of what was needed is a safe choice.

    Raises:
        OutOfMemory: the work in the `with` statement raised it.
    """
    try:
        yield
    except OutOfMemory as failure:
        room = min(bench_room.free(), workload.memory(asked) // 2)
        most = bench_room.largest([workload], room) if workload.sized else None
        remedy = f"--size {most} fits" if most else _without(list(known().values()), room)
        raise OutOfMemory(failure.message, remedy) from failure


def _without(workloads: Sequence[Workload], free: int) -> str:
    """Return a remedy: to time only what the free memory is enough for, whatever the size."""
    fit = bench_room.fitting(workloads, free)
    return f"leave it out: --workload {','.join(fit)}" if fit else "end some programs"
