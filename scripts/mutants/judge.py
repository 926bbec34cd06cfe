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
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import pytest

from mutants import hosts
from mutants.faults import Mutant
from mutants.hosts import HostBuilder
from pagemint.base import files, machine
from pagemint.base.errors import Failure
from pagemint.base.progress import step
from pagemint.trees import objects
from pagemint.trees.trees import Tree

COUNTS = "native_counts"
"""The suite that catches faults that cost time but change no result."""

_CHOICES = ("PAGEMINT_VM", "PAGEMINT_LONG", "PYTEST_ADDOPTS")  # variables that choose tests
# A suite has not ended after so many times its time without a fault, and some seconds.
_SLOWER, _SLACK = 5, 60
_TESTS = files.PACKAGE.parent / "tests"
_CONFIGS = {"mask": objects.DEBIAN, "pointer": objects.NO_MASK, "late": objects.DEBIAN}
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
    "mm/memremap.c": {"operations", COUNTS},
    "mm/mm_init.c": {*_DEVICE, *_ORDINARY},
    "mm/page_alloc.c": _ORDINARY,
    "mm/util.c": _COPIES,
}
"""The suites that run the code of a file. Other files are tested in guests alone."""


def is_judged_by(file: Path) -> bool:
    """Whether a file of tests/ has a suite that judges, or helps one."""
    suites = {f"test_{suite}" for some in _SUITES.values() for suite in some}
    return file.stem in suites or not file.stem.startswith("test_")


@dataclass(frozen=True)
class Verdict:
    """The outcome of a mutant.

    Attributes:
        mutant: its key.
        outcome: broken (it does not compile, or only with a warning), same (the object code is),
            caught, counted (only the counts of instructions saw it) or survived.
        by: the test that caught it.
        seconds: time of the judgement.
    """

    mutant: str
    outcome: str
    by: str
    seconds: float


class Judge:
    """Judges mutants, several at a time."""

    def __init__(self, pair: tuple[Tree, Tree], work: Path) -> None:
        """Build what the hosts share in the empty directory `work`."""
        self._tree = pair[1].path
        self._work = work
        self._builders: dict[str, HostBuilder] = {}
        for config, options in _CONFIGS.items():
            (work / config).mkdir()
            late = config == "late"
            self._builders[config] = HostBuilder(pair, options, work / config, late=late)
        self._unchanged: dict[tuple[str, str], list[bytes]] = {}
        self._suites: dict[str, float] = {}

    @property
    def covered(self) -> set[str]:
        """The files of the patched tree that native suites run."""
        there = {path for builder in self._builders.values() for path in builder.sources}
        return {path for path in _COVER if path in there}

    def prepare(self) -> None:
        """Run the suites without a fault: whatever fails then would fail with every mutant.

        Raises:
            Failure: a suite fails.
        """
        for config, builder in self._builders.items():
            for path in builder.sources & _COVER.keys():
                made = builder.objects(path, (self._tree / path).read_text(), self._place(0))
                self._unchanged[config, path] = hosts.code(made)
            # Where stores land late, each of these calls has compiled all that streams.
            builder.host(made, self._place(0))
            for suite in _SUITES[config]:
                with step(f"running {suite} without a fault ({config})"):
                    began = time.monotonic()
                    by = _failing(suite, config, self._place(0) / "linked", files.KERNEL, None)
                if by:
                    raise Failure(f"{by} fails without a fault", "fix it first")
                self._suites[f"{config} {suite}"] = time.monotonic() - began

    def judge(self, mutant: Mutant) -> Verdict:
        """Build the hosts with a mutant, and run the suites until one fails."""
        began = time.monotonic()

        def verdict(outcome: str, by: str = "") -> Verdict:
            return Verdict(mutant.key, outcome, by, round(time.monotonic() - began, 1))

        work = self._place(os.getpid())
        text = mutant.text((self._tree / mutant.path).read_text())
        differs = False
        counted = ""
        # Where stores land late, tests see what a drain is for, and not only that it is there.
        first = "late" if mutant.drops_drain else "mask"
        for config, builder in sorted(self._builders.items(), key=lambda item: item[0] != first):
            if (config, mutant.path) not in self._unchanged:
                continue
            try:
                made = builder.objects(mutant.path, text, work)
            except Failure:
                return verdict("broken")
            if hosts.code(made) == self._unchanged[config, mutant.path]:
                continue
            differs = True
            builder.host(made, work)
            kernel = _kernel(mutant, text, work)
            for suite in (name for name in _SUITES[config] if name in _COVER[mutant.path]):
                limit = _SLOWER * self._suites[f"{config} {suite}"] + _SLACK
                by = _failing(suite, config, work / "linked", kernel, limit)
                if by and suite != COUNTS:
                    return verdict("caught", by)
                counted = counted or by or ""
        if counted:
            return verdict("counted", counted)
        return verdict("survived" if differs else "same")

    def _place(self, pid: int) -> Path:
        """Return the directory of a process; hosts.code() needs names of one length."""
        place = self._work / f"{pid:07}"
        place.mkdir(exist_ok=True)
        return place

    def judge_all(self, mutants: Iterable[Mutant], end: float) -> Iterator[tuple[Mutant, Verdict]]:
        """Judge mutants on all CPUs; begin none after the monotonic time `end`."""
        global _judge
        _judge = self
        waiting = iter(mutants)
        free = machine.cpus()
        # A fork has the judge.
        with ProcessPoolExecutor(free, multiprocessing.get_context("fork")) as pool:
            running: dict[Future[Verdict], Mutant] = {}
            while True:
                if time.monotonic() < end:
                    for mutant in itertools.islice(waiting, free - len(running)):
                        running[pool.submit(_judged, mutant)] = mutant
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()


