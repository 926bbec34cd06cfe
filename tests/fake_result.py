# SPDX-License-Identifier: GPL-2.0-only
"""Makes results for tests, with chosen sizes and noise, and shows them as the terminal does."""

import io
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from pagemint.report import tables
from pagemint.report.first_screen import FirstScreen
from pagemint.results import reader
from pagemint.results.rows import Counts, Operation, Result
from pagemint.results.verdict import Judged

VARIANTS = {
    "base": 57.5,
    "base2": 58.0,
    "slow": 57.0,
    "cached": 49.0,
    "published": 48.0,
    "streaming": 35.3,
}
"""Milliseconds of each variant for 100 GB."""

WHOLE: dict[str, Any] = {
    "workloads": ("fsdax", "devdax", "devdax-1g", "private"),
    "memory": True,
    "threads": (1, 2),
    "returns": ("safe", "plain"),
    "folio": True,
}
"""A whole bench: every workload, both kinds of returns, folios."""

SMALL: dict[str, Any] = {"workloads": ("fsdax",), "variants": {"base": 57.0, "streaming": 35.0}}
"""One workload, in two variants."""

CLASSES = ("erms", "rep_good", "none")
"""The CPU classes of the copies."""

_ALONE = ("base", "base2", "slow")  # never share their work
_TREES = ("base", "base2", "patched")
_COPIES = {"folio_copy": 46.0, "folio_mc_copy": 47.0, "copy_user_large_folio": 45.0}  # milliseconds
_DIFFERENCE = "fsdax: page 3, word 2 is 0x1, not 0x0"
_LIMIT = 34.5  # milliseconds for 100 GB


