# SPDX-License-Identifier: GPL-2.0-only
"""Links kernel objects of several trees, the glue and the plain half into the native host.

Each tree's symbols get a prefix of their own: t0_, t1_ and so on. An undefined symbol of a tree is
bound to its stand-in k_NAME in the plain half, or to an address that cannot be touched. The source
text of glue and workloads names the objects that they need; see native/native.h.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pagemint.base import cache, files, machine
from pagemint.base.errors import Failure
from pagemint.base.progress import step
from pagemint.base.run import run
from pagemint.kernels import objects
from pagemint.kernels.objects import Config
from pagemint.kernels.trees import BASE, Tree, blamed
from pagemint.native.kernel_half import KernelHalf, definition

AGAIN = "base2"
"""The second tree of a host: base's code a second time, whose difference from base is noise."""

_SANITISED = "streaming_sanitised.c"  # a program of its own
_CFLAGS = ("-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fno-pie")
# Kernel code calls the plain half with the stack aligned to 8 bytes.
_STACK = "-mincoming-stack-boundary=3"
# Sections of a tree that the glue walks, and its name for each.
_TABLES = {
    ".altinstructions": "native_alt",
    "__jump_table": "native_jump",
    "__mcount_loc": "native_mcount",
    "__ex_table": "native_ex",
    "native_command_table": "native_commands",
    "native_boot_table": "native_boots",
}
_CODE_SECTIONS = (".text", ".ref.text")
_LINE = 64  # bytes of a cache line
_DROPPED = (".discard*", ".export_symbol", ".modinfo", ".note.gnu.property")


@dataclass(frozen=True)
class Program:
    """A linked host.

    Attributes:
        path: the program.
        traps: the file with the names of the symbols that have no stand-in.
        sites: the file with the addresses of the returns to patch.
        lacks: by tree and workload file ("device_folio"), the reason why a tree that other trees
            are compared with cannot run it.
    """

    path: Path
    traps: Path
    sites: Path
    lacks: Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class _Named:
    """A tree under the name and the prefix that it has in a host."""

    name: str
    prefix: str
    tree: Tree
    built: Path


@dataclass(frozen=True)
class _Glue:
    """Glue and workloads compiled for a tree.

    Attributes:
        named: the tree.
        scratch: the directory with the objects.
        parts: an object for each C file that compiles.
        faults: the compiler's error, by the names of the workload files that do not.
    """

    named: _Named
    scratch: Path
    parts: Sequence[Path]
    faults: Mapping[str, str]


def link(trees: Sequence[Tree], config: Config, given: Path | None = None) -> Program:
    """Return the host of some trees, built if it is not in the cache; see `link_placed`."""
    return link_placed(trees, config, 1, given)[0]


def link_placed(
    trees: Sequence[Tree],
    config: Config,
    placements: int,
    given: Path | None = None,
    half: KernelHalf | None = None,
) -> list[Program]:
    """Return hosts of some trees that differ only in the addresses of the kernel code.

    The placement of a small function alone can change its time by 10%. All trees of a host have
    the code that they share at the same offset from a cache line.

    Args:
        trees: the base tree, and those that are compared with it.
        config: the configuration that all are built with.
        placements: number of hosts.
        given: a file to take instead of Debian's configuration.
        half: the files of the kernel half, if the user has own ones.

    Raises:
        Failure: no tree has the source of a wanted object; or a build or the link fails.
    """
    half = half or KernelHalf()
    wanted = half.objects
    built = []
    for tree in trees:
        with blamed(tree.name):
            built.append(objects.build(tree, config, wanted, given))
    for one in wanted:
        ours = (files.KERNEL / one).with_suffix(".c").exists()  # perhaps in no tree
        if not ours and not any(objects.has_source(tree, one) for tree in trees):
            raise Failure(
                f"NATIVE_OBJECTS() names {one}, and Linux {trees[0].line} has no source for it",
                "give the path of a .c or .S file of the kernel, with the suffix .o",
            )
    names = [BASE, AGAIN, *(tree.name for tree in trees[1:])]
    twice = zip(names, (trees[0], *trees), (built[0], *built), strict=True)
    named = [_Named(name, f"t{at}", tree, there) for at, (name, tree, there) in enumerate(twice)]
    plain = sorted(one for one in files.NATIVE.glob("*.c"))
    linker = run(["ld", "--version"], what="asking ld for its version").splitlines()[0]
    key = cache.digest(
        *(f"{one.name} {one.built}" for one in named),
        *plain,
        *half.sources,
        *sorted(half.headers),
        Path(__file__),
        linker,
        machine.compiler(),
        str(placements),
    )

    def make(work: Path) -> None:
        with step(f"linking the host ({config.name})"):
            _link(named, half, work, placements)

    done = cache.entry("native", key, make)
    lacks = (line.split("\t") for line in (done / "lacks").read_text().splitlines())
    lacking = {(tree, file): why for tree, file, why in lacks}
    places = (done / str(number) for number in range(placements))
    return [Program(at / "host", at / "traps", at / "sites", lacking) for at in places]


