# SPDX-License-Identifier: GPL-2.0-only
"""Compares the memmaps that trees leave with those of base, byte for byte."""

import mmap
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from pagemint.base.errors import TreeFailure
from pagemint.bench.left_out import LeftOut
from pagemint.bench.link import Program
from pagemint.bench.process import Host
from pagemint.bench.window import POISON, blocks_of, shared_map
from pagemint.bench.workload import FIRST_PFN, Variant, choose
from pagemint.results.rows import COMPARISON
from pagemint.words import BASE, SECTION, STRUCT_PAGE

_MARGIN = 64  # pages on both sides that nobody may write


class _Device(NamedTuple):
    """The arguments of the host's command init, with the name of the device for messages."""

    name: str
    type: str
    order: int
    start: int  # pages behind the first one
    pages: int
    altmap: int = 0


_DEVICES = (
    _Device("fsdax", "fsdax", 0, 3, 2 * SECTION + 5),
    _Device("private", "private", 0, 0, SECTION),
    _Device("devdax, deduplicated", "generic", 9, 0, SECTION),
    _Device("devdax", "generic", 9, 0, 2 * SECTION, altmap=1),
    _Device("devdax, 1 GiB", "generic", 18, 0, 1 << 18, altmap=1),
)
_PAGES = max(device.start + device.pages for device in _DEVICES) + 2 * _MARGIN


def differences(
    program: Program, variants: Sequence[Variant], left_out: LeftOut
) -> Mapping[str, str]:
    """Return the first difference from base for each tree, in words; "" if there is none.

    The modes of a tree follow one another in `variants`. `left_out` receives the trees that lack
    the code, or whose code fails.
    """
    by_tree = {}
    for tree, modes in groupby(variants, lambda variant: variant.tree):
        try:
            if why := program.lacks.get((tree, "device")):
                left_out.add(COMPARISON, tree, why)
            else:
                by_tree[tree] = _compared(program, list(modes))
        except TreeFailure as failure:
            left_out.failed(COMPARISON, failure)
    return by_tree


def _compared(program: Program, variants: Sequence[Variant]) -> str:
    """Return the first difference of a tree's modes from base, in a host of their own."""
    with shared_map(program, _PAGES) as (host, window):
        for device in _DEVICES:
            base = _left(host, window, Variant(BASE), device)
            for variant in variants:
                left = _left(host, window, variant, device)
                if difference := _difference(device, variant, base, left):
                    return difference
    return ""


def _left(
    host: Host, window: mmap.mmap, variant: Variant, device: _Device
) -> tuple[bytes, list[str]]:
    """Return the memmap and the pageblocks that a tree leaves."""
    choose(host, variant)
    host.ask("poison", byte=POISON, first=FIRST_PFN, pages=_PAGES)
    host.ask(
        "init",
        tree=variant.tree,
        start=FIRST_PFN + _MARGIN + device.start,
        pages=device.pages,
        type=device.type,
        order=device.order,
        altmap=device.altmap,
    )
    return bytes(window), blocks_of(host, variant.tree)


def _difference(
    device: _Device, variant: Variant, base: tuple[bytes, list[str]], left: tuple[bytes, list[str]]
) -> str:
    mode = f" in mode {variant.mode}" if variant.mode else ""
    if base[0] != left[0]:
        words = (memoryview(memmap).cast("Q") for memmap in (base[0], left[0]))
        pairs = enumerate(zip(*words, strict=True))
        at, was, now = next((at, one, other) for at, (one, other) in pairs if one != other)
        page, word = divmod(at, STRUCT_PAGE // 8)
        return (
            f"{device.name}{mode}: page {page - _MARGIN - device.start}, word {word} "
            f"is {now:#x}, not {was:#x}"
        )
    if base[1] != left[1]:
        return f"{device.name}{mode}: the pageblocks differ"
    return ""
