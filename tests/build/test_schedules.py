# SPDX-License-Identifier: GPL-2.0-only
"""Object code of the kernel part that runs on several CPUs at once, in a program with threads.

tests/schedules/NAME/ has two halves for mm/NAME.o, as Debian's configuration compiles it: kernel.c
has what the object calls, in the kernel's own types; user.c has the threads and the checks. Delays
stand between any two steps, so each seed is another schedule.

In `make check` some schedules run, in half a minute; in the long run many more, and each fault of
_PLANTS is made in the source once, to see that a schedule shows it.
"""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from kernel_lines import LINES, LONG

from pagemint.trees import objects, sources, trees

_HALVES = Path(__file__).parents[1] / "schedules"


@dataclass(frozen=True)
class _Object:
    """An object of the kernel part, and the runs of its program.

    Attributes:
        name: mm/NAME.c is its source.
        user: options of the compiler for the half with the threads.
        runs: the arguments of each run; the last one is the seed.
        more: the same, in the long run.
    """

    name: str
    user: tuple[str, ...]
    runs: Sequence[tuple[str, ...]]
    more: Sequence[tuple[str, ...]]


_SCENES = ("stall 1", "low 16", "min 16", *(f"crowd {threads}" for threads in (2, 3, 4, 6, 8)))
_GROWTH = _Object(
    "deferred_sections",
    (),
    [(*scene.split(), "1") for scene in _SCENES],
    [(*scene.split(), str(seed)) for scene in _SCENES for seed in range(2, 30)],
)
_POPULATE = _Object(
    "memmap_shared", ("-mstackrealign",), [("300", "1")], [("2000", str(n)) for n in (2, 3, 4)]
)

_PLANTS = {
    "deferred_sections": {
        "growth sleeps until others are done": (
            r"(bool __deferred_sections_grow.*?)\treturn false;\n}",
            r"\1\twhile (atomic_long_read(&d->nr_unfreed)) schedule_timeout_uninterruptible(1);\n"
            r"\treturn true;\n}",
        ),
        "below the min watermark an allocation waits for others": (
            r"return __deferred_sections_grow\(zone\) \|\|",
            r"return __deferred_sections_grow(zone) || __deferred_sections_wait(zone) ||",
        ),
        "an owner can be preempted": (r"\tguard\(preempt\)\(\);\n", ""),
        "a section is online before its last chunk is written": (
            r"atomic_dec_return\(&s->unwritten\) == 1",
            "atomic_dec_return(&s->unwritten) == 2",
        ),
        "a chunk is freed before its section is online": (
            r"\tif \(atomic_read_acquire\(&s->unwritten\)\)\n\t\treturn false;\n",
            "",
        ),
        "a chunk is claimed with a test and a store": (
            r"if \(test_and_clear_bit\(chunk, mask\)\)\n\t\t\treturn chunk;",
            "WRITE_ONCE(*mask, left & ~BIT(chunk));\n\t\treturn chunk;",
        ),
        "all tasks below the low watermark grow the zone": (
            r"!test_and_set_bit_lock\(0, &d->growing\)",
            "true",
        ),
        "growth gives up if others have begun the section": (
            r"for \(; s < end; s\+\+\) \{",
            "for (; s == d->next && s < end; s++) {",
        ),
        "the zone is used below its min watermark": (
            r"return __deferred_sections_grow\(zone\) \|\|\n",
            "return __deferred_sections_grow(zone) || true ||\n",
        ),
        "the bad page is freed": (r"\tSetPageHWPoison\(page\);\n", ""),
        "nobody waits for chunks that others free": (
            r"while \(atomic_read_acquire\(&s->unfreed\)\)\n\t\t\t\tdeferred_sections_relax\(\);",
            ";",
        ),
        "the mark does not follow": (
            r"\tscoped_guard\(spinlock_irqsave, &d->zone->lock\)\n"
            r"\t\tdeferred_sections_set_mark\(d->zone\);\n",
            "",
        ),
    },
    "memmap_shared": {
        "no task waits for another": (
            r"return task->pfn < other->end_pfn &&",
            "return false && task->pfn < other->end_pfn &&",
        ),
        "a task waits for any reclaim": (
            r"!\(other->gfp & ~task->gfp & \(__GFP_IO \| __GFP_FS\)\)",
            "true",
        ),
        "memory is allocated under the mutex": (
            r"err = memmap_populate_copy\(&task\);",
            "mutex_lock(&memmap_shared_lock); err = memmap_populate_copy(&task);\n"
            "\t\tmutex_unlock(&memmap_shared_lock);",
        ),
        "nobody is woken": (r"\twake_up_all\(&memmap_populating_wait\);\n", ""),
        "the bit is clear before the flush": (
            r"\n\t\tlast = pmd;",
            "\n\t\tlast = pmd; clear_bit_unlock(SECTION_MEMMAP_SHARED_BIT,\n"
            "\t\t\t\t&__pfn_to_section(pfn)->section_mem_map);",
        ),
        "one address is flushed of a page table, too": (
            r"if \(end - start == PMD_SIZE && list_empty\(&task->pages\)\)",
            "if (end - start == PMD_SIZE)",
        ),
        "one address is flushed of many sections": (
            r"memmap_flush_tlb\(start, end\)",
            "memmap_flush_tlb(start, start + PAGE_SIZE)",
        ),
        "the copy that comes late is not freed": (
            r"memmap_copy_free\(\*pmd, &task->pages\);",
            "barrier();",
        ),
        "the copy that comes late is used": (r"if \(!memmap_is_shared\(pfn\)\) \{", "if (0) {"),
        "the pgmap is not held": (
            r"if \(!percpu_ref_tryget_live\(&pgmap->ref\)\)(.*?)\n\tpercpu_ref_put\(&pgmap->ref\);",
            r"if (0)\1",
        ),
        "only the first section of a range is populated": (
            r"while \(\(pfn = memmap_next_shared\(pfn, end_pfn\)\) < end_pfn\) \{",
            "if ((pfn = memmap_next_shared(pfn, end_pfn)) < end_pfn) {",
        ),
    },
}


