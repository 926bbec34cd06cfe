// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel half of the host program, compiled with the flags and headers of
 * the tree under test: builds what memmap_init_zone_device() is called with.
 */
#include <linux/memory_hotplug.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/tracepoint-defs.h>

#include "glue.h"
#include "native.h"

#define NATIVE_BLOCKS_SIZE	(PAGES_PER_SECTION / pageblock_nr_pages * NR_PAGEBLOCK_BITS / 8)
#define NATIVE_SECTIONS	DIV_ROUND_UP(1UL << (44 - PAGE_SHIFT), PAGES_PER_SECTION)

void *native_alloc(unsigned long size);
unsigned int native_block(unsigned long pfn);
void native_init(const struct native_case *c);
unsigned long native_page_size(void);
void native_trace(int active);

/* Calls of the page_ref_set event. */
unsigned long native_events;

unsigned long vmemmap_base = NATIVE_VMEMMAP;
unsigned long __highest_present_section_nr = NATIVE_SECTIONS - 1;
struct mem_section **mem_section;

/* The section of a PFN, which is there, with its pageblocks, from its first use on. */
static struct mem_section *native_section(unsigned long pfn)
{
	unsigned long nr = pfn_to_section_nr(pfn);
	unsigned long root = SECTION_NR_TO_ROOT(nr);
	struct mem_section *ms;

	if (!mem_section)
		mem_section = native_alloc(SECTION_NR_TO_ROOT(NATIVE_SECTIONS) *
					   sizeof(*mem_section));
	if (!mem_section[root])
		mem_section[root] = native_alloc(SECTIONS_PER_ROOT *
						 sizeof(**mem_section));
	ms = &mem_section[root][nr & SECTION_ROOT_MASK];
	if (!ms->usage)
		ms->usage = native_alloc(sizeof(*ms->usage) + NATIVE_BLOCKS_SIZE);
	return ms;
}

/* Sections anew, their pageblocks with no bit set: from @pfn to the one of @end_pfn. */
void native_sections(unsigned long pfn, unsigned long end_pfn, unsigned long map)
{
	struct mem_section *ms;

	for (pfn = ALIGN_DOWN(pfn, PAGES_PER_SECTION); pfn <= end_pfn;
	     pfn += PAGES_PER_SECTION) {
		ms = native_section(pfn);
		ms->section_mem_map = map;
		memset(ms->usage->pageblock_flags, 0, NATIVE_BLOCKS_SIZE);
	}
}

/* The bits of a pageblock; on 6.12 half as many. */
unsigned int native_block(unsigned long pfn)
{
	const u8 *bits = (const u8 *)native_section(pfn)->usage->pageblock_flags;
	unsigned int at = ((pfn % PAGES_PER_SECTION) >> pageblock_order) * NR_PAGEBLOCK_BITS;
	unsigned int block = bits[at / 8] >> at % 8 & (BIT(NR_PAGEBLOCK_BITS) - 1);

#ifdef PB_migratetype_bits
	BUILD_BUG_ON(MIGRATETYPE_MASK != NATIVE_MIGRATETYPE);
	/* There, isolated is a type, which online_pages() makes movable in the end. */
	if ((block & MIGRATETYPE_MASK) == MIGRATE_ISOLATE)
		block = MIGRATE_MOVABLE | NATIVE_ISOLATED;
#else
	BUILD_BUG_ON(PAGEBLOCK_MIGRATETYPE_MASK != NATIVE_MIGRATETYPE);
	BUILD_BUG_ON(BIT(PB_migrate_isolate) != NATIVE_ISOLATED);
#endif
	return block;
}

void native_init(const struct native_case *c)
{
	struct dev_pagemap *pgmap = (void *)NATIVE_PGMAP;
	struct zone *zone = &native_pgdat->node_zones[ZONE_DEVICE];
	struct vmem_altmap altmap = {
		.base_pfn = c->start_pfn,
		.end_pfn = c->start_pfn + c->nr_pages,
		.reserve = c->altmap_reserve,
		.free = c->altmap_free,
	};

	BUILD_BUG_ON(sizeof(*pgmap) > NATIVE_PGMAP_SIZE);

	native_sections(c->start_pfn, c->start_pfn + c->nr_pages + (1UL << c->order),
			c->early ? SECTION_IS_EARLY : 0);

	native_pgdat->node_id = c->nid;
	zone->zone_pgdat = native_pgdat;

	pgmap->type = c->type;
	pgmap->vmemmap_shift = c->order;
	pgmap->flags = c->altmap ? PGMAP_ALTMAP_VALID : 0;
	memcpy(&pgmap->altmap, &altmap, sizeof(altmap));

	memmap_init_zone_device(zone, c->start_pfn, c->nr_pages, pgmap);
}

unsigned long native_page_size(void)
{
	return sizeof(struct page);
}

#ifdef CONFIG_DEBUG_PAGE_REF
struct tracepoint __tracepoint_page_ref_set;

void __page_ref_set(struct page *page, int v)
{
	native_events++;
}
#endif

/* Have the page_ref_set event active or not; comes before the branches are patched. */
void native_trace(int active)
{
#ifdef CONFIG_DEBUG_PAGE_REF
	/* The key is a static_key on 6.12, and begins with one on later lines. */
	((struct static_key *)&__tracepoint_page_ref_set.key)->enabled.counter = active;
#endif
}
