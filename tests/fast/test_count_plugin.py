# SPDX-License-Identifier: GPL-2.0-only
"""The plugin of QEMU that counts, on a bare program whose counts are known."""

import subprocess
from pathlib import Path

import pytest

from pagemint.guests.count import plugin as count_plugin
from pagemint.results.rows import Counts

# A kernel with a multiboot header, which QEMU boots. Each function does what its name says.
_PROGRAM = """\
	.long 0x1badb002, 0, -0x1badb002
	.globl _start
_start:
	mov $0x180000, %esp
	call mark
	call stores_400_bytes
	call sets_1024_bytes
	call copies_100_bytes
	call locks_7_times
	call exchanges_3_times
	mov $5, %ebx
1:	call nothing
	dec %ebx
	jnz 1b
	call mark
	call nothing
	call mark
	out %eax, $0xf4
	hlt
mark:
	ret
stores_400_bytes:
	mov $100, %ecx
1:	movl %ecx, 0x190000(,%ecx,4)
	loop 1b
	ret
sets_1024_bytes:
	mov $256, %ecx
	mov $0x190000, %edi
	rep stosl
	ret
copies_100_bytes:
	mov $100, %ecx
	mov $0x190000, %esi
	mov $0x1a0000, %edi
	rep movsb
	ret
locks_7_times:
	mov $7, %ecx
1:	lock incl 0x190000
	loop 1b
	ret
exchanges_3_times:
	mov $3, %ecx
1:	xchg %eax, 0x190000
	xchg %eax, %edx
	xchg %ebx, %edx
	loop 1b
	ret
nothing:
	ret
_etext:
"""


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Counts]]:
    """The counts of each function of the program, for each window between two marks."""
    directory = tmp_path_factory.mktemp("count")
    (directory / "program.s").write_text(_PROGRAM)
    for argv in (
        ["as", "--32", "-o", "program.o", "program.s"],
        ["ld", "-m", "elf_i386", "-Ttext=0x100000", "-o", "program", "program.o"],
    ):
        subprocess.run(argv, cwd=directory, check=True)
    symbols = subprocess.check_output(["nm", "program"], cwd=directory, text=True)
    plugin = count_plugin.make_in(directory)
    option = count_plugin.option(plugin, symbols, "mark", directory)
    qemu = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-nodefaults", "-display", "none"]
    qemu += ["-kernel", "program", "-device", "isa-debug-exit,iobase=0xf4", *option]
    ended = subprocess.run(qemu, cwd=directory, timeout=60, capture_output=True, text=True)
    assert ended.returncode & 1, ended.stderr
    return count_plugin.windows(directory)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        # call and ret store and load the return address, 4 bytes; the call is its caller's.
        ("stores_400_bytes", Counts(202, 0, 400, 4, 0, 1)),
        ("sets_1024_bytes", Counts(3, 256, 1024, 4, 0, 1)),
        ("copies_100_bytes", Counts(4, 100, 100, 104, 0, 1)),
        ("locks_7_times", Counts(16, 0, 28, 32, 7, 1)),
        ("exchanges_3_times", Counts(14, 0, 12, 16, 3, 1)),
        ("nothing", Counts(5, 0, 0, 20, 0, 5)),
    ],
)
def test_the_counts_of_a_function_are_exact(
    function: str, expected: Counts, windows: list[dict[str, Counts]]
) -> None:
    assert windows[1][function] == expected


def test_a_mark_ends_a_window(windows: list[dict[str, Counts]]) -> None:
    # The last call of a window is that of the mark, whose own instruction is in the next one.
    assert windows[2] == {
        "mark": Counts(1, 0, 0, 4, 0, 1),
        "nothing": Counts(1, 0, 0, 4, 0, 1),
        "_start": Counts(2, 0, 8, 0, 0, 0),
    }


_MAPPINGS = """\
7f0000000000-7f0040000000 rw-p 00000000 00:00 0
Rss:              {} kB
Pss:                   1 kB
VmFlags: rd wr mr mw me dc ac hg
7f0050000000-7f0060000000 rwxp 00000000 00:00 0
Rss:                9000 kB
VmFlags: rd wr ex mr mw me dc ac hg
7f0070000000-7f0070001000 rw-p 00000000 00:00 0    [heap]
Rss:                   4 kB
VmFlags: rd wr mr mw me ac
7f0080000000-7f0080001000 rw-p 00000000 00:00 0
Rss:                   8 kB
VmFlags: rd wr mr mw me dc ac hg
"""


def test_the_memory_of_a_guest_is_counted_from_its_mappings(tmp_path: Path) -> None:
    (tmp_path / "mappings").write_text(_MAPPINGS.format(4096))
    assert count_plugin.resident(tmp_path) == (4096 + 8) << 10


def test_symbols_become_a_map_of_functions() -> None:
    symbols = """\
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000100 T __pfx_memset
ffffffff81000110 T __memset
ffffffff81000110 W memset
ffffffff81000200 t grow.cold
ffffffff81000300 D data
ffffffff81000400 t grow.isra.0
ffffffff81000500 T _etext
ffffffff81000600 t leave
ffffffff81000700 B _end
"""
    assert count_plugin.functions(symbols) == [
        (0xFFFFFFFF81000000, "startup_64"),
        (0xFFFFFFFF81000110, "memset"),
        (0xFFFFFFFF81000200, "grow"),
        (0xFFFFFFFF81000400, "grow"),
        (0xFFFFFFFF81000500, "[other]"),
        (0xFFFFFFFF81000600, "leave"),
        (0xFFFFFFFF81000700, "[other]"),
    ]