def compile_plain(work: Path) -> list[Path]:
    """Compile the plain half into a directory and return its objects.

    Raises:
        Failure: a file does not compile.
    """
    plain = []
    for source in sorted(files.NATIVE.glob("*.c")):
        if source.name != _SANITISED:
            plain.append((work / source.name).with_suffix(".o"))
            argv: list[str | Path] = ["gcc", *_CFLAGS, _STACK, "-c", source, "-o", plain[-1]]
            run(argv, what=f"compiling {source.name}")
    return plain


def _constant(name: str) -> int:
    """Return a number that native.h defines."""
    text = (files.NATIVE / "native.h").read_text()
    match = re.search(rf"^#define {name}\s+(\w+?)UL$", text, re.MULTILINE)
    assert match, name
    return int(match[1], 0)


def _link(trees: Sequence[_Named], half: KernelHalf, work: Path, placements: int) -> None:
    plain = compile_plain(work)
    stand_ins = {symbol for one in plain for symbol in _symbols(one, defined=True)}
    glue = [_compile(tree, half, work) for tree in trees]
    lacks = _lacks(glue, half, {one.removeprefix("k_") for one in stand_ins})
    (work / "lacks").write_text("".join("\t".join(one) + "\n" for one in lacks))
    for number in range(placements):
        at = work / str(number)
        at.mkdir()
        gap = _gap(number, at)
        _link_at([_kernel_half(one, half, gap, at) for one in glue], plain, stand_ins, at)
        names = {tree.prefix: tree.name for tree in trees}
        sites = _return_sites(run(["readelf", "-rW", at / "host"], what="reading relocations"))
        if not sites:
            raise Failure("the host has no return sites", "use the compiler that built the kernel")
        (at / "sites").write_text("".join(f"{names[one]} {site:x}\n" for one, site in sites))


def _link_at(
    kernel: Sequence[Path], plain: Sequence[Path], stand_ins: Collection[str], work: Path
) -> None:
    """Link the halves of a host into a directory, and list its traps there."""
    first, size = _constant("NATIVE_TRAPS"), _constant("NATIVE_TRAP_SIZE")
    traps: list[str] = []
    script: list[str] = []
    for symbol in (symbol for one in kernel for symbol in _symbols(one, defined=False)):
        name = symbol.split("_", 1)[1]
        if f"k_{name}" in stand_ins:
            script.append(f"{symbol} = k_{name};")
        else:
            script.append(f"{symbol} = {first + len(traps) * size:#x};")
            traps.append(name)
    (work / "symbols.ld").write_text("\n".join(script) + "\n")
    (work / "traps").write_text("\n".join(traps) + "\n")
    argv = ["gcc", "-no-pie", "-Wl,--emit-relocs", "-Wl,-z,noexecstack", "-o"]
    parts = [work / "host", *kernel, *plain, work / "symbols.ld"]
    run([*argv, *parts], what="linking the host")


def _gap(number: int, work: Path) -> Path:
    """Return an object that moves the code behind it, by a distance that depends on `number`."""
    source, made = work / "gap.s", work / "gap.o"
    # It ends at another quarter of a cache line for each number: functions are aligned to 16.
    bytes_ = _LINE + number * (_LINE + 16)
    code = "".join(
        f'.section {name},"ax"\n.balign {_LINE}\n.skip {bytes_}\n' for name in _CODE_SECTIONS
    )
    source.write_text(code + '.section .note.GNU-stack,"",@progbits\n')
    run(["as", "-o", made, source], what="assembling a gap")
    return made


def _compile(named: _Named, half: KernelHalf, work: Path) -> _Glue:
    """Compile glue and workloads as kernel code of a tree.

    Raises:
        Failure: a file of the glue does not compile.
    """
    scratch = work / named.prefix
    scratch.mkdir()
    workloads = {one.stem for one in half.workloads}
    parts, faults = objects.compile_glue(
        named.tree,
        named.built,
        [*half.sources, *half.headers],
        scratch,
        f"-DNATIVE_TREE='\"{named.name}\"'",
    )
    for file, why in faults.items():
        if file not in workloads:
            with blamed(named.tree.name):
                raise Failure(
                    f"{file}.c does not compile with the {named.name} tree: {why}",
                    "compare a tree of a version nearer to base",
                )
    return _Glue(named, scratch, parts, faults)


