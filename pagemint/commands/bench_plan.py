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
from pagemint.trees.sources import Source
from pagemint.words import BASE, MOST_THREADS, PATCHED, PUBLISHED

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
        able = self.able[workload]
        return replace(setting, modal=able.modal, plain=able.plain, against=self.against)

    def result(self, rows: list[Row], limits: list[Limit], huge_bytes: int) -> Result:
        """Return the result of a bench."""
        return Result(
            Machine(**machine.about(), huge_bytes=huge_bytes),
            self.kernel,
            rows,
            limits,
            trees=[
                replace(tree, left_out=dict(self.left_out.of(tree.name))) for tree in self.described
            ],
            against=self.against,
        )


def plan(request: Request, expected: Expectation | None) -> Plan:
    """Check a request, and build the code.

    Raises:
        TreeFailure: a tree that was named cannot be made, or too few trees build.
        Failure: an argument is wrong, or base does not build.
    """
    if expected:
        _check_expect_options(request)
    if request.quick and request.workload:
        raise Failure("--quick does not go with --workload", "leave out one of them")
    requested = ",".join(QUICK) if request.quick else request.workload
    words = None if requested is None else list(dict.fromkeys(requested.split(",")))
    half = KernelHalf([Path(word) for word in words or () if own_workloads.is_file(word)])
    workloads = _chosen(words, half, expected.workload if expected else "")
    sizes = list(dict.fromkeys(_checked_size(text) for text in request.size.split(",")))
    threads = (1,) if expected else _threads(request.threads)
    placements = expect.PLACEMENTS if expected else 1
    budget = Budget(seconds=PRECISE) if request.precise else Budget()
    if request.runs is not None:
        options.check_number("--runs", request.runs, 1, MOST_RUNS // placements)
        budget = Budget(least=request.runs, seconds=0)
    named_trees = named.parse(request.tree)
    against = expected.over if expected else request.against
    names = [BASE, *([tree.name for tree in named_trees] or [PATCHED])]
    for name in (against, expected.tree if expected else against):
        if name not in names:
            raise Failure(f"there is no tree {name}", f"choose from {', '.join(names)}")
    check_machine(workloads, [Settings(size, threads) for size in sizes])
    if expected:
        writer.check_file(request.output.json)  # there is no report
    else:
        request.output.check()
    source = patches.source_for(request.source.kernel, request.source.ksrc)
    user_config = configs.of_user(request.config, source)
    workloads = _present(workloads, source.line, named=bool(expected or request.workload))

    made = _make_trees(source, named_trees)
    config = user_config or configs.usual(source)
    left_out = LeftOut()
    needed = {against, expected.tree} if expected else {against}
    all_modes = request.modes or not (named_trees or expected)
    compared, programs, chosen = _linked(
        made, needed, left_out, half, placements, config, all_modes=all_modes
    )
    own = own_workloads.describe(programs[0], half, [tree.name for tree in compared])
    check_machine(own, [Settings(0)])
    workloads += own
    if expected:
        workloads = [workload for workload in workloads if workload.name == expected.workload]
    able = variants.able(chosen, programs[0], compared, workloads, against, left_out)
    name = config.described(compared[0].line)
    kernel = Kernel(source.version, compared[0].key, name, returns=returns.of_this_machine())
    if not named_trees:  # the whole series is timed
        digests = timed.digests(source.line)
        code = {w.name: digests[w.name] for w in able if w.name in digests}
        kernel = replace(kernel, series=edited.digest(source.line), code=code)
    return Plan(
        kernel,
        _described(programs[0], chosen, made, named_trees, left_out, config),
        programs,
        able,
        against,
        sizes,
        threads,
        request.quick,
        budget,
        left_out,
    )


def _make_trees(source: Source, named_trees: Sequence[Named]) -> list[trees.Tree]:
    """Return base, and the trees that were named, else the patched one and that of Linux 7.4."""
    if not named_trees:
        base, patched = trees.pair(source)
        if base.line not in patches.lines(PUBLISHED):
            return [base, patched]
        return [base, patched, trees.with_topics(PUBLISHED, base, patches.topics([PUBLISHED]))]
    made = [trees.unpatched(BASE, source)]
    for tree in named_trees:
        with trees.blamed(tree.name):
            made.append(tree.make(made[0]))
    return made


def runs(ready: Plan) -> list[tuple[Workload, Settings]]:
    """Return workloads with settings, in the order in which they are timed and shown.

    Plain returns come first, as they are alike on every machine, then the workloads that depend on
    neither size nor returns, then the returns of this machine's kernel.

    Raises:
        Failure: no workload can run with these sizes.
    """
    workloads = sorted(ready.able, key=lambda w: (*_FIRST, w.name).index(w.name))
    own_returns = ready.kernel.returns
    unsized = Settings(0, ready.threads, own_returns)
    conditions = [returns.PLAIN] if ready.quick else [returns.PLAIN, own_returns]
    ordered: list[tuple[Workload, Settings]] = []
    for condition in dict.fromkeys(conditions):
        for size in ready.sizes:
            sized = Settings(size, ready.threads, condition)
            # memory() is 0 if the device is smaller than a compound or block of the workload.
            ordered += [(w, sized) for w in workloads if w.sized and w.memory(sized)]
        if condition == returns.PLAIN:
            ordered += [(w, unsized) for w in workloads if not w.sized]
    if not ordered:
        raise nothing_to_time()
    return [(workload, ready.settings(workload, setting)) for workload, setting in ordered]


def nothing_to_time() -> Failure:
    """Return the failure of a bench whose workloads are all left out."""
    return Failure("there is nothing to time", "give a larger --size, or another --workload")


def _linked(
    made: Sequence[trees.Tree],
    needed: Set[str],
    left_out: LeftOut,
    half: KernelHalf,
    placements: int,
    config: Config,
    *,
    all_modes: bool,
) -> tuple[Sequence[trees.Tree], list[Program], Variants]:
    """Link a host for each placement, without trees that do not build or cannot be patched.

    Returns:
        the trees that are left, the hosts and the variants.

    Raises:
        TreeFailure: such a tree is in `needed`, or only base is left.
    """
    while True:
        try:
            programs = link.link_placed(made, config, placements, half)
            own_returns = returns.of_this_machine()
            chosen = variants.choose(programs[0], made, own_returns, all_modes=all_modes)
            return made, programs, chosen
        except TreeFailure as failure:
            made = [tree for tree in made if tree.name != failure.tree]
            if failure.tree in needed or len(made) < 2:
                raise
            left_out.failed(EVERYTHING, failure)


def _check_expect_options(request: Request) -> None:
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
    named_trees: Sequence[Named],
    left_out: LeftOut,
    config: Config,
) -> list[Tree]:
    """Describe the trees that were named, and compare the memmaps that they leave with base's."""
    base, *others = made
    if not named_trees:
        return []
    same_release = [tree.name for tree in others if tree.release == base.release]
    compared = [variant for variant in chosen.modal if variant.tree in same_release]
    differences = identity.differences(program, compared, left_out)
    described = []
    for named_tree, tree in zip(named_trees, others, strict=True):
        difference = differences.get(tree.name)
        described.append(
            Tree(
                tree.name,
                named_tree.where,
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
            note(f"pagemint: the memmap of {tree.name} differs from base's: {difference}")
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
    lab = known()
    own = [name for names in half.own.values() for name in names]
    for name in own:
        if name in lab or own.count(name) > 1:
            raise Failure(f"there are two workloads named {name!r}", "rename one")
    names = [name for name in (lab if words is None else words) if not own_workloads.is_file(name)]
    if expected:
        names = [] if expected in own else [expected]
    unknown = [name for name in names if name not in lab]
    if unknown:
        choice = ", ".join([*lab, *own])
        raise Failure(f"there is no workload {unknown[0]!r}", f"choose from {choice}")
    return [lab[name] for name in names]


def _present(workloads: Sequence[Workload], line: str, *, named: bool) -> list[Workload]:
    """Return the workloads whose code a kernel line has.

    Raises:
        Failure: a workload that was named is not among them.
    """
    major, minor = (int(number) for number in re.findall(r"[0-9]+", line)[:2])
    absent = [workload for workload in workloads if workload.since > (major, minor)]
    names = ", ".join(workload.name for workload in absent)
    if absent and named:
        first = ".".join(map(str, max(workload.since for workload in absent)))
        raise Failure(f"Linux {line} does not have the code of {names}", f"give --kernel {first}")
    if absent:
        note(f"pagemint: left out, as Linux {line} does not have their code: {names}")
    return [workload for workload in workloads if workload not in absent]


def _threads(text: str | None) -> tuple[int, ...]:
    if text is None:
        return tuple(sorted({1, min(MOST_THREADS, machine.cpus())}))
    for n in text.split(","):
        if not n.isdecimal() or not 1 <= int(n) <= MOST_THREADS:
            raise Failure(f"--threads {n}: not a valid thread count", f"give 1 to {MOST_THREADS}")
    return tuple(dict.fromkeys(map(int, text.split(","))))


def _checked_size(text: str) -> int:
    size = parse_size(text)
    if size < bench_room.SMALLEST:
        raise Failure(f"a device of {text} is too small", "give at least 2MiB")
    if size > bench_room.LARGEST:
        raise Failure(f"a device of {text} is too large", "give at most 16TB")
    return size


def check_machine(workloads: Sequence[Workload], settings: Sequence[Settings]) -> None:
    """Check that this machine can run workloads, and has the memory for all settings.

    Raises:
        Failure: it cannot, or has not.
    """
    if platform.machine() != "x86_64":
        raise Failure(f"this machine is {platform.machine()}", "run this on x86-64")
    free = bench_room.free()
    for workload in workloads:
        for setting in settings:
            needed = workload.memory(setting)
            if needed <= free:
                continue
            available = f"{format_size(free)} of memory are {machine.unused()}"
            problem = f"takes {format_size(needed)}, and {available}"
            if not workload.sized:
                raise Failure(f"{workload.name} {problem}", _workload_remedy(workloads, free))
            largest = bench_room.largest(workloads, free)
            raise Failure(
                f"the memmap of {format_size(setting.device_bytes)} {problem}",
                f"give --size {largest} or less" if largest else "end some programs",
            )


@contextmanager
def smaller_size(workload: Workload, setting: Settings) -> Iterator[None]:
    """Name a --size that fits when the work runs out of memory.

    The free memory seemed to be enough; half of the memory that was needed is a safe choice.

    Raises:
        OutOfMemory: the work in the `with` statement raised it.
    """
    try:
        yield
    except OutOfMemory as failure:
        free = min(bench_room.free(), workload.memory(setting) // 2)
        largest = bench_room.largest([workload], free) if workload.sized else None
        remedy = f"--size {largest} fits"
        if not largest:
            remedy = _workload_remedy(list(known().values()), free)
        raise OutOfMemory(failure.message, remedy) from failure


def _workload_remedy(workloads: Sequence[Workload], free: int) -> str:
    """Return a remedy: to time only the workloads that fit in the free memory at some size."""
    fitting = bench_room.fitting(workloads, free)
    return f"leave it out: --workload {','.join(fitting)}" if fitting else "end some programs"
