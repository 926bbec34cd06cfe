// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memmap of ordinary memory, hot-added or deferred at boot: the zone that the
 * memory goes to, and stand-ins for functions that the allocator calls.
 */
#include <linux/memblock.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/tracepoint-defs.h>
#include <linux/vmstat.h>

#include "glue.h"

NATIVE_OBJECTS("mm/mm_init.o", "mm/page_alloc.o", "mm/memory_hotplug.o", "mm/memmap_template.o",
	       "kernel/padata.o", "lib/list_debug.o");
/* The function that padata calls; the command boot calls it, too. On 6.12 it is the second. */
NATIVE_STATICS("deferred_init_memmap_job", "deferred_init_memmap_chunk");
/* Recomputing the watermarks needs the whole machine, so online_pages() leaves that out. */
NATIVE_REPLACED("mm/memory_hotplug.o:init_per_zone_wmark_min=native_nothing");

enum { NATIVE_MAX_FREE = 8 };

/* The ranges of PFNs that are free in memblock. */
static struct {
	unsigned int nr;
	unsigned long start[NATIVE_MAX_FREE], end[NATIVE_MAX_FREE];
} free_ranges;

/* On 6.12 padata calls another function. */
#ifdef for_each_free_mem_pfn_range_in_zone_from
#define deferred_init_memmap_job	deferred_init_memmap_chunk
#endif

/* Defined in the objects, but no header that modules can include declares them. */
void deferred_init_memmap_job(unsigned long start_pfn, unsigned long end_pfn,
			      void *arg);

struct pglist_data *node_data[MAX_NUMNODES];
DEFINE_PER_CPU(struct vm_event_state, vm_event_states);

/* Events, all of them inactive. */
struct tracepoint __tracepoint_mm_page_free;
struct tracepoint __tracepoint_mm_page_alloc_extfrag;
struct tracepoint __tracepoint_mm_setup_per_zone_lowmem_reserve;
struct tracepoint __tracepoint_mm_calculate_totalreserve_pages;

extern struct static_key_false check_pages_enabled;

/* Boot checks freed pages if it clears allocated ones. */
static void native_checks(struct native_request *r)
{
	check_pages_enabled.key.enabled.counter =
		IS_ENABLED(CONFIG_INIT_ON_ALLOC_DEFAULT_ON);
}
NATIVE_BOOT(native_checks);

/* One node. */

struct pglist_data *first_online_pgdat(void)
{
	return native_pgdat;
}

struct pglist_data *next_online_pgdat(struct pglist_data *pgdat)
{
	return NULL;
}

static struct zone *native_normal(void)
{
	return &native_pgdat->node_zones[ZONE_NORMAL];
}

/* Make an empty node, with an empty zone that spans PAGES pages from PFN START. */
static void native_zone(struct native_request *r, unsigned long start, unsigned long pages)
{
	unsigned int nid = native_number_or(r, "nid", 0);
	struct zone *zone = native_normal();
	unsigned int order, type;

	BUILD_BUG_ON(sizeof(*native_pgdat) > NATIVE_PGDAT_SIZE - 0x10000);

	memset(native_pgdat, 0, sizeof(*native_pgdat));
	atomic_long_set(&_totalram_pages, 0);
	native_pgdat->node_id = nid;
	node_data[nid] = native_pgdat;
	zone->zone_pgdat = native_pgdat;
	zone_set_nid(zone, nid);
	zone->zone_start_pfn = start;
	zone->spanned_pages = pages;
	zone->present_pages = pages;
	spin_lock_init(&zone->lock);
	for (order = 0; order < NR_PAGE_ORDERS; order++)
		for (type = 0; type < MIGRATE_TYPES; type++)
			INIT_LIST_HEAD(&zone->free_area[order].free_list[type]);
#ifdef CONFIG_UNACCEPTED_MEMORY
	INIT_LIST_HEAD(&zone->unaccepted_pages);
#endif
	zone->initialized = 1;
	native_need_memmap(r, start, pages);
	native_begin(start, pages, 0);
	*native_unaccepted() = native_number_or(r, "unaccepted", 0);
}

/* Only patched trees have these: in a base tree, hot-added pages are kept unless they go online. */
void __weak keep_pages_offline(struct page *page, unsigned long nr_pages);
void __weak online_kept_page(struct page *page, unsigned int order);

