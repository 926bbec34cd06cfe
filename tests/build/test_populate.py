# SPDX-License-Identifier: GPL-2.0-only
"""Sections that share a memmap get one of their own, in the native host.

In a file of its own, since make check-mutants leaves out the topic shared.
"""

from memmaps import SECTION, differences, program_for

from pagemint.bench.window import POISON, shared_map
from pagemint.bench.workload import FIRST_PFN
from pagemint.words import STRUCT_PAGE

FOLIO = 512


def test_sections_that_are_used_have_the_memmap_of_a_bind(in_user_cache: None) -> None:
    sections, rest = 3, 2 * SECTION + 4 * FOLIO
    window = sections * SECTION + rest
    left = []
    with shared_map(program_for("7.3", "mask"), window) as (host, memmap):
        uses = {"first": FIRST_PFN, "sections": sections, "used": sections}
        init = {"start": FIRST_PFN, "pages": sections * SECTION, "type": "private", "order": 0}
        for command, where in (("init", init), ("populate", uses)):
            host.ask("poison", byte=POISON, first=FIRST_PFN, pages=window)
            answer = host.ask(command, tree="patched", **where)
            left.append(memmap[: sections * SECTION * STRUCT_PAGE])
        host.ask("poison", byte=POISON, first=FIRST_PFN, pages=window)
        bound = host.ask("populate", tree="patched", **{**uses, "used": 0})
        unused = memmap[: sections * SECTION * STRUCT_PAGE]
        assert host.ask("populate", tree="base", **uses) == {"shares": "0"}
    assert not differences(*left)
    assert (answer["shares"], answer["flushes"]) == ("1", "1")
    assert (bound["shares"], bound["flushes"]) == ("1", "0")
    assert unused == bytes([POISON]) * len(unused)
