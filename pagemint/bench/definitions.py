# SPDX-License-Identifier: GPL-2.0-only
"""Finds the objects that define what a tree's code needs, and base's code does not."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pagemint.base.errors import TreeFailure
from pagemint.bench.join import Named, symbols
from pagemint.trees import objects
from pagemint.trees.objects import Config
from pagemint.trees.trees import blamed

_PLACES = (
    "arch/x86/lib",
    "mm",
    "lib",
    "kernel",
    "arch/x86/kernel",
    "init",
    "arch/x86/mm",
    "fs",
    "drivers/dax",
    "drivers/nvdimm",
)


def definitions(tree: Path, wanted: Collection[str]) -> dict[str, str]:
    """Return the object of a tree that seems to define each symbol, if there is one."""
    if not wanted:
        return {}
    texts: dict[str, dict[Path, str]] = {_name(symbol): {} for symbol in wanted}
    for file in (file for place in _PLACES for file in sorted((tree / place).rglob("*.[cS]"))):
        # x86's code for 32 bits is left out.
        if not file.stem.endswith("_32"):
            text = file.read_text(errors="replace")
            for name in texts.keys() & set(re.findall(r"\w+", text)):
                texts[name][file] = text
    paths = {}
    for symbol in wanted:
        name = _name(symbol)
        for form in _forms(name):
            files = (file for file, text in texts[name].items() if form.search(text))
            if first := next(files, None):
                paths[symbol] = str(first.relative_to(tree).with_suffix(".o"))
                break
    return paths


def _name(symbol: str) -> str:
    """Return the name in the source: a static call has a key and a trampoline."""
    return re.sub("^__SC[KT]__", "", symbol)


def _forms(name: str) -> list[re.Pattern[str]]:
    """Return the forms of a definition, the surest first."""
    name = re.escape(name)
    forms = (
        rf"^EXPORT_SYMBOL(_GPL)?\({name}\)",
        rf"^SYM_(TYPED_)?FUNC_START\w*\({name}\)",
        rf"^DEFINE_\w+\(([^;()]*\b)?{name}\b[^;]*\);",
        rf"^[A-Za-z_][^;=#:{{]*\b{name}\([^;]*$",
        rf"^(?!extern )[A-Za-z_][^;(#{{]*\b{name}(\[\w*\])*( __\w+)*( =.*|;)$",
    )
    return [re.compile(form, re.MULTILINE) for form in forms]


def with_definitions(tree: Named, base: Named, config: Config, given: Collection[str]) -> Named:
    """Return a tree with further objects: they define what its code needs, and base's does not.

    The others can use only these definitions of such an object. What it needs itself is added in
    the same way, unless base defines it: new code calls new code. `given` are the symbols for which
    the plain half has a stand-in.

    Raises:
        TreeFailure: such an object does not compile.
    """
    exported: dict[str, list[str]] = {}
    code = dict(tree.code)
    known = {*given, *_of(code.values(), defined=True)}
    wanted = _of(code.values(), defined=False) - _of(base.code.values(), defined=False) - known
    while wanted:
        known |= wanted
        needed = set()
        places: dict[str, set[str]] = {}
        for symbol, place in sorted(definitions(tree.tree.path, wanted).items()):
            places.setdefault(place, set()).add(symbol)
        for place in _built(tree, config, [at for at in places if at not in code]):
            names = places[place] & set(symbols(tree.built / place, defined=True, static=False))
            if names:
                code[place] = tree.built / place
                exported[place] = sorted(names)
                needed |= set(symbols(code[place], defined=False))
        wanted = needed - known
        wanted -= definitions(base.tree.path, wanted).keys()
    return replace(tree, code=code, exported=exported)


def _built(tree: Named, config: Config, places: Sequence[str]) -> list[str]:
    """Return those of some objects that the configuration has, built.

    Raises:
        TreeFailure: one does not compile.
    """
    try:
        with blamed(tree.name):
            objects.build(tree.tree, config, places)
    except TreeFailure as failure:
        if objects.in_source(failure):
            raise
        if len(places) == 1:
            return []  # its symbols stay undefined
        return [built for place in places for built in _built(tree, config, [place])]
    return [*places]


def _of(files: Iterable[Path], *, defined: bool) -> set[str]:
    return {symbol for file in files for symbol in symbols(file, defined=defined, static=False)}
