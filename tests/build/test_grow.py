# SPDX-License-Identifier: GPL-2.0-only
"""Sections that allocations initialise are as boot leaves them, in the native host."""

from memmaps import SECTION, differences, program_for

from pagemint.bench.process import Host
from pagemint.bench.variants import modes_of
from pagemint.bench.window import POISON, blocks_of, shared_map
from pagemint.bench.workload import FIRST_PFN
from pagemint.words import STRUCT_PAGE

SECTIONS = 3
REST = SECTION  # pages behind them, which nobody may write
PAGES = SECTIONS * SECTION


def state(host: Host, tree: str) -> tuple[list[str], str]:
    """Return the pageblocks of a tree, and a hash over its zone."""
    return blocks_of(host, tree), host.ask("zone", tree=tree)["hash"]


def test_a_zone_that_grows_becomes_one_that_boot_has_initialised(in_user_cache: None) -> None:
    with shared_map(program_for("7.3", "mask"), PAGES + REST) as (host, memmap):
        where = {"start": FIRST_PFN, "pages": PAGES}
        free = {"free0": FIRST_PFN, "end0": FIRST_PFN + PAGES}
        sections = {"start": FIRST_PFN, "sections": SECTIONS}
        host.ask("poison", byte=POISON, first=FIRST_PFN, pages=PAGES + REST)
        host.ask("boot", tree="base", **where, **free)
        expected, expected_state = memmap[:], state(host, "base")
        assert memmap[PAGES * STRUCT_PAGE :] == bytes([POISON]) * REST * STRUCT_PAGE
        for mode in modes_of(host, "patched"):
            host.ask("mode", tree="patched", name=mode)
            host.ask("poison", byte=POISON, first=FIRST_PFN, pages=PAGES + REST)
            host.ask("boot", tree="patched", **where)
            assert memmap[:] == bytes([POISON]) * len(memmap)
            assert host.ask("grow", tree="patched", **sections)["grown"] == "1"
            assert not differences(expected, memmap[:]), mode
            assert state(host, "patched") == expected_state, mode
        assert host.ask("grow", tree="base", **sections) == {"grown": "0"}
