# SPDX-License-Identifier: GPL-2.0-only
"""Results for tests of the report: of a size and a noise that can be chosen."""

import json
import random
import statistics
from typing import Any

MODES = {
    "base": 57.5,
    "base2": 58.0,
    "slow": 57.0,
    "cached": 49.0,
    "published": 48.0,
    "streaming": 35.3,
}
"""Milliseconds of each variant for 100 GB."""


def body(
    *,
    cpu: str = "AMD EPYC 9B45",
    runs: int = 12,
    noise: float = 0.01,
    seed: int = 1,
    drift: float = 1.0,
    workloads: tuple[str, ...] = ("fsdax", "devdax"),
    sizes: tuple[int, ...] = (100 * 10**9,),
    threads: tuple[int, ...] = (1,),
    returns: tuple[str, ...] = ("plain",),
    modes: dict[str, float] = MODES,
    folio: bool = False,
    series: str = "5f1c",
    accel: str = "",
) -> dict[str, Any]:
    """Return the contents of a result file; the noise is a share of the times."""
    chance = random.Random(seed)

    def rows_of(common: dict[str, Any], times: dict[str, float], limit: float) -> None:
        rounds = [chance.gauss(1, noise) for _ in range(runs)]
        taken = {
            name: [drift * at * each * chance.gauss(1, noise / 4) for each in rounds]
            for name, at in times.items()
        }
        for name, mine in taken.items():
            median = statistics.median(mine)
            rows.append(
                {
                    **common,
                    "variant": name,
                    "runs_ms": mine,
                    "median_ms": median,
                    "ns_per_page": median * 1e6 / common["pages"],
                    "speedup": statistics.median(taken["base"]) / median,
                    "limit_ratio": limit / median,
                }
            )

    rows: list[dict[str, Any]] = []
    for how in returns:
        for size in sizes:
            for count in threads:
                scale = size / 100e9 / count**0.8
                for name in workloads:
                    times = {key: at * scale for key, at in modes.items()}
                    if how == "safe":
                        times |= {key: 4.6 * times[key] for key in ("base", "base2", "slow")}
                    common = {"workload": name, "returns": how, "threads": count}
                    common |= {"device_bytes": size, "pages": size // 4096}
                    rows_of(common, times, 34.5 * scale)
    if folio:
        for function in ("folio_copy", "folio_mc_copy"):
            for number, name in enumerate(("fsrm+erms", "erms", "rep_good", "none")):
                times = {"base": 57.0 + number, "patched": 46.0 + 2 * number, "streamed": 40.0}
                common = {"workload": "folio", "function": function, "cpu_class": name}
                common |= {"folio_bytes": 2 << 20, "device_bytes": 10**9, "pages": 244140}
                rows_of({**common, "threads": 1, "returns": "plain"}, times, 41.0)
    host = {
        "cpu": cpu,
        "family_model_stepping": [26, 2, 1],
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
        "kernel": {**kernel, "series": series, "returns": returns[-1]},
        "limit": {"fill_bytes_per_s": 44.2e9, "copy_bytes_per_s": None},
        "rows": rows,
    }


def text(**changes: object) -> bytes:
    """Return the text of a result file."""
    return json.dumps(body(**changes)).encode()  # type: ignore[arg-type]
