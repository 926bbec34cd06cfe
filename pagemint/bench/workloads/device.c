// SPDX-License-Identifier: GPL-2.0-only
/* The memmap of device memory: memmap_init_zone_device(), as memremap_pages() calls it. */
#include <linux/memory_hotplug.h>
#include <linux/memremap.h>
#include <linux/mm.h>

#include "glue.h"

NATIVE_OBJECTS("mm/mm_init.o", "mm/page_alloc.o", "mm/memmap_template.o", "mm/memmap_threads.o",
	       "kernel/padata.o", "lib/list_debug.o");

static const char *const type_names[] = {
	[MEMORY_DEVICE_PRIVATE] = "private",
	[MEMORY_DEVICE_COHERENT] = "coherent",
	[MEMORY_DEVICE_FS_DAX] = "fsdax",
	[MEMORY_DEVICE_GENERIC] = "generic",
	[MEMORY_DEVICE_PCI_P2PDMA] = "pci_p2pdma",
};

/*
 * init tree= start= pages= type= order= [altmap=1 reserve= free=] [nid=] [early=]:
 * initialises the memmap of a device: PAGES pages from PFN START, with the pages of
 * the altmap, in compounds of that order. early=1 marks the sections as present
 * since boot. Answers ns=, events= (calls of page_ref_set) and threads=.
 */
NATIVE_COMMAND(init)
{
	struct dev_pagemap *pgmap = (void *)NATIVE_PGMAP;
	struct zone *zone = &native_pgdat->node_zones[ZONE_DEVICE];
	unsigned long start = native_number(r, "start"), pages = native_number(r, "pages");
	unsigned int order = native_number(r, "order");
	bool has_altmap = native_number_or(r, "altmap", 0);
	struct vmem_altmap altmap = {
		.base_pfn = start,
		.end_pfn = start + pages,
		.reserve = native_number_or(r, "reserve", 0),
		.free = native_number_or(r, "free", 0),
	};
	unsigned long queued = native_work_queued();
	long begun;

	BUILD_BUG_ON(sizeof(*pgmap) > NATIVE_PGMAP_SIZE);

	native_begin(start, pages + (1UL << order),
		     native_number_or(r, "early", 0) ? SECTION_IS_EARLY : 0);

	native_pgdat->node_id = native_number_or(r, "nid", 0);
	zone->zone_pgdat = native_pgdat;

	pgmap->type = native_choice(r, "type", type_names, ARRAY_SIZE(type_names));
	pgmap->vmemmap_shift = order;
	pgmap->flags = has_altmap ? PGMAP_ALTMAP_VALID : 0;
	memcpy(&pgmap->altmap, &altmap, sizeof(altmap));

	native_need_memmap(r, start, pages);
	begun = native_now();
	memmap_init_zone_device(zone, start, pages, pgmap);
	native_answer(r, "ns", native_now() - begun);
	native_answer(r, "events", native_events);
	native_answer(r, "threads", native_work_queued() - queued + 1);
}
