# SPDX-License-Identifier: GPL-2.0-only
"""The native host: the objects of both trees linked into one program, which runs here and now."""

import re
from dataclasses import replace
from pathlib import Path

from pagemint.base import cache, files, machine
from pagemint.base.errors import Failure
from pagemint.base.progress import step
from pagemint.base.run import run
from pagemint.kernels import objects
from pagemint.kernels.objects import Config
from pagemint.kernels.trees import Tree
from pagemint.native.process import Program

_COMMON_GLUE = ("glue.c", "folio_glue.c", "memory_glue.c", "patch.c", "glue.h", "native.h")
_GLUE = {
    "base": _COMMON_GLUE,
    "base2": _COMMON_GLUE,
    "patched": (*_COMMON_GLUE, "streaming_glue.c", "threads_glue.c"),
}
_PLAIN = (
    "host.c",
    "folio.c",
    "memory.c",
    "stubs.c",
    "threads.c",
    "fill_limit.c",
    "copy_limit.c",
    "streaming_test.c",
)
_STUBS = ("stubs.o", "threads.o")  # which have stand-ins
_STREAMING = ("copy", "flushcache", "cached", "streaming", "drain")  # struct streaming
_MEMORY = ("zone", "online", "boot")  # of struct variant, and all alike
# What padata calls, and so does the glue; the latter on 6.12.
_LOCALS = ("deferred_init_memmap_job", "deferred_init_memmap_chunk")
# online_pages() is not to recompute watermarks: that needs the whole machine, and is no loop over
# pages.
_LEFT_OUT = {"init_per_zone_wmark_min": "native_nothing"}
_CFLAGS = ("-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fno-pie")
AGAIN = "base2"
"""The name of the base tree's second copy in the host, which shows how large the noise is."""

_TRAPS = 0x60000000  # NATIVE_TRAPS of native.h
_TRAP_SIZE = 4096  # NATIVE_TRAP_SIZE
_TABLES = {
    ".altinstructions": "alt",
    "__jump_table": "jump",
    "__mcount_loc": "mcount",
    "__ex_table": "ex",
}


def link(pair: tuple[Tree, Tree], config: Config, given: Path | None = None) -> Program:
    """Return the host of the two trees, built if it is not in the cache.

    The base tree is linked twice, as base and base2: their difference is noise.

    Each tree's symbols get a prefix of their own, so that the two do not meet, nor the C
    library. A symbol that nothing defines becomes an address that cannot be touched.

    Args:
        pair: the base tree and the patched one.
        config: which configuration both are built with.
        given: a file to take instead of Debian's configuration.
    """
    base, patched = pair
    trees = (base, replace(base, variant=AGAIN), patched)
    built = [objects.build(tree, config, given) for tree in trees]
    ours = sorted(files.NATIVE.glob("*.[ch]"))
    linker = run(["ld", "--version"], what="asking ld for its version").splitlines()[0]
    key = cache.digest(
        *(str(one) for one in built), *ours, Path(__file__), linker, machine.compiler()
    )

    def make(work: Path) -> None:
        with step(f"linking the host ({config.name})"):
            _link(trees, built, work)

    done = cache.entry("native", key, make)
    return Program(done / "host", done / "sites")


def _link(trees: tuple[Tree, ...], built: list[Path], work: Path) -> None:
    plain = []
    for name in _PLAIN:
        target = (work / name).with_suffix(".o")
        run(["gcc", *_CFLAGS, "-c", files.NATIVE / name, "-o", target], what=f"compiling {name}")
        plain.append(target)
    stand_ins = {symbol for name in _STUBS for symbol in _symbols(work / name, defined=True)}
    kernel = []
    missing: list[str] = []
    for tree, directory in zip(trees, built, strict=True):
        one = _kernel_half(tree, directory, work)
        kernel.append(one)
        missing += _symbols(one, defined=False)

    traps: list[str] = []
    script: list[str] = []
    for symbol in missing:
        name = symbol.split("_", 1)[1]
        if f"k_{name}" in stand_ins:
            script.append(f"{symbol} = k_{name};")
        else:
            script.append(f"{symbol} = {_TRAPS + len(traps) * _TRAP_SIZE:#x};")
            traps.append(symbol)
    (work / "symbols.ld").write_text("\n".join(script) + "\n")
    (work / "link.c").write_text(_tables(trees, kernel, traps))
    argv: list[str | Path] = [
        "gcc",
        *_CFLAGS,
        "-I",
        files.NATIVE,
        "-c",
        work / "link.c",
        "-o",
        work / "link.o",
    ]
    run(argv, what="compiling the tables of the link")
    argv = ["gcc", "-no-pie", "-Wl,--emit-relocs", "-Wl,-z,noexecstack", "-o", work / "host"]
    argv += [*kernel, *plain, work / "link.o", work / "symbols.ld"]
    run(argv, what="linking the host")
    sites = _return_sites(run(["readelf", "-rW", work / "host"], what="reading relocations"))
    if not sites:
        raise Failure("the host has no return sites", "use the compiler that built the kernel")
    (work / "sites").write_text("".join(f"{variant} {site:x}\n" for variant, site in sites))