/* The pageblocks that the callback of a driver keeps offline, by their PFN. */
enum native_driver {
	DRIVER_NONE, DRIVER_ONLINES, DRIVER_KEEPS, DRIVER_KEEPS_ODD, DRIVER_HYPERV, DRIVER_FORGETS,
};
static enum native_driver native_driver;
static bool native_check;

static bool native_kept(unsigned long pfn)
{
	return native_driver == DRIVER_KEEPS ||
	       (native_driver == DRIVER_KEEPS_ODD && pfn / pageblock_nr_pages % 2);
}

/* The callback: brings those pages online that it does not keep, and may check all. */
static void native_online_page(struct page *page, unsigned int order)
{
	const bool fresh = keep_pages_offline;
	unsigned long i;

	/* In a patched tree, pages are not written before the driver says what it keeps. */
	for (i = 0; native_check && !fresh && i < 1UL << order; i++)
		if (!PageOffline(page + i) || page_count(page + i) != 1)
			native_fail("a page is in a state that no driver expects",
				    page_to_pfn(page + i));
	if (native_driver == DRIVER_FORGETS)
		return;
	/* hv_balloon brings pages online one by one in a base tree. */
	if (native_driver == DRIVER_HYPERV && !fresh) {
		for (i = 0; i < 1UL << order; i++)
			generic_online_page(page + i, 0);
		return;
	}
	if (native_driver == DRIVER_KEEPS_ODD && order > pageblock_order) {
		native_online_page(page, order - 1);
		native_online_page(page + (1UL << (order - 1)), order - 1);
	} else if (!native_kept(page_to_pfn(page))) {
		generic_online_page(page, order);
	} else if (fresh) {
		keep_pages_offline(page, 1UL << order);
	}
}

/* Brings the pages online that the driver has kept. */
static void native_online_kept(unsigned long pfn, unsigned long pages)
{
	unsigned long end = pfn + pages;

	for (; pfn < end; pfn += pageblock_nr_pages) {
		if (!native_kept(pfn))
			continue;
		if (online_kept_page)
			online_kept_page(pfn_to_page(pfn), pageblock_order);
		else
			generic_online_page(pfn_to_page(pfn), pageblock_order);
	}
}

/*
 * hotplug tree= start= pages= block= [nid=] [unaccepted=] [driver=] [check=] [back=]: adds memory to
 * an empty zone and brings it online, one block of BLOCK pages after the other.
 * Blocks are aligned, so the first one may be shorter. With driver=N the callback of
 * a driver decides which pages go online: a value of enum native_driver. With check=1 it looks
 * at each page first. With back=1 the pages
 * that it keeps go online once all blocks are. START + PAGES must be aligned to the
 * largest buddy, as the kernel demands. Answers init= and walk= (ns before and after
 * the notifiers) and events=.
 */
NATIVE_COMMAND(hotplug)
{
	unsigned long pfn = native_number(r, "start"), left = native_number(r, "pages");
	unsigned long block = native_number(r, "block"), start = pfn, pages = left, nr;
	long begun, *going_online = native_going_online(), init = 0, walk = 0;

	native_zone(r, pfn, left);
	native_driver = native_number_or(r, "driver", DRIVER_NONE);
	native_check = native_number_or(r, "check", 0);
	if (native_driver)
		set_online_page_callback(native_online_page);
	else
		restore_online_page_callback(native_online_page);
	for (; left; left -= nr, pfn += nr) {
		nr = min(block - pfn % block, left);
		*going_online = 0;
		begun = native_now();
		if (online_pages(pfn, nr, native_normal(), NULL))
			native_fail("a block does not go online", pfn);
		walk += native_now() - *going_online;
		init += *going_online - begun;
	}
	if (native_number_or(r, "back", 0))
		native_online_kept(start, pages);
	native_answer(r, "init", init);
	native_answer(r, "walk", walk);
	native_answer(r, "events", native_events);
}

/* Defined in the objects; the headers of mm/ that declare it are not for modules. */
void __free_pages_core(struct page *page, unsigned int order, enum meminit_context context);

/*
 * early tree= start= pages= order= [nid=] [unaccepted=]: frees reserved memory in chunks
 * of 2^ORDER pages, as boot does for memory that it does not defer. START and PAGES must
 * be multiples of a chunk. Answers events=.
 */
