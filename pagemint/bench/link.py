# SPDX-License-Identifier: GPL-2.0-only
"""Links the kernel code of several trees and the plain half into the native host.

Each tree's symbols have a prefix of their own: t0_, t1_ and so on. An undefined symbol of a tree is
bound to its stand-in k_NAME in the plain half, or to an address that cannot be touched. The source
text of glue and workloads names the objects that they need; see host/native.h.
"""

import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pagemint.base import cache, files, machine
from pagemint.base.errors import Failure
from pagemint.base.progress import step
from pagemint.base.run import run
from pagemint.bench import definitions, join
from pagemint.bench.join import Glue, Named, symbols
from pagemint.bench.kernel_half import KernelHalf
from pagemint.trees import objects
from pagemint.trees.objects import Config
from pagemint.trees.trees import Tree, blamed
from pagemint.words import AGAIN, BASE, OWN

_CFLAGS = ("-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fno-pie")
# Kernel code calls the plain half with the stack aligned to 8 bytes.
_STACK = "-mincoming-stack-boundary=3"


@dataclass(frozen=True)
class Program:
    """A linked host.

    Attributes:
        at: the directory with the program host, and the two files that it reads: traps has the
            names of the symbols without a stand-in, sites the addresses of the returns to patch.
        lacks: by tree and workload file ("device_folio"), the reason why a tree that other trees
            are compared with cannot run it.
    """

    at: Path
    lacks: Mapping[tuple[str, str], str]


def link(trees: Sequence[Tree], config: Config) -> Program:
    """Return the host of some trees, built if it is not in the cache; see `link_placed`."""
    return link_placed(trees, config, 1, KernelHalf())[0]


def link_placed(
    trees: Sequence[Tree], config: Config, placements: int, half: KernelHalf
) -> list[Program]:
    """Return hosts of some trees that differ only in the addresses of the kernel code.

    The placement of a small function alone can change its time by 10%. All trees of a host have
    the code that they share at the same offset from a cache line. Base is the first of `trees`;
    `placements` is the number of hosts.

    Raises:
        Failure: no tree has the source of a wanted object; or a build or the link fails.
    """
    wanted = half.objects
    built = []
    for tree in trees:
        with blamed(tree.name):
            built.append(objects.build(tree, config, wanted))
    for path in wanted:
        ours = (files.KERNEL / path).with_suffix(".c").exists()  # perhaps in no tree
        if not ours and not any(objects.has_source(tree, path) for tree in trees):
            raise Failure(
                f"NATIVE_OBJECTS() names {path}, and Linux {trees[0].line} has no source for it",
                "give the path of a .c or .S file of the kernel, with the suffix .o",
            )
    names = [BASE, AGAIN, *(tree.name for tree in trees[1:])]
    twice = zip((trees[0], *trees), names, (built[0], *built), strict=True)
    named = [
        join.named(tree, name, f"t{at}", there, half)
        for at, (tree, name, there) in enumerate(twice)
    ]
    linker = run(["ld", "--version"], what="asking ld for its version").splitlines()[0]
    key = cache.digest(
        *(f"{tree.name} {tree.built}" for tree in named),
        *cache.named(_plain_sources()),
        *cache.named(half.sources),
        *sorted(half.headers),
        Path(__file__),
        Path(join.__file__),
        Path(definitions.__file__),
        linker,
        machine.compiler(),
        str(placements),
    )

    def make(work: Path) -> None:
        with step(f"linking the host ({config.name})"):
            _link(named, config, half, work, placements)

    done = cache.entry("native", key, make)
    lacks = (line.split("\t") for line in (done / "lacks").read_text().splitlines())
    lacking = {(tree, file): why for tree, file, why in lacks}
    return [Program(done / str(number), lacking) for number in range(placements)]


def compile_plain() -> list[Path]:
    """Return the objects of the plain half, compiled if they are not in the cache.

    Raises:
        Failure: a file does not compile.
    """
    sources = _plain_sources()
    read = [*sources, *sorted(files.BENCH.glob("host/*.h"))]
    key = cache.digest(*cache.named(read), Path(__file__), machine.compiler())

    def make(work: Path) -> None:
        for source in sources:
            made = work / f"{source.stem}.o"
            argv: list[str | Path] = ["gcc", *_CFLAGS, _STACK, "-c", source, "-o", made]
            run(argv, what=f"compiling {source.name}")

    done = cache.entry("plain", key, make)
    return [done / f"{source.stem}.o" for source in sources]


def _plain_sources() -> list[Path]:
    """Return the C files of the plain half."""
    return sorted(files.BENCH.glob("host/*.c"))


def _constant(name: str) -> int:
    """Return a number that native.h defines."""
    text = (files.BENCH / "host/native.h").read_text()
    match = re.search(rf"^#define {name}\s+(\w+?)UL$", text, re.MULTILINE)
    assert match, name
    return int(match[1], 0)


