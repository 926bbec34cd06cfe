# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint bench`: kernel code that writes memmaps or copies folios, timed on this machine."""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pagemint.base import returns
from pagemint.base.errors import TreeFailure
from pagemint.base.progress import step
from pagemint.base.sizes import format_size
from pagemint.bench.hosts import Hosts
from pagemint.bench.rounds import Budget, measure
from pagemint.bench.workload import Settings, Task, Workload
from pagemint.commands import bench_plan
from pagemint.commands.bench_plan import ABORTED, UNDECIDED, Plan, Request
from pagemint.report import tables
from pagemint.report.first_screen import FirstScreen
from pagemint.results import expect, writer
from pagemint.results.expect import Expectation
from pagemint.results.rows import Case, Limit, Row
from pagemint.results.verdict import Judged

_EXPECT = re.compile("--expect(=|$)")


def main(request: Request) -> int:
    """Run `pagemint bench`.

    Returns:
        0; with --expect 1 if the expectation is not met, or 125 if that cannot be decided.
    """
    expected = None if request.expect is None else expect.parse(request.expect)
    ready = bench_plan.plan(request, expected)
    if expected:
        return _judge_expected(request.output.json, ready, expected)
    output = request.output
    # soft_wrap: long paths must stay on one line, so that they can be copied.
    screen = FirstScreen(
        partial(output.console.print, markup=False, highlight=False, soft_wrap=True),
        steps=bool(request.workload),
    )
    rows: list[Row] = []
    limits: list[Limit] = []
    with Hosts(ready.programs) as hosts:
        for workload, settings in bench_plan.runs(ready):
            with (
                bench_plan.smaller_size(workload, settings),
                step(_title(workload, settings), ready.budget.least) as done,
            ):
                hosted, budget = hosts.of(workload, settings), ready.budget
                more, bounds = measure(hosted, workload, settings, budget, done, ready.left_out)
            if more:
                screen.add(Judged(ready.result(more, bounds, hosts.huge_bytes)))
            rows += more
            limits += bounds
        huge = hosts.huge_bytes
    if not rows:
        raise bench_plan.nothing_to_time()
    result = ready.result(rows, limits, huge)
    writer.write(output.json, result)
    screen.end(Judged(result), output.json, output.page)
    if request.tables:
        tables.show_all(result, output.console)
    output.report(result)
    return 0


def failure_status(argv: Sequence[str], error: BaseException) -> int | None:
    """Return the exit status of a bench with --expect that fails; None without --expect."""
    if not any(map(_EXPECT.match, argv)) or (isinstance(error, SystemExit) and not error.code):
        return None
    return UNDECIDED if isinstance(error, TreeFailure) else ABORTED


def _judge_expected(json: str | None, ready: Plan, expected: Expectation) -> int:
    """Time the two trees of an expectation, print the verdict, and return it as a status."""
    pair = (expected.over, expected.tree)
    if not ready.able:
        raise _unable(ready, expected)
    workload, settings = bench_plan.runs(ready)[0]
    tasks: dict[tuple[Case, str], Task] = {}
    for task in workload.tasks(settings):
        tasks.setdefault((task.case, task.variant.tree), task)
    if not {*pair} <= {tree for _, tree in tasks}:
        raise _unable(ready, expected)
    case = expected.case(case for case, _ in tasks)
    narrow = replace(
        workload,
        tasks=lambda settings: [tasks[case, tree] for tree in pair],
        loops=lambda host, settings: (),
        rounds=ready.budget.least,
    )
    budget = Budget(least=expect.PLACEMENTS * ready.budget.least, seconds=0)
    with (
        Hosts(ready.programs) as hosts,
        bench_plan.smaller_size(workload, settings),
        step(_title(workload, settings), budget.least) as done,
    ):
        hosted = hosts.of(narrow, settings)
        rows, _ = measure(hosted, narrow, settings, budget, done, ready.left_out)
    if not rows:
        raise _unable(ready, expected)
    writer.write(json, ready.result(rows, [], hosts.huge_bytes))
    ratio = expect.ratio(*rows)
    where = sys.stderr if json == "-" else sys.stdout
    print(expect.sentence(expected, case, ratio), file=where, flush=True)
    return {True: 0, False: 1, None: UNDECIDED}[expected.holds(ratio)]


def _unable(ready: Plan, expected: Expectation) -> TreeFailure:
    """Return the failure of a tree of an expectation that is left out of its workload."""
    pair = (expected.over, expected.tree)
    tree = next((name for name in pair if ready.left_out.has(expected.workload, name)), pair[1])
    return TreeFailure(f"{tree} cannot run {expected.workload}", "name another workload", tree)


def _title(workload: Workload, settings: Settings) -> str:
    words = [workload.name]
    if workload.sized:
        words += [format_size(settings.device_bytes), returns.NAMES[settings.returns]]
    return f"timing {', '.join(words)}"
