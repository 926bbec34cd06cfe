# SPDX-License-Identifier: GPL-2.0-only
"""Joins a tree's kernel objects, glue and workloads into one object with a prefix of its own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pagemint.base import cache
from pagemint.base.errors import Failure
from pagemint.base.run import run
from pagemint.bench.kernel_half import KernelHalf
from pagemint.trees import objects
from pagemint.trees.trees import Tree, blamed

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
_FAULTS = "faults"  # the file with the compiler's errors, beside the objects


@dataclass(frozen=True)
class Named:
    """A tree under the name and the prefix that it has in a host.

    Attributes:
        name: its name.
        prefix: the prefix of its symbols: t0, t1 and so on.
        tree: the tree.
        built: its build directory.
        code: its kernel objects, by names such as mm/mm_init.o.
        exported: by the names of some objects, the symbols that others may use; of the rest, all.
    """

    name: str
    prefix: str
    tree: Tree
    built: Path
    code: Mapping[str, Path]
    exported: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Glue:
    """Glue and workloads compiled for a tree.

    Attributes:
        named: the tree.
        label: the object with the tree's name.
        parts: the object of each C file that compiles, by the name of the file.
        faults: the compiler's error, by the names of the workload files that do not.
    """

    named: Named
    label: Path
    parts: Mapping[str, Path]
    faults: Mapping[str, str]

    def defined(self) -> set[str]:
        """Return the symbols that the kernel code and the glue define."""
        exported = self.named.exported
        code = [file for name, file in self.named.code.items() if name not in exported]
        files = (*self.parts.values(), *code)
        names = {symbol for file in files for symbol in symbols(file, defined=True)}
        return names.union(*exported.values())


def named(tree: Tree, name: str, prefix: str, built: Path, half: KernelHalf) -> Named:
    """Return a tree with the objects of its build directory that the kernel half wants."""
    code = {path: built / path for path in half.objects if (built / path).exists()}
    return Named(name, prefix, tree, built, code)


def compile_glue(tree: Named, half: KernelHalf, work: Path) -> Glue:
    """Compile glue and workloads as kernel code of a tree.

    The objects of the lab's files stay in the cache. Those of the user's, who may be changing
    them, are made in a directory below `work`.

    Raises:
        Failure: a file of the glue does not compile.
    """
    places = {"lab": _lab_glue(tree, half)}
    if half.own:
        # Two trees of a host have the same build directory: base and base again.
        places["own"] = work / f"own-{tree.built.name}"
        if not places["own"].exists():
            places["own"].mkdir()
            _compile(tree, (*half.own, *half.headers), places["own"])
    faults = {
        file: why
        for place in places.values()
        for file, why in json.loads((place / _FAULTS).read_text()).items()
    }
    workloads = {source.stem for source in half.workloads}
    for file, why in faults.items():
        if file not in workloads:
            with blamed(tree.tree.name):
                raise Failure(
                    f"{file}.c does not compile with the {tree.tree.name} tree: {why}",
                    "compare a tree of a version nearer to base",
                )
    parts = {
        source.stem: places["own" if source in half.own else "lab"] / f"{source.stem}.o"
        for source in half.sources
        if source.stem not in faults
    }
    # The glue refers to the tree's name, so that trees with the same code have the same objects.
    name = f'native_tree_name:\n\t.asciz "{tree.name}"\n'
    code = f".section .rodata\n.globl native_tree_name\n{name}"
    return Glue(tree, _assembled(code, work / f"label-{tree.prefix}.o"), parts, faults)


def _lab_glue(tree: Named, half: KernelHalf) -> Path:
    """Return the directory with the objects of the lab's files, made if it is not in the cache."""
    files = sorted({*half.sources, *half.headers} - half.own.keys())
    own = Path(__file__), Path(objects.__file__)
    key = cache.digest(str(tree.built), *cache.named(files), *own)
    # scripts/mutants repeats the compiler's commands, which name the directory.
    return cache.entry("glue", key, lambda work: _compile(tree, files, work), in_place=True)


