# SPDX-License-Identifier: GPL-2.0-only
"""Judges mutants: builds hosts with the fault, and runs the native suites until one fails."""

import itertools
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import pytest

from mutants import hosts
from mutants.faults import Mutant
from mutants.hosts import Workshop
from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.kernels import objects
from pagemint.kernels.trees import Tree

COUNTS = "native_counts"
"""The suite that catches faults that cost time but change no result."""

_PATIENCE = 180  # seconds for a suite; each takes less than a minute on two cores
_TESTS = files.NATIVE.parent / "tests"
_CONFIGS = {"mask": objects.DEBIAN, "pointer": objects.NO_MASK, "late": objects.DEBIAN}
_LATE_HEADER = "arch/x86/include/asm/memfill_streaming.h"
# The suites by the configuration of the host. Those that cover a file run in this order.
_SUITES = {
    "mask": ("streaming", "folio", "operations", COUNTS, "ordinary", "threads", "identity"),
    "pointer": ("threads", "ordinary", "identity"),
    "late": ("drains",),
}
_DEVICE = {"identity", "threads", "drains", COUNTS}
_ORDINARY = {"ordinary", "operations", "drains", COUNTS}
_COPIES = {"folio", COUNTS}
_COVER = {
    "arch/x86/include/asm/memfill_streaming.h": {"streaming", *_DEVICE, *_ORDINARY},
    "fs/dax.c": {"operations", COUNTS},
    "include/linux/memfill_streaming.h": {"streaming", *_DEVICE, *_ORDINARY},
    "kernel/padata.c": {"threads"},
    "mm/memmap_template.c": {"streaming", *_DEVICE, *_ORDINARY},
    "mm/memmap_template.h": {"streaming", *_DEVICE, *_ORDINARY},
    "mm/memmap_threads.c": {"threads"},
    "mm/memmap_threads.h": {"threads"},
    "mm/memory.c": _COPIES,
    "mm/memory_hotplug.c": _ORDINARY,
    "mm/mm_init.c": {*_DEVICE, *_ORDINARY},
    "mm/page_alloc.c": _ORDINARY,
    "mm/util.c": _COPIES,
}
"""The suites that run the code of a file. Other files are tested in guests alone."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant.

    Attributes:
        mutant: its key.
        outcome: broken (does not compile), same (the object code is), caught, or survived.
        by: the test that caught it.
        seconds: time of the judgement.
    """

    mutant: str
    outcome: str
    by: str
    seconds: float


class Court:
    """Judges mutants, several at a time."""

    def __init__(self, pair: tuple[Tree, Tree], work: Path) -> None:
        self._tree = pair[1].path
        self._work = work
        self._right: dict[tuple[str, str], list[bytes]] = {}
        self._shops: dict[str, Workshop] = {}
        for config, options in _CONFIGS.items():
            (work / config).mkdir()
            self._shops[config] = Workshop(pair, options, work / config, late=config == "late")

    @property
    def covered(self) -> set[str]:
        """The files of the patched tree that native suites run."""
        there = {path for shop in self._shops.values() for path in shop.sources}
        return {path for path in _COVER if path in there}

    def judge(self, mutant: Mutant) -> Verdict:
        """Build the hosts with a mutant, and run the suites until one fails."""
        began = time.monotonic()

        def verdict(outcome: str, by: str = "") -> Verdict:
            return Verdict(mutant.key, outcome, by, round(time.monotonic() - began, 1))

        work = self._work / str(os.getpid())
        work.mkdir(exist_ok=True)
        whole = (self._tree / mutant.path).read_text()
        text = mutant.text(whole)
        differs = False
        for config, shop in self._shops.items():
            if mutant.path not in shop.sources or (config, mutant.path) == ("late", _LATE_HEADER):
                continue
            if (config, mutant.path) not in self._right:
                right = shop.objects(mutant.path, whole, work)
                self._right[config, mutant.path] = hosts.code(right)
            try:
                made = shop.objects(mutant.path, text, work)
                if hosts.code(made) == self._right[config, mutant.path]:
                    continue
                differs = True
                shop.host(made, work)
            except Failure:
                return verdict("broken")
            kernel = _kernel(mutant, text, work)
            for suite in (one for one in _SUITES[config] if one in _COVER[mutant.path]):
                by = _failing(suite, config, work / "linked", kernel)
                if by:
                    return verdict("caught", by)
        return verdict("survived" if differs else "same")

    def judge_all(self, mutants: Iterable[Mutant], end: float) -> Iterator[tuple[Mutant, Verdict]]:
        """Judge mutants on all CPUs; begin none after the monotonic time `end`."""
        waiting = iter(mutants)
        # A fork has the workshops.
        with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
            running = {}
            for mutant in itertools.islice(waiting, os.cpu_count()):
                running[pool.submit(self.judge, mutant)] = mutant
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for one in done:
                    yield running.pop(one), one.result()
                    if time.monotonic() < end:
                        for mutant in itertools.islice(waiting, 1):
                            running[pool.submit(self.judge, mutant)] = mutant


def _kernel(mutant: Mutant, text: str, work: Path) -> Path:
    """Return a directory like kernel/ that has the fault, if the file is there."""
    if not (files.KERNEL / mutant.path).exists():
        return files.KERNEL
    copy = work / "kernel"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(files.KERNEL, copy, ignore=shutil.ignore_patterns("series"))
    (copy / mutant.path).write_text(text)
    return copy


def _failing(suite: str, config: str, host: Path, kernel: Path) -> str | None:
    """Return the first test of a suite that fails with a host, or None.

    Args:
        suite: its name, such as "identity".
        config: the configuration of the host: mask, pointer or late.
        host: the directory with the host.
        kernel: a directory like kernel/, with the fault.

    Raises:
        KeyboardInterrupt: pytest was interrupted.
    """
    environment = {
        **os.environ,
        "PAGEMINT_MUTANT": str(host),
        "PAGEMINT_MUTANT_CONFIG": config,
        "PAGEMINT_MUTANT_KERNEL": str(kernel),
    }
    # Hosts are in sessions of their own, and one with a fault can loop: it ends with the namespace.
    argv = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child"]
    argv += [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "-x",
        "-q",
        "--durations",
        "0",
        "--tb",
        "no",
    ]
    argv += ["-p", "no:cacheprovider", "--hypothesis-profile", "mutants", "--hypothesis-seed", "0"]
    argv += [str(_TESTS / f"test_{suite}.py")]
    child = subprocess.Popen(
        argv,
        cwd=_TESTS.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said, _ = child.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return f"test_{suite}.py, which did not end"
    finally:
        child.kill()
        child.wait()
    if child.returncode == pytest.ExitCode.OK:
        return None
    for line in said.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split()[1].split("/")[-1].split("[")[0]
    if child.returncode == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    raise Failure(f"pytest ended with status {child.returncode}: {said[-2000:]}", "report this")
