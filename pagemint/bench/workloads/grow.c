// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sections that boot left uninitialised, and that allocations initialise one by one when
 * their zone runs out of memory.
 */
#include <linux/memory_hotplug.h>
#include <linux/mm.h>

#include "glue.h"

NATIVE_OBJECTS("mm/deferred_sections.o", "mm/mm_init.o", "mm/page_alloc.o",
	       "mm/memmap_template.o", "lib/find_bit.o");

#ifdef CONFIG_DEFERRED_SECTIONS
#include <../mm/deferred_sections.h>

void mod_zone_page_state(struct zone *zone, enum zone_stat_item item, long delta)
{
	__mod_zone_page_state(zone, item, delta);
}

/*
 * grow tree= start= sections=: initialises and frees SECTIONS sections from PFN START, a
 * multiple of a section, in the zone that the command boot has made. Answers grown=1 and
 * ns=; or grown=0 if the tree has no such code.
 */
NATIVE_COMMAND(grow)
{
	unsigned long start = native_number(r, "start"), nr = native_number(r, "sections"), i;
	struct zone *zone = &native_pgdat->node_zones[ZONE_NORMAL];
	struct deferred_section *section = native_alloc(nr * sizeof(*section));
	struct deferred_sections deferred = {
		.zone = zone,
		.first = pfn_to_section_nr(start),
		.nr = nr,
		.section = section,
		.next = section,
		.nr_unfreed = ATOMIC_LONG_INIT(nr * DEFERRED_SECTION_CHUNKS),
	};
	long nr_pages = nr * PAGES_PER_SECTION, begun;

	native_need_memmap(r, start, nr_pages);
	for (i = 0; i < nr; i++) {
		section[i].to_write = DEFERRED_SECTION_MASK;
		section[i].to_free = DEFERRED_SECTION_MASK;
		atomic_set(&section[i].unwritten, DEFERRED_SECTION_CHUNKS + 1);
		atomic_set(&section[i].unfreed, DEFERRED_SECTION_CHUNKS);
	}
	/* Deferred pages count as managed and as free. */
	atomic_long_add(nr_pages, &zone->managed_pages);
	__mod_zone_page_state(zone, NR_FREE_PAGES, nr_pages);
	__mod_zone_page_state(zone, NR_FREE_PAGES_BLOCKS, nr_pages);
	__mod_zone_page_state(zone, NR_DEFERRED, nr_pages);
	zone->deferred = &deferred;
	begun = native_now();
	for (i = 0; i < nr; i++)
		if (!__deferred_sections_grow(zone))
			native_fail("a zone with deferred sections does not grow", i);
	native_answer(r, "ns", native_now() - begun);
	if (__deferred_sections_grow(zone))
		native_fail("a zone without deferred sections grows", start);
	zone->deferred = NULL;
	native_answer(r, "grown", 1);
}
#else
NATIVE_COMMAND(grow)
{
	/* An argument that nobody reads is an error. */
	native_number(r, "start");
	native_number(r, "sections");
	native_answer(r, "grown", 0);
}
#endif
