# SPDX-License-Identifier: GPL-2.0-only
"""The work of each loop of the kernel part, counted in an emulator.

Only this file sees a loop that is slow but right, such as a mode that is never chosen.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from kernel_lines import LINES
from memmaps import PAGEBLOCK, SECTION, program_for

from pagemint.base import machine
from pagemint.bench.link import Program
from pagemint.bench.workload import FIRST_PFN
from pagemint.guests.count import plugin as count_plugin
from pagemint.results.rows import Counts

PAGES = 2 * SECTION
FOLIOS = 8
FOLIO = 512  # pages
WHERE = f"start={FIRST_PFN} pages={PAGES}"
MEMMAP = {
    "order 0": f"init {WHERE} type=private order=0",
    "2 MiB": f"init {WHERE} type=generic order=9 altmap=1",
    "2 MiB, deduplicated": f"init {WHERE} type=generic order=9",
    "hotplug": f"hotplug {WHERE} block=32768",
    "boot": f"boot {WHERE} free0={FIRST_PFN} end0={FIRST_PFN + PAGES}",
}
# In this folio the faulting page, which the host chooses by the folio's number, is the 48th.
TO = FIRST_PFN + FOLIO
COPY = f"order=9 folios=1 to={TO} from={FIRST_PFN} early=0"
# By the name: commands before, and the command that is counted.
FOLIO_LOOPS = {
    "fsdax folio": (
        [f"init tree=base {WHERE} type=fsdax order=0"],
        f"dax_folio first={FIRST_PFN} folios={FOLIOS} times=1 keep=0",
    ),
    "device-private folio": (
        [f"init tree=base {WHERE} type=private order=0"],
        f"device_folio first={FIRST_PFN} folios={FOLIOS} times=1 keep=0",
    ),
    **{
        function: (
            [
                f"memory first={FIRST_PFN} pages={2 * FOLIO}",
                f"init tree=base {WHERE} type=fsdax order=9 altmap=1",
            ],
            f"copy function={function} {COPY}",
        )
        for function in ("folio_copy", "folio_mc_copy", "copy_user_large_folio")
    },
}
MODES = ("slow", "cached", "streaming")
ROOM = 1.02 if " 12." in machine.compiler() else 1.2  # no other GCC than 12 was tried
# Instructions (those with a repeat prefix left out), and bytes stored and loaded, for each page, on
# 7.3 with GCC 12. Mainline has 49, 100 and 40 for order 0, 67, 85 and 62 for hotplug, and 23
# instructions for folio_copy.
COUNTED = {
    ("order 0", "slow"): (41.15, 100.11, 20.2),
    ("order 0", "cached"): (11.16, 64.13, 0.21),
    ("order 0", "streaming"): (11.16, 64.13, 0.21),
    ("2 MiB", "slow"): (47.48, 116.61, 44.75),
    ("2 MiB", "cached"): (12.68, 66.3, 3.25),
    ("2 MiB", "streaming"): (12.66, 66.3, 3.25),
    ("2 MiB, deduplicated", "slow"): (12.24, 29.61, 11.75),
    ("2 MiB, deduplicated", "cached"): (4.43, 18.3, 3.25),
    ("2 MiB, deduplicated", "streaming"): (4.42, 18.3, 3.25),
    ("hotplug", "slow"): (25.46, 69.26, 9.76),
    ("hotplug", "cached"): (21.2, 67.03, 66.57),
    ("hotplug", "streaming"): (21.2, 67.03, 66.57),
    ("boot", "slow"): (16.14, 70.0, 1.65),
    ("boot", "cached"): (20.64, 66.68, 66.03),
    ("boot", "streaming"): (20.64, 66.68, 66.03),
    ("fsdax folio", ""): (21.95, 49.56, 1.41),
    ("device-private folio", ""): (22.44, 52.56, 8.59),
    ("folio_copy", ""): (0.41, 4096.63, 4096.5),
    ("folio_mc_copy", ""): (0.54, 4096.82, 4096.69),
    ("copy_user_large_folio", ""): (1.57, 4098.05, 4098.26),
}


Window = Mapping[str, Counts]


def counted(program: Program, work: Path) -> dict[tuple[str, str], Window]:
    """Return the work of each function, by loop and mode."""
    commands = ["patch returns=plain class=erms", f"map first={FIRST_PFN} pages={PAGES}"]
    windows = {}

    def add(name: str, mode: str, line: str) -> None:
        command, arguments = line.split(" ", 1)
        commands.append(f"{command} tree=patched {arguments}")
        # The plugin ends a window when a command begins, so the first is the one before any.
        windows[name, mode] = len(commands)

    for name, line in MEMMAP.items():
        for mode in MODES:
            commands.append(f"mode tree=patched name={mode}")
            add(name, mode, line)
    for name, (before, line) in FOLIO_LOOPS.items():
        commands += before
        add(name, "", line)
    nm: list[str | Path] = ["nm", "--format=bsd", "--defined-only", program.at / "host"]
    symbols = subprocess.run(nm, capture_output=True, text=True, check=True).stdout
    option = count_plugin.option(count_plugin.make(), symbols, "command_run", work)
    argv: list[str | Path] = ["qemu-x86_64", "-cpu", "max", *option]
    argv += [program.at / name for name in ("host", "traps", "sites")]
    text = "\n".join([*commands, "blocks tree=patched\n"])
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "error" not in done.stdout.replace("error=", "")
    measured = count_plugin.windows(work)
    return {key: measured[at] for key, at in windows.items()}


def _patched(window: Window) -> Counts:
    """Return the sum of the functions of the patched tree."""
    ours = (counts for name, counts in window.items() if name.startswith("t2_"))
    return sum(ours, Counts(0, 0, 0, 0, 0, 0))


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Window]:
    return counted(program_for(LINES[-1], "mask"), tmp_path_factory.mktemp("counts"))


def pages_of(loop: str) -> int:
    """Return the number of pages that a loop is about."""
    if loop in MEMMAP:
        return PAGES
    return FOLIOS * FOLIO if loop.endswith(" folio") else FOLIO


@pytest.mark.parametrize(("loop", "mode"), COUNTED)
def test_a_loop_does_no_more_than_it_must(
    counts: Mapping[tuple[str, str], Window], loop: str, mode: str
) -> None:
    total = _patched(counts[loop, mode])
    work = total.instructions, total.stored, total.loaded
    per_page = tuple(count / pages_of(loop) for count in work)
    # The code of mainline's loop depends on what the compiler inlines around it.
    room = 1.2 if mode == "slow" else ROOM
    most = (room * count for count in COUNTED[loop, mode])
    assert all(count <= limit for count, limit in zip(per_page, most, strict=True)), per_page


def test_no_loop_takes_a_lock_for_each_page(counts: Mapping[tuple[str, str], Window]) -> None:
    for (loop, mode), window in counts.items():
        assert _patched(window).locked < pages_of(loop) / 4, (loop, mode)


def test_a_loop_lets_others_run_in_each_section_but_not_at_each_page(
    counts: Mapping[tuple[str, str], Window],
) -> None:
    for (loop, mode), window in counts.items():
        if loop in MEMMAP:
            function = window.get("k___SCT__cond_resched")
            calls = function.calls if function else 0
            # Once in each section, and in each pageblock that goes online.
            most = PAGES / PAGEBLOCK + PAGES / SECTION
            assert PAGES / SECTION <= calls <= most, (loop, mode, calls)