def _link(
    trees: Sequence[Named], config: Config, half: KernelHalf, work: Path, placements: int
) -> None:
    plain = compile_plain()
    given = stand_ins(plain)
    base = trees[0]
    # The lab knows what its own trees need. A tree of another release needs too much else.
    trees = [
        tree
        if tree.name in OWN or tree.tree.release != base.tree.release
        else definitions.with_definitions(tree, base, config, given)
        for tree in trees
    ]
    glues = [join.compile_glue(tree, half, work) for tree in trees]
    lacks = _lacks(glues, half, given)
    (work / "lacks").write_text("".join("\t".join(lack) + "\n" for lack in lacks))
    for number in range(placements):
        at = work / str(number)
        at.mkdir()
        gap = join.gap(number, at)
        kernel = {glue.named.name: join.join(glue, half, gap, at) for glue in glues}
        link_halves(kernel, plain, given, at)
        for joined in kernel.values():
            shutil.rmtree(joined.parent)  # some 20 MB


def link_halves(
    kernel: Mapping[str, Path], plain: Sequence[Path], given: Collection[str], work: Path
) -> None:
    """Link the halves of a host into the directory `work`.

    `kernel` has the code of each tree, from `join.join`, by its name, in the order of their
    prefixes; `given` are the symbols for which the plain half has a stand-in.

    Raises:
        Failure: the linker fails, or the code has no return sites.
    """
    first, size = _constant("NATIVE_TRAPS"), _constant("NATIVE_TRAP_SIZE")
    traps: list[str] = []
    script: list[str] = []
    for symbol in (symbol for file in kernel.values() for symbol in symbols(file, defined=False)):
        name = symbol.split("_", 1)[1]
        if name in given:
            script.append(f"{symbol} = k_{name};")
        else:
            script.append(f"{symbol} = {first + len(traps) * size:#x};")
            traps.append(name)
    (work / "symbols.ld").write_text("\n".join(script) + "\n")
    (work / "traps").write_text("\n".join(traps) + "\n")
    argv = ["gcc", "-no-pie", "-Wl,--emit-relocs", "-Wl,-z,noexecstack", "-o"]
    parts = [work / "host", *kernel.values(), *plain, work / "symbols.ld"]
    run([*argv, *parts], what="linking the host")
    names = {f"t{at}": name for at, name in enumerate(kernel)}
    # Each jump to the return thunk; the relocation is behind the opcode.
    sites = re.findall(
        r"^([0-9a-f]{16}) +\w+ R_X86_64_(?:PLT|PC)32 +\w+ +(t\d+)___x86_return_thunk - 4$",
        run(["readelf", "-rW", work / "host"], what="reading relocations"),
        re.MULTILINE,
    )
    if not sites:
        raise Failure("the host has no return sites", "use the compiler that built the kernel")
    addresses = sorted((names[prefix], int(address, 16) - 1) for address, prefix in {*sites})
    (work / "sites").write_text("".join(f"{name} {site:x}\n" for name, site in addresses))


def stand_ins(plain: Sequence[Path]) -> set[str]:
    """Return the kernel's symbols for which the plain half has a stand-in."""
    names = (symbol for file in plain for symbol in symbols(file, defined=True))
    return {symbol.removeprefix("k_") for symbol in names if symbol.startswith("k_")}


def _lacks(glues: Sequence[Glue], half: KernelHalf, given: set[str]) -> list[tuple[str, str, str]]:
    """Return each tree that lacks what a workload file needs, the file's stem, and the reason.

    Raises:
        Failure: a file compiles with no tree; or one of the user's needs a symbol that no tree has.
    """
    lacks = []
    there = {glue.named.name: glue.defined() | given for glue in glues}
    for source in half.workloads:
        file = source.stem
        if all(file in glue.faults for glue in glues):
            raise Failure(f"{source.name} does not compile: {glues[0].faults[file]}", "fix it")
        missing = {
            glue.named.name: needs - there[glue.named.name]
            for glue in glues
            if file not in glue.faults
            for needs in [set(symbols(glue.parts[file], defined=False))]
        }
        # The host itself reports a symbol that no tree has, when it is used.
        everywhere = set.intersection(*missing.values())
        if everywhere and source in half.own:
            raise _undefined(source, min(everywhere), glues[0].named.tree)
        for glue in glues:
            name = glue.named.name
            if file in glue.faults:
                lacks.append((name, file, glue.faults[file]))
            # Trees of other versions need other symbols of the compiler, which none of them has.
            elif own := sorted(missing[name] & set[str]().union(*there.values())):
                lacks.append((name, file, f"it has no {own[0]}"))
    return lacks


def _undefined(source: Path, symbol: str, tree: Tree) -> Failure:
    """Return the failure of a workload file of the user's that lacks an object."""
    path = definitions.definitions(tree.path, [symbol]).get(symbol)
    needs, linux = f"{source.name} needs {symbol}, which", f"Linux {tree.version}"
    if not path:
        return Failure(f"{needs} {linux} does not define", "define it in the file")
    return Failure(f"{needs} {path} of {linux} defines", f'add "{path}" to its NATIVE_OBJECTS()')