def _compile(tree: Named, files: Sequence[Path], work: Path) -> None:
    faults = objects.compile_glue(tree.tree, tree.built, files, work)
    (work / _FAULTS).write_text(json.dumps(faults))


def gap(number: int, work: Path) -> Path:
    """Return an object that moves the code behind it, by a distance that depends on `number`."""
    # It ends at another quarter of a cache line for each number: functions are aligned to 16.
    bytes_ = _LINE + number * (_LINE + 16)
    code = "".join(
        f'.section {name},"ax"\n.balign {_LINE}\n.skip {bytes_}\n' for name in _CODE_SECTIONS
    )
    return _assembled(code, work / "gap.o")


def _assembled(code: str, made: Path) -> Path:
    source = made.with_suffix(".s")
    source.write_text(code + '.section .note.GNU-stack,"",@progbits\n')
    run(["as", "-o", made, source], what=f"assembling {source.name}")
    return made


def join(glue: Glue, half: KernelHalf, between: Path, work: Path) -> Path:
    """Return one object with all kernel code of a tree, its symbols and tables renamed.

    It is made below `work`. `between`, from `gap`, stands before each kernel object.
    """
    tree = glue.named
    scratch = work / tree.prefix
    scratch.mkdir()
    parts = [*glue.parts.values(), glue.label]
    for name, file in tree.code.items():
        # Align shared code identically in all trees: cache-line placement changes timings.
        exported = tree.exported.get(name)
        parts += [between, _prepared(name, file, half, scratch, exported)]
    whole, renamed, done = (scratch / f"{name}.o" for name in ("whole", "renamed", "done"))
    run(["ld", "-r", "-o", whole, *parts], what=f"joining the {tree.name} objects")
    argv: list[str | Path] = ["objcopy", "--strip-debug", f"--prefix-symbols={tree.prefix}_"]
    for section in _DROPPED:
        argv += ["-R", section]
    argv += ["--rename-section", ".data..percpu=per_cpu,alloc,load,data,contents"]
    for section, name in _TABLES.items():
        flags = "alloc,load,readonly,data,contents"
        argv += ["--rename-section", f"{section}={tree.prefix}_{name},{flags}"]
    run([*argv, whole, renamed], what=f"renaming the {tree.name} symbols")
    # ld defines symbols for the start and end of a section with such a name.
    argv = ["objcopy"]
    for name in _TABLES.values():
        table = f"{tree.prefix}_{name}"
        argv += [f"--redefine-sym={table}=__start_{table}"]
        argv += [f"--redefine-sym={table}_end=__stop_{table}"]
    run([*argv, renamed, done], what=f"naming the tables of {tree.name}")
    return done


def _prepared(
    name: str, file: Path, half: KernelHalf, scratch: Path, exported: Sequence[str] | None
) -> Path:
    """Return a copy of a kernel object for the link."""
    copy = scratch / name.replace("/", "-")
    argv: list[str | Path] = ["objcopy"]
    if exported is None:
        argv += [f"--globalize-symbol={symbol}" for symbol in half.declared("STATICS")]
    for symbol in exported or ():
        # The glue's own definitions win.
        argv += [f"--keep-global-symbol={symbol}", f"--weaken-symbol={symbol}"]
    for replaced in half.declared("REPLACED"):
        where, _, renaming = replaced.partition(":")
        if where == name:
            argv += [f"--redefine-sym={renaming}"]
    run([*argv, file, copy], what=f"preparing {name}")
    return copy


def symbols(file: Path, *, defined: bool, static: bool = True) -> list[str]:
    """Return the symbols that an object defines, perhaps static ones, too, or those it needs."""
    argv = ["nm", "--defined-only" if defined else "--undefined-only", "--format=posix"]
    argv += [] if static else ["--extern-only"]
    listing = run([*argv, file], what=f"reading {file.name}")
    fields = (line.split()[:2] for line in listing.splitlines())
    # A weak symbol may stay undefined. ld defines the ends of sections.
    return sorted(
        name
        for name, kind in fields
        if kind not in ("w", "v") and not name.startswith(("__start_", "__stop_"))
    )