def _kernel_half(tree: Tree, directory: Path, work: Path) -> Path:
    """Return one object with all kernel code of a tree, its symbols and tables renamed."""
    scratch = work / tree.variant
    scratch.mkdir()
    sources = [files.NATIVE / name for name in _GLUE[tree.variant]]
    glue = objects.compile_glue(tree, directory, sources, scratch)
    whole, renamed = scratch / "whole.o", scratch / "renamed.o"
    argv: list[str | Path]
    every = [*glue, *(directory / name for name in tree.objects)]
    # Align shared code identically in all trees: cache-line placement changes timings.
    aligned = [scratch / f"{number}.o" for number in range(len(every))]
    for one, copy in zip(every, aligned, strict=True):
        argv = ["objcopy", "--set-section-alignment", ".text=64"]
        argv += [f"--globalize-symbol={local}" for local in _LOCALS]
        if one.name == "memory_hotplug.o":
            argv += [f"--redefine-sym={name}={nothing}" for name, nothing in _LEFT_OUT.items()]
        argv += [one, copy]
        run(argv, what=f"aligning {one.name}")
    run(["ld", "-r", "-o", whole, *aligned], what=f"joining the {tree.variant} objects")
    argv = ["objcopy", "--strip-debug", f"--prefix-symbols={tree.variant}_"]
    for section in (".discard*", ".export_symbol", ".modinfo", ".note.gnu.property"):
        argv += ["-R", section]
    argv += ["--rename-section", ".data..percpu=per_cpu,alloc,load,data,contents"]
    for section, short in _TABLES.items():
        flags = "alloc,load,readonly,data,contents"
        argv += ["--rename-section", f"{section}={tree.variant}_{short},{flags}"]
    run([*argv, whole, renamed], what=f"renaming the {tree.variant} symbols")
    return renamed


def _symbols(file: Path, *, defined: bool) -> list[str]:
    which = "--defined-only" if defined else "--undefined-only"
    listing = run(["nm", which, "--format=just-symbols", file], what=f"reading {file.name}")
    return sorted(set(listing.split()))


def _return_sites(relocations: str) -> list[tuple[str, int]]:
    """Return the variant and address of each jump to the return thunk, from `readelf -rW`."""
    found = re.findall(
        r"^([0-9a-f]{16}) +\w+ R_X86_64_(?:PLT|PC)32 +\w+ +([a-z0-9]+)___x86_return_thunk - 4$",
        relocations,
        re.MULTILINE,
    )
    # The relocation is behind the opcode.
    return sorted({(variant, int(address, 16) - 1) for address, variant in found})


def _tables(trees: tuple[Tree, ...], kernel: list[Path], traps: list[str]) -> str:
    """Return C with the tables that host.h declares."""
    text = ['#include "host.h"', '#include "streaming.h"\n']
    rows = []
    for tree, file in zip(trees, kernel, strict=True):
        has_modes = f"{tree.variant}_memmap_init_mode_set" in _symbols(file, defined=True)
        v = tree.variant
        for short in _TABLES.values():
            for end in ("start", "stop"):
                text.append(f"extern char __{end}_{v}_{short}[] __attribute__((weak));")
        text += [
            f"void {v}_native_patch(const struct native_tables *);",
            f"void {v}_native_init(const struct native_case *);",
            f"unsigned int {v}_native_block(unsigned long);",
            *(f"void {v}_native_{name}(const struct native_memory *);" for name in _MEMORY),
            f"int {v}_memmap_init_mode_set(const char *);",
            f"void {v}_native_threads(unsigned int);",
            f"unsigned long {v}_native_page_size(void);",
            f"extern unsigned long {v}_native_events;",
            f"void {v}_native_skew(unsigned long);",
            f"int {v}_native_copy_folios(const struct native_copy *);",
            f"unsigned long {v}_native_fixup(const struct native_tables *, unsigned long);",
        ]
        bounds = "".join(
            f"\t\t.{short} = (void *)__start_{v}_{short},\n"
            f"\t\t.{short}_end = (void *)__stop_{v}_{short},\n"
            for short in _TABLES.values()
        )
        rows.append(
            f'\t{{\n\t.name = "{v}",\n\t.tables = {{\n{bounds}\t}},\n'
            f"\t.patch = {v}_native_patch,\n\n"
            f"\t.init = {v}_native_init,\n\t.block = {v}_native_block,\n"
            + "".join(f"\t.{name} = {v}_native_{name},\n" for name in _MEMORY)
            + f"\t.page_size = {v}_native_page_size,\n"
            f"\t.events = &{v}_native_events,\n\t.skew = {v}_native_skew,\n"
            f"\t.copy = {v}_native_copy_folios,\n\t.fixup = {v}_native_fixup,\n"
            + (
                f"\t.mode_set = {v}_memmap_init_mode_set,\n\t.threads = {v}_native_threads,\n"
                if has_modes
                else ""
            )
            + "\t},\n"
        )
    names = "".join(f'\t"{name}",\n' for name in traps)
    text += [
        f"const struct variant variants[] = {{\n{''.join(rows)}\t{{ .name = 0 }}\n}};",
        f"const char *const trap_names[] = {{\n{names}\t0\n}};",
        f"const size_t trap_count = {len(traps)};",
        *(
            f"extern __typeof__(*((struct streaming *)0)->{name}) patched_native_{name};"
            for name in _STREAMING
        ),
        "const struct streaming streaming = {",
        *(f"\t.{name} = patched_native_{name}," for name in _STREAMING),
        "};\n",
    ]
    return "\n".join(text)