NATIVE_COMMAND(early)
{
	unsigned long start = native_number(r, "start"), pages = native_number(r, "pages");
	unsigned int order = native_number(r, "order"), nid = native_number_or(r, "nid", 0);
	unsigned long pfn;

	native_zone(r, start, pages);
	for (pfn = start; pfn < start + pages; pfn++) {
		struct page *page = pfn_to_page(pfn);

		mm_zero_struct_page(page);
		set_page_links(page, ZONE_NORMAL, nid, pfn);
		/* init_page_count() contains a tracepoint, which glue cannot use. */
		atomic_set(&page->_refcount, 1);
		atomic_set(&page->_mapcount, -1);
		INIT_LIST_HEAD(&page->lru);
		__SetPageReserved(page);
	}
	for (pfn = start; pfn < start + pages; pfn += 1UL << order)
		__free_pages_core(pfn_to_page(pfn), order, MEMINIT_EARLY);
	native_answer(r, "events", native_events);
}

/*
 * online tree= start= before= [early=]: brings the section at PFN START online, in a
 * zone in which the BEFORE sections below it are online. The command repeat has to map
 * the memmap of these before. A kernel marks the section as online at the end. With
 * early=1 it is marked at the beginning, so that a walk over the zone finds no hole.
 * Answers ns= and contiguous=, the flag of the zone.
 */
NATIVE_COMMAND(online)
{
	unsigned long start = native_number(r, "start"), before = native_number(r, "before");
	unsigned long present = SECTION_MARKED_PRESENT | SECTION_HAS_MEM_MAP;
	unsigned long early = native_number_or(r, "early", 0) ? SECTION_IS_ONLINE : 0;
	unsigned long below = before * PAGES_PER_SECTION, first = start - below;
	struct zone *zone = native_normal();
	long begun;

	/* All sections below share one memmap, so it is enough to bring the first one online. */
	if (before) {
		native_zone(r, first, PAGES_PER_SECTION);
		if (online_pages(first, PAGES_PER_SECTION, zone, NULL))
			native_fail("a block does not go online", first);
	}
	native_zone(r, first, below);
	/* A zone without pages would get per-CPU lists. */
	zone->present_pages = 1;
	native_begin(first, below, present | SECTION_IS_ONLINE);
	if (before)
		adjust_present_page_count(pfn_to_page(first), NULL, below);
	native_need_memmap(r, start, PAGES_PER_SECTION);
	native_begin(start, PAGES_PER_SECTION, present | early);
	begun = native_now();
	if (online_pages(start, PAGES_PER_SECTION, zone, NULL))
		native_fail("a block does not go online", start);
	native_answer(r, "ns", native_now() - begun);
	native_answer(r, "contiguous", zone->contiguous);
}

/* The sections of the range that the command add adds: a bit for each. */
static struct {
	unsigned long start, fails, present;
} sections;

/*
 * Defined here instead of in mm/sparse-vmemmap.c; no header that modules can include has the
 * second. A patched kernel passes a zone to the first, too, which is not used here: hence a
 * name that its header does not have.
 */
int native_add_section(int nid, unsigned long pfn, unsigned long nr_pages,
		       struct vmem_altmap *altmap, struct dev_pagemap *pgmap)
	__asm__("sparse_add_section");
void sparse_remove_section(unsigned long pfn, unsigned long nr_pages,
			   struct vmem_altmap *altmap, struct dev_pagemap *pgmap);

int native_add_section(int nid, unsigned long pfn, unsigned long nr_pages,
		       struct vmem_altmap *altmap, struct dev_pagemap *pgmap)
{
	unsigned long at = (pfn - sections.start) / PAGES_PER_SECTION;

	if (at == sections.fails)
		return -ENOMEM;
	sections.present |= 1UL << at;
	return 0;
}

void sparse_remove_section(unsigned long pfn, unsigned long nr_pages,
			   struct vmem_altmap *altmap, struct dev_pagemap *pgmap)
{
	unsigned long at = (pfn - sections.start) / PAGES_PER_SECTION;

	if (!(sections.present >> at & 1))
		native_fail("a section is removed that was not added", pfn);
	sections.present &= ~(1UL << at);
}

/* Reports what the kernel was going to print. */
void vmemmap_populate_print_last(void)
{
}

/*
 * add tree= start= pages= fails=: adds up to 64 sections of memory. Adding section
 * FAILS, from 0, fails. Answers failed=, 1 if the kernel says so, and present=, a bit
 * for each section that is there afterwards.
 */
