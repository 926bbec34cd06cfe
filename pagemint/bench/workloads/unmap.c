// SPDX-License-Identifier: GPL-2.0-only
/* Unmapping device memory: the order in which memunmap_pages() deletes, waits and removes. */
#include <linux/completion.h>
#include <linux/memory_hotplug.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/version.h>
#include <linux/xarray.h>

#include "glue.h"

NATIVE_OBJECTS("mm/memremap.o");
NATIVE_REPLACED("mm/memremap.o:remove_pfn_range_from_zone=native_zone_loses",
		"mm/memremap.o:__remove_pages=native_drop",
		"mm/memremap.o:mem_hotplug_begin=native_lock",
		"mm/memremap.o:mem_hotplug_done=native_unlock");

/* The steps of memunmap_pages(), as the answer numbers them. */
enum { UNMAP_DELETE, UNMAP_KILL, UNMAP_WAIT_RCU, UNMAP_WAIT_DONE, UNMAP_REMOVE, UNMAP_EXIT };

static struct native_request *unmapping;

static void unmap_step(long step, unsigned long pfn)
{
	const long said[] = { step, pfn };

	native_answer_item(unmapping, "step", said, ARRAY_SIZE(said));
}

void *xa_store_range(struct xarray *xa, unsigned long first, unsigned long last,
		     void *entry, gfp_t gfp)
{
	if (entry || last + 1 != first + PAGES_PER_SECTION)
		native_fail("xa_store_range() does not delete exactly one range", first);
	unmap_step(UNMAP_DELETE, first);
	return NULL;
}

void percpu_ref_kill_and_confirm(struct percpu_ref *ref, percpu_ref_func_t *confirm)
{
	unmap_step(UNMAP_KILL, 0);
}

void percpu_ref_exit(struct percpu_ref *ref)
{
	unmap_step(UNMAP_EXIT, 0);
}

void synchronize_rcu(void)
{
	unmap_step(UNMAP_WAIT_RCU, 0);
}

void wait_for_completion(struct completion *done)
{
	unmap_step(UNMAP_WAIT_DONE, 0);
}

/* The patched tree says every so often that it waits. */
unsigned long wait_for_completion_timeout(struct completion *done, unsigned long timeout)
{
	wait_for_completion(done);
	return timeout;
}

void native_lock(void)
{
}

void native_unlock(void)
{
}

void native_drop(unsigned long pfn, unsigned long nr_pages,
		 struct vmem_altmap *altmap, struct dev_pagemap *pgmap)
{
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)
void pfnmap_untrack(unsigned long pfn, unsigned long size)
{
}
#else
void untrack_pfn(struct vm_area_struct *vma, unsigned long pfn, unsigned long size,
		 bool mm_wr_locked)
{
}
#endif

void native_zone_loses(struct zone *zone, unsigned long pfn, unsigned long nr_pages)
{
	unmap_step(UNMAP_REMOVE, pfn);
}

/*
 * unmap tree= first= ranges=: unmaps device-private memory of RANGES sections, a range
 * each, the first one at PFN FIRST and each next one below it. Answers
 * step=STEP:PFN for each step of memunmap_pages(), in its order.
 */
NATIVE_COMMAND(unmap)
{
	unsigned long first = native_number(r, "first"), nr = native_number(r, "ranges"), i;
	struct dev_pagemap *pgmap = native_alloc(sizeof(*pgmap) + nr * sizeof(struct range));

	pgmap->type = MEMORY_DEVICE_PRIVATE;
	pgmap->nr_range = nr;
	for (i = 0; i < nr; i++, first -= PAGES_PER_SECTION) {
		native_need_memmap(r, first, PAGES_PER_SECTION);
		pgmap->ranges[i].start = PFN_PHYS(first);
		pgmap->ranges[i].end = PFN_PHYS(first + PAGES_PER_SECTION) - 1;
	}
	unmapping = r;
	memunmap_pages(pgmap);
}
