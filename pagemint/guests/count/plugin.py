# SPDX-License-Identifier: GPL-2.0-only
"""The QEMU plugin that counts what a guest executes: compiles it, and reads what it wrote."""

import re
from pathlib import Path

from pagemint.base import cache, files, machine
from pagemint.base.progress import step
from pagemint.base.run import run
from pagemint.results.rows import Counts

OTHER = "[other]"
"""The name of kernel code that has no symbol: modules, and code made at run time."""

_SOURCE = files.GUESTS / "count/count.c"
_FLAGS = ("-shared", "-fPIC", "-O2")
_MAP, _OUT, _MAPPINGS = "functions", "counts", "mappings"
_ENDS = ("_etext", "_end")  # where the kernel's code ends, and all of the kernel


def make() -> Path:
    """Return the plugin, compiled if it is not in the cache.

    Raises:
        Failure: there is no compiler.
    """

    def compile_it(work: Path) -> None:
        with step("compiling the QEMU plugin"):
            make_in(work)

    key = cache.digest(_SOURCE, *_FLAGS, machine.compiler())
    return cache.entry("plugins", key, compile_it) / "count.so"


def make_in(directory: Path) -> Path:
    """Compile the plugin in a directory."""
    made = directory / "count.so"
    run(["gcc", *_FLAGS, "-o", made, _SOURCE], what="compiling the QEMU plugin")
    return made


def option(plugin: Path, symbols: str, mark: str, directory: Path) -> list[str]:
    """Return QEMU's options that load the plugin.

    Args:
        plugin: the plugin.
        symbols: the symbols of the guest's kernel, as in System.map.
        mark: the function whose execution ends a window.
        directory: an empty directory for the plugin's files.
    """
    known = functions(symbols)
    (directory / _MAP).write_text("".join(f"{start:x} {name}\n" for start, name in known))
    (at,) = {start for start, name in known if name == mark}
    places = {"map": _MAP, "out": _OUT, "mappings": _MAPPINGS}
    words = [f"{name}={directory / place}" for name, place in places.items()]
    return ["-plugin", ",".join([str(plugin), f"mark={at:x}", *words])]


def functions(symbols: str) -> list[tuple[int, str]]:
    """Return the functions of a kernel, by their addresses.

    The parts into which the compiler splits a function have its name. If an address has several
    names, the one with the fewest leading underscores is taken, as an author would write it.
    """
    names: dict[int, str] = {}
    for line in symbols.splitlines():
        address, kind, name = line.split()[:3]
        at = int(address, 16)
        if name in _ENDS:
            names[at] = OTHER
        elif kind in "tTwW" and not name.startswith(("__pfx_", "__cfi_")):
            bare = re.split(r"\.(?:cold|isra|constprop|part)\b", name)[0]
            aliases = (bare, names.get(at, bare))
            names[at] = min(aliases, key=lambda alias: (len(alias) - len(alias.lstrip("_")), alias))
    return sorted(names.items())


def windows(directory: Path) -> list[dict[str, Counts]]:
    """Return the counts of each function in each window, from the files of the plugin."""
    by_window: list[dict[str, Counts]] = []
    for line in (directory / _OUT).read_text().splitlines():
        number, name, *counts = line.split()
        while len(by_window) <= int(number):
            by_window.append({})
        known, new = by_window[-1], Counts(*map(int, counts))
        known[name] = known[name] + new if name in known else new
    return by_window


def resident(directory: Path) -> int:
    """Return the bytes of the guest's memory that the host backed at the last mark."""
    text = (directory / _MAPPINGS).read_text()
    total_kib = 0
    for mapping in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", text, flags=re.MULTILINE):
        # QEMU asks for huge pages for a guest's memory, and for the code that it makes of it,
        # which is executable.
        if re.match(r"\S+ rw-", mapping) and re.search(r"^VmFlags:.* hg\b", mapping, re.MULTILINE):
            total_kib += sum(map(int, re.findall(r"^Rss: +(\d+) kB", mapping, re.MULTILINE)))
    return total_kib << 10
