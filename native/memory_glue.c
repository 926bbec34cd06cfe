// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel half of what brings up ordinary memory: the zone that it goes to,
 * and what the allocator asks of the rest of the kernel.
 */
#include <linux/memblock.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/tracepoint-defs.h>
#include <linux/vmstat.h>

#include "glue.h"
#include "native.h"

void native_zone(const struct native_memory *m);
void native_online(const struct native_memory *m);
void native_boot(const struct native_memory *m);
void native_checks(void);
void native_fail(const char *what, unsigned long addr);

/* On 6.12 padata calls another function. */
#ifdef for_each_free_mem_pfn_range_in_zone_from
#define deferred_init_memmap_job	deferred_init_memmap_chunk
#endif

/* In the objects; no header of modules has them. */
void deferred_init_memmap_job(unsigned long start_pfn, unsigned long end_pfn,
			      void *arg);

struct pglist_data *node_data[MAX_NUMNODES];
DEFINE_PER_CPU(struct vm_event_state, vm_event_states);

static const struct native_memory *booting;

/* Events that nobody traces. */
struct tracepoint __tracepoint_mm_page_free;
struct tracepoint __tracepoint_mm_page_alloc_extfrag;
struct tracepoint __tracepoint_mm_setup_per_zone_lowmem_reserve;
struct tracepoint __tracepoint_mm_calculate_totalreserve_pages;

extern struct static_key_false check_pages_enabled;

/* Boot has pages checked when they are freed, if it has them cleared when allocated. */
void native_checks(void)
{
	check_pages_enabled.key.enabled.counter =
		IS_ENABLED(CONFIG_INIT_ON_ALLOC_DEFAULT_ON);
}

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

/* An empty node, and an empty zone that spans the memory. */
void native_zone(const struct native_memory *m)
{
	struct zone *zone = native_normal();
	unsigned int order, type;

	BUILD_BUG_ON(sizeof(*native_pgdat) > NATIVE_PGDAT_SIZE);

	memset(native_pgdat, 0, sizeof(*native_pgdat));
	native_pgdat->node_id = m->nid;
	node_data[m->nid] = native_pgdat;
	zone->zone_pgdat = native_pgdat;
	zone_set_nid(zone, m->nid);
	zone->zone_start_pfn = m->start_pfn;
	zone->spanned_pages = m->nr_pages;
	zone->present_pages = m->nr_pages;
	spin_lock_init(&zone->lock);
	for (order = 0; order < NR_PAGE_ORDERS; order++)
		for (type = 0; type < MIGRATE_TYPES; type++)
			INIT_LIST_HEAD(&zone->free_area[order].free_list[type]);
#ifdef CONFIG_UNACCEPTED_MEMORY
	INIT_LIST_HEAD(&zone->unaccepted_pages);
#endif
	zone->initialized = 1;
	native_sections(m->start_pfn, m->start_pfn + m->nr_pages, 0);
}

/* What a driver's callback relies on; this one lets all pages go online. */
static void native_online_page(struct page *page, unsigned int order)
{
	unsigned long i;

	for (i = 0; i < 1UL << order; i++)
		if (!PageOffline(page + i) || page_count(page + i) != 1)
			native_fail("a page that is not as drivers know it",
				    page_to_pfn(page + i));
	generic_online_page(page, order);
}

/* Bring a block online, with or without the callback of a driver. */
void native_online(const struct native_memory *m)
{
	if (m->driver)
		set_online_page_callback(native_online_page);
	else
		restore_online_page_callback(native_online_page);
	if (online_pages(m->start_pfn, m->nr_pages, native_normal(), NULL))
		native_fail("a block that does not go online", m->start_pfn);
}

/* What one thread of boot does with deferred memory. */
void native_boot(const struct native_memory *m)
{
	booting = m;
	deferred_init_memmap_job(m->start_pfn, m->start_pfn + m->nr_pages,
				 native_normal());
}

/* The free ranges of memblock, one after the other. */
void __next_mem_range(u64 *i, int nid, enum memblock_flags flags,
		      struct memblock_type *memory, struct memblock_type *reserved,
		      phys_addr_t *start, phys_addr_t *end, int *node)
{
	if (*i >= booting->nr_free) {
		*i = ULLONG_MAX;
		return;
	}
	*start = PFN_PHYS(booting->free[*i][0]);
	*end = PFN_PHYS(booting->free[*i][1]);
	++*i;
}

#ifdef for_each_free_mem_pfn_range_in_zone_from
/* The same, of 6.12, which lie in the zone. */
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

/* Counted in the zone at once, and not in a CPU's share first. */
void __mod_zone_page_state(struct zone *zone, enum zone_stat_item item, long delta)
{
	atomic_long_add(delta, &zone->vm_stat[item]);
}