def _lacks(
    glue: Sequence[_Glue], half: KernelHalf, stand_ins: set[str]
) -> list[tuple[str, str, str]]:
    """Return trees that cannot run the workloads of a file that other trees can run.

    Args:
        glue: the glue of every tree.
        half: the files of the kernel half.
        stand_ins: the symbols for which the plain half has a stand-in.

    Returns:
        the name of the tree, the file without suffix, and the reason.

    Raises:
        Failure: a file compiles with no tree; or one of the user's needs a symbol that no tree has.
    """
    found = []
    there = {one.named.name: _defined(one, half) | stand_ins for one in glue}
    for source in half.workloads:
        file = source.stem
        if all(file in one.faults for one in glue):
            raise Failure(f"{source.name} does not compile: {glue[0].faults[file]}", "fix it")
        missing = {
            one.named.name: needs - there[one.named.name]
            for one in glue
            if file not in one.faults
            for needs in [set(_symbols(one.scratch / f"{file}.o", defined=False))]
        }
        # The host itself reports a symbol that no tree has, when it is used.
        everywhere = set.intersection(*missing.values())
        if everywhere and source in half.own:
            raise _undefined(source, min(everywhere), glue[0].named.tree)
        for one in glue:
            name = one.named.name
            if file in one.faults:
                found.append((name, file, one.faults[file]))
            elif own := sorted(missing[name] - everywhere):
                found.append((name, file, f"it has no {own[0]}"))
    return found


def _undefined(source: Path, symbol: str, tree: Tree) -> Failure:
    """Return the failure of a workload file of the user's that lacks an object."""
    found = definition(tree.path, symbol)
    if not found:
        return Failure(
            f"{source.name} needs {symbol}, which Linux {tree.version} does not define",
            "define it in the file",
        )
    return Failure(
        f"{source.name} needs {symbol}, which {found} of Linux {tree.version} defines",
        f'add "{found}" to its NATIVE_OBJECTS()',
    )


def _defined(glue: _Glue, half: KernelHalf) -> set[str]:
    """Return the symbols of a tree's kernel code and glue."""
    built = glue.named.built
    kernel = [built / one for one in half.objects if (built / one).exists()]
    return {symbol for one in (*glue.parts, *kernel) for symbol in _symbols(one, defined=True)}


def _kernel_half(glue: _Glue, half: KernelHalf, gap: Path, work: Path) -> Path:
    """Return one object with all kernel code of a tree, its symbols and tables renamed."""
    named = glue.named
    scratch = work / named.prefix
    scratch.mkdir()
    kernel = [one for one in half.objects if (named.built / one).exists()]
    parts = list(glue.parts)
    for one in kernel:
        # Align shared code identically in all trees: cache-line placement changes timings.
        parts += [gap, _prepared(named.built, one, half, scratch)]
    whole, renamed, done = (scratch / f"{name}.o" for name in ("whole", "renamed", "done"))
    run(["ld", "-r", "-o", whole, *parts], what=f"joining the {named.name} objects")
    argv: list[str | Path] = ["objcopy", "--strip-debug", f"--prefix-symbols={named.prefix}_"]
    for section in _DROPPED:
        argv += ["-R", section]
    argv += ["--rename-section", ".data..percpu=per_cpu,alloc,load,data,contents"]
    for section, name in _TABLES.items():
        flags = "alloc,load,readonly,data,contents"
        argv += ["--rename-section", f"{section}={named.prefix}_{name},{flags}"]
    run([*argv, whole, renamed], what=f"renaming the {named.name} symbols")
    # ld defines symbols for the start and end of a section with such a name.
    argv = ["objcopy"]
    for name in _TABLES.values():
        table = f"{named.prefix}_{name}"
        argv += [f"--redefine-sym={table}=__start_{table}"]
        argv += [f"--redefine-sym={table}_end=__stop_{table}"]
    run([*argv, renamed, done], what=f"naming the tables of {named.name}")
    return done


def _prepared(built: Path, one: str, half: KernelHalf, scratch: Path) -> Path:
    """Return a copy of a kernel object for the link."""
    copy = scratch / one.replace("/", "-")
    argv: list[str | Path] = ["objcopy"]
    argv += [f"--globalize-symbol={symbol}" for symbol in half.statics]
    for left_out in half.left_out:
        file, symbol = left_out.split(":")
        if file == one:
            argv += [f"--redefine-sym={symbol}=native_nothing"]
    run([*argv, built / one, copy], what=f"preparing {one}")
    return copy


def _symbols(file: Path, *, defined: bool) -> list[str]:
    """Return the symbols that a file defines, or those that it needs."""
    which = "--defined-only" if defined else "--undefined-only"
    listing = run(["nm", which, "--format=posix", file], what=f"reading {file.name}")
    found = (line.split()[:2] for line in listing.splitlines())
    # A weak symbol may stay undefined. ld defines the ends of sections.
    return sorted(
        name
        for name, kind in found
        if kind not in ("w", "v") and not name.startswith(("__start_", "__stop_"))
    )


def _return_sites(relocations: str) -> Iterable[tuple[str, int]]:
    """Return the prefix and address of each jump to the return thunk, from `readelf -rW`."""
    found = re.findall(
        r"^([0-9a-f]{16}) +\w+ R_X86_64_(?:PLT|PC)32 +\w+ +(t\d+)___x86_return_thunk - 4$",
        relocations,
        re.MULTILINE,
    )
    # The relocation is behind the opcode.
    return sorted({(prefix, int(address, 16) - 1) for address, prefix in found})
