# SPDX-License-Identifier: GPL-2.0-only
"""`make check-mutants`: makes faults, judges them, and prints a table of the survivors.

Every verdict is kept in the cache as soon as it is known. A later call goes on where an earlier one
stopped, unless the kernel part, the bench or a test has changed since.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from mutants import faults
from mutants.faults import Mutant
from mutants.judge import Judge, is_judged_by
from mutants.verdicts import Table, Verdicts, known_faults
from pagemint import cli, words
from pagemint.base import cache, files, machine
from pagemint.base.progress import note
from pagemint.trees import patches, sources, trees
from pagemint.trees.patches import Topic

_ROOT = files.PACKAGE.parent
_AIM = 0.95
_IN_GUESTS = ("shared",)  # topics whose code runs in guests alone


def topics() -> list[Topic]:
    """Return the topics that the native host runs, without those that need one in guests alone."""
    return [
        topic
        for topic in patches.topics()
        if not any(needed.name in _IN_GUESTS for needed in patches.topics([topic.name]))
    ]


def _order(made: Iterable[Mutant], seed: int) -> Iterator[Mutant]:
    """Yield dropped drains first, and then a random mutant of each file in turn."""
    by_file = defaultdict(list)
    for mutant in made:
        if mutant.drops_drain:
            yield mutant
        else:
            by_file[mutant.path].append(mutant)
    for path, some in sorted(by_file.items()):
        random.Random(f"{seed} {path}").shuffle(some)
    while by_file:
        for path in sorted(by_file):
            yield by_file[path].pop()
            if not by_file[path]:
                del by_file[path]


def main() -> int:
    """Judge mutants for some minutes; return 0 if 95% of them are caught, and every drain."""
    parser = argparse.ArgumentParser(prog="make check-mutants")
    parser.add_argument("--minutes", type=float, default=30, help="start none after so many (30)")
    parser.add_argument("--seed", type=int, default=1, help="which ones come first")
    parser.add_argument("--json", type=Path, default=_ROOT / "out/mutants.json", metavar="FILE")
    arguments = parser.parse_args()
    base = trees.unpatched(words.BASE, sources.get(patches.lines()[-1]))
    pair = base, trees.with_topics(words.PATCHED, base, topics())
    key = cache.digest(
        *(tree.key for tree in pair),
        *(_ROOT / "pagemint" / part for part in ("base", "bench", "results", "trees", "words.py")),
        *filter(is_judged_by, sorted((_ROOT / "tests").rglob("*.py"))),
        *sorted((_ROOT / "tests").rglob("*.c")),
        Path(__file__).parent,
        machine.compiler(),
    )
    kept = cache.entry("mutants", key, lambda work: None)
    verdicts = Verdicts(kept / "verdicts")
    with tempfile.TemporaryDirectory(prefix="pagemint-mutants-") as name:
        judge = Judge(pair, Path(name))
        made = list(_order(faults.of_series(*pair, judge.covered), arguments.seed))
        known = known_faults(made)
        waiting = [mutant for mutant in made if mutant.key not in verdicts.by_key]
        if waiting and arguments.minutes > 0:
            judge.prepare()
        end = time.monotonic() + 60 * arguments.minutes
        for mutant, verdict in judge.judge_all(waiting, end):
            verdicts.add(verdict)
            note(f"{verdict.outcome} {verdict.by} ({verdict.seconds} s): {mutant}")
    table = Table(made, known, verdicts)
    table.show()
    table.write(arguments.json)
    share = table.share()
    print(f"{100 * share:.1f}% of the faults that change the code are seen by native suites")
    missed = table.drains_not_caught()
    for mutant in missed:
        print(f"no test with late stores caught: {mutant}")
    return 0 if share >= _AIM and not missed else 1


if __name__ == "__main__":
    sys.exit(cli.guarded(main))