_judge: Judge


def _judged(mutant: Mutant) -> Verdict:
    """Judge a mutant in a process that was forked from the judge's."""
    return _judge.judge(mutant)


def _kernel(mutant: Mutant, text: str, work: Path) -> Path:
    """Return a directory like kernel/ that has the fault, if the file is there."""
    if not (files.KERNEL / mutant.path).exists():
        return files.KERNEL
    copy = work / "kernel"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(files.KERNEL, copy, ignore=shutil.ignore_patterns("series"))
    (copy / mutant.path).write_text(text)
    return copy


def _failing(suite: str, config: str, host: Path, kernel: Path, limit: float | None) -> str | None:
    """Return the first test of a suite that fails with a host, or None.

    Args:
        suite: its name, such as "identity".
        config: the configuration of the host: mask, pointer or late.
        host: the directory with the host.
        kernel: a directory like kernel/, with the fault.
        limit: seconds after which the suite has failed; None for no limit.

    Raises:
        KeyboardInterrupt: pytest was interrupted.
    """
    environment = {
        **{name: value for name, value in os.environ.items() if name not in _CHOICES},
        "PAGEMINT_MUTANT": str(host),
        "PAGEMINT_MUTANT_CONFIG": config,
        "PAGEMINT_MUTANT_KERNEL": str(kernel),
    }
    # Hosts are in sessions of their own, and one with a fault can loop: it ends with the namespace.
    argv = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child"]
    argv += [sys.executable, "-m", "pytest", "-n0", "-x", "-q", "--durations=0", "--tb=no"]
    argv += ["-p", "no:cacheprovider", "--hypothesis-profile", "mutants", "--hypothesis-seed", "0"]
    argv += [str(next(_TESTS.glob(f"*/test_{suite}.py")))]
    child = subprocess.Popen(
        argv,
        cwd=_TESTS.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        output, _ = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return f"test_{suite}.py, which did not end"
    finally:
        child.kill()
        child.wait()
    if child.returncode == pytest.ExitCode.OK:
        return None
    for line in output.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split()[1].split("[")[0].split("/")[-1]
    if child.returncode == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return f"test_{suite}.py, which ended with status {child.returncode}: {output[-500:].strip()}"