def body(
    *,
    cpu: str = "AMD EPYC 9B45",
    cpu_class: str = "erms",
    runs: int = 12,
    noise: float = 0.01,
    outlier: float = 1.0,
    seed: int = 1,
    drift: float = 1.0,
    workloads: tuple[str, ...] = ("fsdax", "devdax"),
    memory: bool = False,
    sizes: tuple[int, ...] = (100 * 10**9,),
    threads: tuple[int, ...] = (1,),
    returns: tuple[str, ...] = ("plain",),
    variants: dict[str, float] = VARIANTS,
    folio: bool = False,
    steps: bool = False,
    series: str = "5f1c",
    code: dict[str, str] | None = None,
    accel: str = "",
    trees: tuple[str, ...] = (),
    against: str = "base",
) -> dict[str, Any]:
    """Return the contents of a result file.

    Args:
        outlier: factor of the first run of each row but base's.
        drift: factor of all times.
        trees: names of trees that the user named; the memmap of the last one differs. Their
            variants are a name, or a name and a mode.
        against: the tree that the others are compared with.
    """
    chance = random.Random(seed)
    rows: list[dict[str, Any]] = []
    limits: list[dict[str, Any]] = []

    def add(case: dict[str, Any], times: dict[str, float]) -> None:
        rounds = [chance.gauss(1, noise) for _ in range(runs)]
        for name, at in times.items():
            mine = [drift * at * each * chance.gauss(1, noise / 4) for each in rounds]
            if name != "base":
                mine[0] *= outlier
            tree, _, mode = name.partition(" ")
            if tree not in (*_TREES, *trees):
                tree, mode = "patched", name
            rows.append({"case": dict(case), "tree": tree, "mode": mode, "runs_ms": mine})

    for how in returns:
        for size in sizes:
            for count in threads:
                scale = size / 100e9 / count**0.8
                times = {key: at * scale for key, at in variants.items()}
                if how == "safe":
                    times |= {key: 4.6 * times[key] for key in ("base", "base2") if key in times}
                if count > 1:
                    times = {key: at for key, at in times.items() if key not in _ALONE}
                common: dict[str, Any] = {"device_bytes": size, "pages": size // 4096}
                common |= {"threads": count, "returns": how}
                for name in workloads:
                    add({"workload": name, **common}, times)
                for name, block in (("hotplug", 128 << 20), ("hotplug", 2 << 30), ("boot", 0)):
                    if memory and count == 1:
                        add({"workload": name, **common, "block_bytes": block}, times)
                limit = [drift * _LIMIT * scale * chance.gauss(1, noise) for _ in range(runs)]
                limits.append({"kind": "fill", "loop": "avx512", **common, "runs_ms": limit})
    for step, patched in (("init, cold", 0.5), ("put, cold", 0.25)) if steps else ():
        case = {"workload": "dax-folio", "device_bytes": 1 << 28, "pages": 1 << 16}
        case |= {"operation": step, "times": 128, "returns": returns[0]}
        add(case, {"base": 0.5, "patched": patched})
    for size in (2 << 20, 1 << 30) if folio else ():
        common = {"device_bytes": 1 << 30, "pages": 1 << 18, "folio_bytes": size}
        common["returns"] = returns[0]
        for function, patched in _COPIES.items():
            for number, name in enumerate(CLASSES):
                case = {"workload": "folio", "function": function, "cpu_class": name, **common}
                add(case, {"base": 57.0 + number, "patched": patched + 2 * number})
        loop = [41.0 * chance.gauss(1, noise) for _ in range(runs)]
        limits.append({"kind": "copy", "loop": "movsb", **common, "runs_ms": loop})
    host = {
        "cpu": cpu,
        "family_model_stepping": [26, 2, 1],
        "cpu_class": cpu_class,
        "virtual": True,
        "cpus": 2,
        "memory_bytes": 25 * 10**9,
        "load_average": 0.1,
        "kernel": "6.12.57",
        "compiler": "gcc (Debian 12.2.0-14) 12.2.0",
        "pagemint": "0.1.0",
        "date": "2026-11-20T10:11:12+00:00",
    }
    if accel:
        host |= {"accel": accel, "times_comparable": accel == "kvm"}
    kernel = {"version": "7.3.4", "source": "7.3.4-1", "config": "debian (12ab)"}
    return {
        "schema": "pagemint/2",
        "host": host,
        "kernel": {**kernel, "series": series, "returns": returns[0], "code": code or {}},
        "rows": rows,
        "limits": limits,
        "trees": [
            {
                "name": tree,
                "where": f"{tree}.mbox",
                "version": "7.3.4",
                "source": "7.3.4-1",
                "config": "debian (12ab)",
                "identical": tree != trees[-1],
                "difference": "" if tree != trees[-1] else _DIFFERENCE,
                "applied": [f"[PATCH v2] {tree}"],
                "not_applied": [f"[PATCH] {tree} (an older version)"],
            }
            for tree in trees
        ],
        "against": against,
    }


def text(**changes: Any) -> bytes:  # noqa: ANN401 - those of body()
    """Return the text of a result file."""
    return json.dumps(body(**changes)).encode()


def read(contents: dict[str, Any]) -> Result:
    """Return the result that the reader makes of a file with these contents."""
    return reader.parse(json.dumps(contents).encode(), "a.json")


def check_alone(text: str = "") -> Result:
    """Return a result that has a check, and no times."""
    check = {"scenario": "boot", "tree": "base", "name": "memory", "outcome": "pass", "said": text}
    return read({**body(), "rows": [], "limits": [], "checks": [{**check, "must_pass": True}]})


def result(**changes: Any) -> Result:  # noqa: ANN401 - those of body()
    """Return the result that the reader makes of such a file."""
    return read(body(**changes))


def counts_of(instructions: int, stored: int) -> Counts:
    """Return counts of one call."""
    return Counts(instructions, 0, stored, 0, 0, 1)


def operation(tree: Literal["base", "patched"], scale: int, name: str = "bind fsdax") -> Operation:
    """Return an operation of `scale` times 100 instructions."""
    functions = {"fill": counts_of(60 * scale, 0), "clear": counts_of(30 * scale, 2 << 20)}
    return Operation(name, tree, 1 << 30, counts_of(100 * scale, 2 << 20), functions)


def counted_result(*operations: Operation) -> Result:
    """Return a result that has counts, and no times."""
    like = result(accel="tcg")
    return Result(like.host, like.kernel, [], counts=list(operations))


def screen(
    result: Result,
    json: str | None = "out/bench.json",
    report: str = "out/r",
    *,
    steps: bool = False,
) -> list[str]:
    """The lines of the first screen."""
    lines: list[str] = []
    shown = FirstScreen(lines.append, steps=steps)
    # A bench adds each workload when it has timed it.
    for workload, returns in dict.fromkeys((r.case.workload, r.case.returns) for r in result.rows):
        rows = [r for r in result.rows if (r.case.workload, r.case.returns) == (workload, returns)]
        shown.add(Judged(replace(result, rows=rows)))
    shown.end(Judged(result), json, Path(report) if report else None)
    return lines


def everything(result: Result) -> str:
    """The text of all tables."""
    out = io.StringIO()
    tables.show_all(result, Console(file=out, width=80))
    return out.getvalue()