NATIVE_COMMAND(add)
{
	unsigned long start = native_number(r, "start"), nr_pages = native_number(r, "pages");
	struct mhp_params params = { .pgprot = __pgprot(_PAGE_PRESENT) };

	sections.start = start;
	sections.fails = native_number(r, "fails");
	sections.present = 0;
	native_answer(r, "failed", __add_pages(0, start, nr_pages, &params) == -ENOMEM);
	native_answer(r, "present", sections.present);
}

/*
 * boot tree= start= pages= free0= end0= ... [nid=] [unaccepted=]: initialises and
 * frees memory as a thread of boot does. It does so for the ranges that are free in
 * memblock: up to eight, from PFN FREE0 up to but not including END0, FREE1 and so
 * on. Answers ns= and events=.
 */
NATIVE_COMMAND(boot)
{
	unsigned long start = native_number(r, "start"), end = start + native_number(r, "pages");
	char first[] = "free0", behind[] = "end0";
	unsigned long free;
	long begun;

	native_zone(r, start, end - start);
	for (free_ranges.nr = 0; free_ranges.nr < NATIVE_MAX_FREE; free_ranges.nr++) {
		first[4] = behind[3] = '0' + free_ranges.nr;
		free = native_number_or(r, first, 0);
		if (!free)
			break;
		free_ranges.start[free_ranges.nr] = free;
		free_ranges.end[free_ranges.nr] = native_number(r, behind);
	}
	begun = native_now();
	deferred_init_memmap_job(start, end, native_normal());
	native_answer(r, "ns", native_now() - begun);
	native_answer(r, "events", native_events);
}

static u64 native_hash(u64 hash, const void *data, size_t size)
{
	const u8 *bytes = data;

	while (size--)
		hash = (hash ^ *bytes++) * 0x100000001b3;
	return hash;
}

#define NATIVE_HASH(hash, field)	native_hash(hash, &(field), sizeof(field))

/*
 * zone tree=: answers hash=, FNV-1a over the free lists and the counters that the
 * last of these left, but not over other fields of the zone, which a tree may add.
 */
NATIVE_COMMAND(zone)
{
	const struct zone *zone = native_normal();
	u64 hash = 0xcbf29ce484222325;

	hash = NATIVE_HASH(hash, zone->free_area);
	hash = native_hash(hash, zone->vm_stat, (NR_FREE_CMA_PAGES + 1) * sizeof(*zone->vm_stat));
	hash = NATIVE_HASH(hash, zone->managed_pages);
	hash = NATIVE_HASH(hash, zone->present_pages);
	hash = NATIVE_HASH(hash, zone->spanned_pages);
	hash = NATIVE_HASH(hash, zone->zone_start_pfn);
	hash = NATIVE_HASH(hash, native_pgdat->node_present_pages);
	hash = NATIVE_HASH(hash, _totalram_pages);
	native_answer(r, "hash", hash);
}

/* Iterate over the free ranges of memblock. */
void __next_mem_range(u64 *i, int nid, enum memblock_flags flags,
		      struct memblock_type *memory, struct memblock_type *reserved,
		      phys_addr_t *start, phys_addr_t *end, int *node)
{
	if (*i >= free_ranges.nr) {
		*i = ULLONG_MAX;
		return;
	}
	*start = PFN_PHYS(free_ranges.start[*i]);
	*end = PFN_PHYS(free_ranges.end[*i]);
	++*i;
}

#ifdef for_each_free_mem_pfn_range_in_zone_from
/* The same on 6.12, for the ranges within the zone. */
void __next_mem_pfn_range_in_zone(u64 *i, struct zone *zone, unsigned long *start,
				  unsigned long *end)
{
	phys_addr_t first, behind;

	__next_mem_range(i, zone_to_nid(zone), MEMBLOCK_NONE, NULL, NULL, &first,
			 &behind, NULL);
	*start = *i == ULLONG_MAX ? ULONG_MAX : PHYS_PFN(first);
	*end = *i == ULLONG_MAX ? 0 : PHYS_PFN(behind);
}
#endif

/* Update the counter of the zone directly, without per-CPU counts. */
void __mod_zone_page_state(struct zone *zone, enum zone_stat_item item, long delta)
{
	atomic_long_add(delta, &zone->vm_stat[item]);
}
