# SPDX-License-Identifier: GPL-2.0-only
"""Tests the non-temporal stores against byte loops, with the sanitizers.

KUnit tests them as kernel code.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import mutant
import pytest
from kernel_lines import LINES
from stand_ins import Ended

from pagemint.base import files
from pagemint.bench.kernel_half import KernelHalf
from pagemint.trees import objects, sources, trees

CHECKS = 20_000
"""The least number of checks of sizes, alignments and counts."""


@dataclass(frozen=True)
class Backend:
    """A backend, and how to compile and run it.

    Attributes:
        arch: the architecture whose header has it.
        defines: macros that choose it in that header.
        compiler: the compiler for the CPU that it runs on.
        runner: the command that runs such a program on this machine.
    """

    arch: str
    defines: tuple[str, ...] = ()
    compiler: str = "gcc"
    runner: tuple[str, ...] = ()


BACKENDS = {
    "x86": Backend("x86", ("-DCONFIG_X86_64",)),
    "generic": Backend("x86"),
    "arm64": Backend(
        "arm64",
        compiler="aarch64-linux-gnu-gcc",
        runner=("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
    ),
}
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def sanitised(name: str, kernel: Path, target: Path) -> Ended:
    """Build the test with a backend and the sanitizers, and run it."""
    backend, program = BACKENDS[name], target / "test"
    flags = ["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", *SANITIZERS]
    shim, arch = files.BENCH / "host/shim", kernel / f"arch/{backend.arch}/include"
    argv = [backend.compiler, *flags, *backend.defines, "-mgeneral-regs-only"]
    argv += [f"-I{folder}" for folder in (shim, kernel / "include", arch)]
    source = Path(__file__).with_name("streaming_test.c")
    subprocess.run([*argv, source, "-o", program], check=True)
    # The search for leaks needs ptrace(), which QEMU lacks.
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    argv = [*backend.runner, str(program)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=env)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sanitised_code_matches_byte_loops(backend: str, tmp_path: Path) -> None:
    done = sanitised(backend, mutant.KERNEL, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > CHECKS


@pytest.mark.skipif(mutant.JUDGED, reason="a fault is enough")
@pytest.mark.parametrize(
    ("backend", "file", "old", "new"),
    [
        ("x86", "arch/x86/include/asm", "movnti %[w7], 56(%[dst])", "movnti %[w7], 64(%[dst])"),
        ("generic", "include/linux", "p[7] = w7;", "p[6] = w7;"),
        ("arm64", "arch/arm64/include/asm", "[%[dst], #48]", "[%[dst], #64]"),
    ],
)
def test_a_seeded_fault_is_caught(
    backend: str, file: str, old: str, new: str, tmp_path: Path
) -> None:
    arch = f"arch/{BACKENDS[backend].arch}/include/asm"
    for folder in (arch, "include/asm-generic", "include/linux"):
        (tmp_path / folder).mkdir(parents=True)
        for header in (files.KERNEL / folder).glob("mem*_streaming.h"):
            text = header.read_text()
            if folder == file and header.name == "memfill_streaming.h":
                assert old in text
                text = text.replace(old, new)
            (tmp_path / folder / header.name).write_text(text)
    done = sanitised(backend, tmp_path, tmp_path)
    assert done.returncode != 0


@pytest.mark.parametrize("line", LINES)
def test_the_modes_stream_in_the_object_that_is_timed(line: str, in_user_cache: None) -> None:
    engine = "mm/memmap_template.o"
    if mutant.JUDGED:
        file = mutant.code(engine)
    else:
        _, patched = trees.pair(sources.get(line))
        file = objects.build(patched, objects.DEBIAN, KernelHalf().objects) / engine
    code = subprocess.check_output(["objdump", "-d", file], text=True)
    # An image and one that advances; a drain at the end of a section.
    assert code.count("movnti") >= 2 * 8
    assert "sfence" in code
