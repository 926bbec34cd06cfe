# SPDX-License-Identifier: GPL-2.0-only
"""The work of each loop of the kernel part, counted in an emulator: time plays no role.

A fault that makes a loop slow without a wrong result, such as a mode that is never chosen, shows
here alone.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from kernel_lines import WHOLE
from memmaps import program_for

from pagemint.guests import count_plugin
from pagemint.native.link import Program
from pagemint.native.workload import FIRST_PFN
from pagemint.results.rows import Counts

PAGES = 1 << 16  # two sections
_FREE = f"free0={FIRST_PFN} end0={FIRST_PFN + PAGES}"
LOOPS = {
    "order 0": "init type=private order=0",
    "2 MiB": "init type=generic order=9 altmap=1",
    "2 MiB, deduplicated": "init type=generic order=9",
    "hotplug": "hotplug block=32768",
    "boot": f"boot {_FREE}",
}
MODES = ("slow", "cached", "streaming")
# The most instructions, and bytes stored and loaded, for each page: some 3% more than counted on
# 7.3 with GCC 12. Mainline takes 49, 100 and 40 for order 0, and 67, 85 and 62 for hotplug.
MOST = {
    ("order 0", "slow"): (42.5, 103.5, 21),
    ("order 0", "cached"): (11.5, 66, 0.5),
    ("order 0", "streaming"): (11.5, 66, 0.5),
    ("2 MiB", "slow"): (49, 120, 46),
    ("2 MiB", "cached"): (13.1, 68.5, 3.5),
    ("2 MiB", "streaming"): (13.1, 68.5, 3.5),
    ("2 MiB, deduplicated", "slow"): (12.6, 30.5, 12.1),
    ("2 MiB, deduplicated", "cached"): (4.6, 18.9, 3.5),
    ("2 MiB, deduplicated", "streaming"): (4.6, 18.9, 3.5),
    ("hotplug", "slow"): (26.3, 71.5, 10.1),
    ("hotplug", "cached"): (21.2, 67.5, 67.8),
    ("hotplug", "streaming"): (21.2, 67.5, 67.8),
    ("boot", "slow"): (16.7, 72.1, 1.8),
    ("boot", "cached"): (21.3, 68.7, 68),
    ("boot", "streaming"): (21.3, 68.7, 68),
}


def counted(program: Program, work: Path) -> dict[tuple[str, str], Counts]:
    """Return the work of the patched tree, by loop and mode."""
    commands = ["patch returns=plain class=erms", f"map first={FIRST_PFN} pages={PAGES}"]
    windows = {}
    for name, loop in LOOPS.items():
        for mode in MODES:
            commands.append(f"mode tree=patched name={mode}")
            command, *arguments = loop.split()
            where = f"start={FIRST_PFN} pages={PAGES}"
            commands.append(" ".join([command, "tree=patched", where, *arguments]))
            # The plugin ends a window when a command begins, so the first is the one before any.
            windows[name, mode] = len(commands)
    nm: list[str | Path] = ["nm", "--format=bsd", "--defined-only", program.path]
    symbols = subprocess.run(nm, capture_output=True, text=True, check=True).stdout
    option = count_plugin.option(count_plugin.make(), symbols, "command_run", work)
    argv: list[str | Path] = [
        "qemu-x86_64",
        "-cpu",
        "max",
        *option,
        program.path,
        program.traps,
        program.sites,
    ]
    text = "\n".join([*commands, "blocks tree=patched\n"])
    subprocess.run(argv, input=text, capture_output=True, text=True, check=True)
    found = count_plugin.windows(work)
    return {key: _patched(found[at]) for key, at in windows.items()}


def _patched(window: Mapping[str, Counts]) -> Counts:
    """Return the sum of the functions of the patched tree."""
    ours = (counts for name, counts in window.items() if name.startswith("t2_"))
    return sum(ours, Counts(0, 0, 0, 0, 0, 0))


@pytest.fixture(scope="module", params=WHOLE[-1:])
def counts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Counts]:
    return counted(program_for(request.param, "mask"), tmp_path_factory.mktemp("counts"))


@pytest.mark.parametrize(("loop", "mode"), MOST)
def test_a_loop_does_no_more_than_it_must(
    counts: Mapping[tuple[str, str], Counts], loop: str, mode: str
) -> None:
    found = counts[loop, mode]
    work = found.instructions + found.steps, found.stored, found.loaded
    per_page = tuple(one / PAGES for one in work)
    assert all(one <= most for one, most in zip(per_page, MOST[loop, mode], strict=True)), per_page


def test_no_loop_takes_a_lock_for_each_page(counts: Mapping[tuple[str, str], Counts]) -> None:
    assert all(one.locked < PAGES / 100 for one in counts.values())