def _link(made: _Object, tree: trees.Tree, source: str, work: Path) -> Path:
    """Link the program of an object whose source has the given text, and return it."""
    built = objects.build(tree, objects.DEBIAN, [f"mm/{made.name}.o"])
    halves = _HALVES / made.name
    text = (built / f"mm/.{made.name}.o.cmd").read_text()
    (command,) = re.findall(r"^savedcmd_\S+ := (gcc .*?) -c -o .*$", text, re.MULTILINE)
    command = re.sub(r"-Wp,-MMD,\S+", "", command) + f" -I{tree.path}/mm -I{halves} -w -c"
    (work / f"{made.name}.c").write_text(source)
    for file in (work / f"{made.name}.c", halves / "kernel.c"):
        line = f"{command} -o {work}/{file.stem}.o {file}"
        subprocess.run(["sh", "-c", line], cwd=built, check=True, capture_output=True)
    # The handler of a boot parameter is found by the name of its section.
    section = ".init.setup=init_setup"
    object_ = work / f"{made.name}.o"
    subprocess.run(["objcopy", "--rename-section", section, object_], check=True)
    argv = ["gcc", "-O1", "-Wall", "-Werror", "-fno-pie", "-no-pie", "-fcf-protection=none"]
    argv += [*made.user, "-z", "noexecstack", "-pthread", "-o", str(work / "program")]
    parts = [str(halves / "user.c"), str(work / "kernel.o"), str(object_)]
    subprocess.run([*argv, *parts], check=True)
    return work / "program"


def _failure(program: Path, runs: Sequence[tuple[str, ...]]) -> str:
    """Return what the first run that fails says; "" if all end well."""
    for arguments in runs:
        try:
            ended = subprocess.run(
                [program, *arguments], capture_output=True, text=True, timeout=300
            )
        except subprocess.TimeoutExpired:
            return f"{arguments}: it does not end"
        if ended.returncode:
            return f"{arguments}: {ended.stdout}{ended.stderr}"
    return ""


@pytest.fixture(scope="module")
def tree() -> trees.Tree:
    """The patched tree of the newest line, in the user's own cache."""
    return trees.pair(sources.get(LINES[-1]))[1]


def _source(tree: trees.Tree, made: _Object) -> str:
    return (tree.path / f"mm/{made.name}.c").read_text()


@pytest.mark.parametrize("made", [_GROWTH, _POPULATE], ids=lambda made: made.name)
def test_no_schedule_loses_repeats_or_waits(
    in_user_cache: None, tree: trees.Tree, made: _Object, tmp_path: Path
) -> None:
    program = _link(made, tree, _source(tree, made), tmp_path)
    assert _failure(program, [*made.runs, *(made.more if LONG else ())]) == ""


_FAULTS = [(made, name) for made in (_GROWTH, _POPULATE) for name in _PLANTS[made.name]]


@pytest.mark.skipif(not LONG, reason="some minutes: each fault is compiled and run")
@pytest.mark.parametrize(("made", "name"), _FAULTS, ids=lambda part: getattr(part, "name", part))
def test_a_schedule_shows_each_planted_fault(
    in_user_cache: None, tree: trees.Tree, made: _Object, name: str, tmp_path: Path
) -> None:
    pattern, replacement = _PLANTS[made.name][name]
    text, count = re.subn(pattern, replacement, _source(tree, made), flags=re.DOTALL)
    assert count
    program = _link(made, tree, text, tmp_path)
    more = [(*run[:-1], str(seed)) for seed in range(1, 9) for run in made.runs]
    assert _failure(program, more) != ""
