// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's own code writes the first two compounds, or the first two pages
 * of order 0. From these the module learns which words advance, and by how
 * much; it knows nothing of the layout of struct page. That code writes the
 * last compound too, and the module compares it with its images. It fills the
 * rest.
 *
 * At the start of each pageblock, the kernel's own code writes a probe: two
 * pages of order 0, or a compound of four pages. That sets the migratetype of
 * the pageblock. The probe is compared with the one that is expected there,
 * and overwritten. If any of this does not fit, the kernel's own code writes
 * the whole memmap again.
 */
#include <linux/memfill_streaming.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/page_ref.h>
#include <linux/pageblock-flags.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "fault.h"
#include "fill.h"
#include "hook.h"

#ifndef VMEMMAP_RESERVE_NR	/* before Linux 6.1.20 or so */
#define VMEMMAP_RESERVE_NR 2
#define vmemmap_can_optimize(altmap, pgmap) ((void)(pgmap), !(altmap))
#endif

#define PROBE_ORDER 2
#define NR_PROBE_0 2	/* pages of a probe of order 0 */

/* Learn an image from the first two places where it occurs. */
static void learn(struct pattern *pattern, unsigned int i,
		  const struct page *one, const struct page *other)
{
	const u64 *to = (const u64 *)other;
	unsigned int w;

	memcpy(pattern->image[i], one, sizeof(*one));
	for (w = 0; w < WORDS_PER_PAGE; w++)
		pattern->step[i][w] = to[w] - pattern->image[i][w];
}

static void image_at(u64 *image, const struct pattern *pattern, unsigned int i,
		     unsigned long occurrence)
{
	unsigned int w;

	for (w = 0; w < WORDS_PER_PAGE; w++)
		image[w] = pattern->image[i][w] + occurrence * pattern->step[i][w];
}

/* Return: whether all of these pages are copies of an image. */
static bool are_at(const struct page *page, unsigned long nr_pages,
		   const struct pattern *pattern, unsigned int i, unsigned long occurrence)
{
	u64 image[WORDS_PER_PAGE];

	image_at(image, pattern, i, occurrence);
	for (; nr_pages; nr_pages--, page++) {
		if (memcmp(page, image, sizeof(image)))
			return false;
	}
	return !fault_at("mismatch");
}

/* Return: whether the first pages of a compound are copies of their images. */
static bool first_are_at(const struct page *page, const struct pattern *pattern,
			 unsigned long occurrence)
{
	unsigned int i;

	for (i = 0; i < NR_FIRST; i++) {
		if (!are_at(page + i, 1, pattern, i, occurrence))
			return false;
	}
	return true;
}

/*
 * Let the kernel's own code write some pages, wherever they are. It writes
 * @nr_written struct pages: fewer than @nr_pages if @order is that of the memmap
 * and its compounds are deduplicated.
 *
 * memmap_init_zone_device() starts behind the altmap, whichever PFN it is given;
 * without one it deduplicates. So it gets a copy of the dev_pagemap, with an
 * altmap that ends where it is to start, or with none. It stores the address of
 * the copy in the pages. Until that is replaced, memory_failure() can read the
 * copy there, which is valid as long as this call; nobody else looks at a page
 * of a device that is being bound.
 */
static void write_as_kernel(struct fill *fill, unsigned long pfn, unsigned long nr_pages,
			    unsigned int order, unsigned long nr_written)
{
	const struct vmem_altmap altmap = { .base_pfn = pfn };
	struct dev_pagemap *moved = &fill->moved;
	u64 *word = (u64 *)pfn_to_page(pfn);
	unsigned long i;

	moved->vmemmap_shift = order;
	memcpy(&moved->altmap, &altmap, sizeof(altmap));
	if (nr_written == nr_pages)
		moved->flags |= PGMAP_ALTMAP_VALID;
	else
		moved->flags &= ~PGMAP_ALTMAP_VALID;
	static_call(pagemint_original)(fill->zone, pfn, nr_pages, moved);

	for (i = 0; i < nr_written * WORDS_PER_PAGE; i++) {
		if (word[i] == (unsigned long)moved)
			WRITE_ONCE(word[i], (unsigned long)fill->pgmap);
	}
}

/* Return: whether the kernel's own code writes what is expected of it here. */
static bool probe(struct fill *fill, unsigned long pfn, unsigned long next)
{
	const unsigned long nr = min_t(unsigned long, next - pfn, NR_PROBE_0);
	const unsigned long number = (pfn - fill->first) >> pageblock_order;
	const struct page *page = pfn_to_page(pfn);

	if (fill->order) {
		write_as_kernel(fill, pfn, NR_FIRST, PROBE_ORDER, NR_FIRST);
		return first_are_at(page, &fill->probe, number);
	}
	write_as_kernel(fill, pfn, nr, 0, nr);
	return are_at(page, nr, &fill->pages, REST, 0);
}

static void learn_probes(struct fill *fill)
{
	const struct page *one = pfn_to_page(fill->first);
	const struct page *other = one + pageblock_nr_pages;
	unsigned int i;

	write_as_kernel(fill, fill->first, NR_FIRST, PROBE_ORDER, NR_FIRST);
	write_as_kernel(fill, fill->first + pageblock_nr_pages, NR_FIRST, PROBE_ORDER, NR_FIRST);
	for (i = 0; i < NR_FIRST; i++)
		learn(&fill->probe, i, one + i, other + i);
}

/* Return: false if pages differ that should be alike. */
static bool learn_compounds(struct fill *fill)
{
	const struct page *one = pfn_to_page(fill->first);
	const struct page *other = one + (1UL << fill->order);
	const unsigned long nr = fill->nr_written - NR_FIRST;
	unsigned int i;

	for (i = 0; i < NR_FIRST; i++)
		learn(&fill->pages, i, one + i, other + i);
	learn(&fill->pages, REST, one + NR_FIRST, other + NR_FIRST);
	return are_at(one + NR_FIRST, nr, &fill->pages, REST, 0) &&
	       are_at(other + NR_FIRST, nr, &fill->pages, REST, 1);
}

/* Return: false if the last compound does not match the images. */
static bool write_last_compound(struct fill *fill)
{
	const unsigned long number = (fill->stop - fill->first) >> fill->order;
	const struct page *page = pfn_to_page(fill->stop);

	write_as_kernel(fill, fill->stop, 1UL << fill->order, fill->order,
			fill->nr_written);
	return first_are_at(page, &fill->pages, number) &&
	       are_at(page + NR_FIRST, fill->nr_written - NR_FIRST,
		      &fill->pages, REST, number);
}

/* Return: false if pages differ that should be alike. */
static bool learn_pages(struct fill *fill)
{
	const struct page *page = pfn_to_page(fill->first);

	learn(&fill->pages, REST, page, page);
	return are_at(page + 1, 1, &fill->pages, REST, 0);
}

/* Fill to the end of a pageblock at most; the compounds are no smaller. */
static void fill_pageblock(struct fill *fill, unsigned long pfn, unsigned long next)
{
	const unsigned long compound = (pfn - fill->first) >> fill->order;
	unsigned long nr = min(next - pfn, fill->nr_written);
	struct page *page = pfn_to_page(pfn);
	u64 image[WORDS_PER_PAGE];
	unsigned int i;

	if (fill->order && IS_ALIGNED(pfn - fill->first, 1UL << fill->order)) {
		for (i = 0; i < NR_FIRST; i++) {
			image_at(image, &fill->pages, i, compound);
			memfill_streaming(page + i, image, NULL, sizeof(image), 1);
		}
		page += NR_FIRST;
		nr -= NR_FIRST;
	}
	image_at(image, &fill->pages, REST, compound);
	if (fault_at("differ"))
		image[WORDS_PER_PAGE - 1] ^= 1;
	memfill_streaming(page, image, NULL, sizeof(image), nr);
}

bool can_fill(struct fill *fill, struct zone *zone, unsigned long start_pfn,
	      unsigned long nr_pages, struct dev_pagemap *pgmap)
{
	struct vmem_altmap *altmap = pgmap ? pgmap_altmap(pgmap) : NULL;
	unsigned long unit;

	/* Filled pages raise no events, and a trace must have every page. */
	if (!pgmap || zone_idx(zone) != ZONE_DEVICE ||
	    page_ref_tracepoint_active(page_ref_set))
		return false;

	fill->zone = zone;
	fill->start_pfn = start_pfn;
	fill->pgmap = pgmap;
	memcpy(&fill->moved, pgmap, sizeof(*pgmap));	/* it has const members */
	/* The pages that hold the memmap are initialised already. */
	fill->first = altmap ? altmap->base_pfn + altmap->reserve + altmap->free : start_pfn;
	fill->end = start_pfn + nr_pages;
	fill->order = pgmap->vmemmap_shift;
	unit = 1UL << fill->order;
	fill->nr_written = fill->order ? unit : pageblock_nr_pages;
	fill->begin = fill->first + 2 * unit;
	fill->stop = fill->end;
	if (!fill->order)
		return fill->begin < fill->stop;

	if (vmemmap_can_optimize(altmap, pgmap)) {
		/*
		 * A larger compound has too few struct pages to gain from. Only
		 * the first and the last section can have a memmap from boot,
		 * which is not deduplicated.
		 */
		if (unit != pageblock_nr_pages ||
		    early_section(__pfn_to_section(fill->first)) ||
		    early_section(__pfn_to_section(fill->end - 1)))
			return false;
		fill->nr_written = VMEMMAP_RESERVE_NR * (PAGE_SIZE / sizeof(struct page));
	}
	fill->stop = fill->end - unit;
	return fill->order >= pageblock_order && pageblock_order >= PROBE_ORDER &&
	       IS_ALIGNED(fill->first, unit) && IS_ALIGNED(fill->end, unit) &&
	       fill->begin < fill->stop;
}

bool fill_memmap(struct fill *fill)
{
	unsigned long pfn, next;

	if (fill->order)
		learn_probes(fill);
	static_call(pagemint_original)(fill->zone, fill->start_pfn,
				       fill->begin - fill->start_pfn, fill->pgmap);
	if (fill->order ? !learn_compounds(fill) || !write_last_compound(fill) :
			  !learn_pages(fill))
		return false;

	/*
	 * Streaming stores need a fence on the CPU that made them: there is one
	 * at the end of each section, before cond_resched(), and one before
	 * return. If the task is preempted in between, the context switch orders
	 * the stores: it takes the runqueue lock, and on x86 a locked
	 * instruction orders streaming stores.
	 */
	for (pfn = fill->begin; pfn < fill->stop; pfn = next) {
		next = min(fill->stop, ALIGN(pfn + 1, pageblock_nr_pages));
		if (pageblock_aligned(pfn) && !probe(fill, pfn, next)) {
			memfill_streaming_drain();
			return false;
		}
		fill_pageblock(fill, pfn, next);
		if (IS_ALIGNED(next, PAGES_PER_SECTION)) {
			memfill_streaming_drain();
			cond_resched();
		}
	}
	memfill_streaming_drain();
	return true;
}

unsigned long verify_memmap(struct fill *fill, unsigned long *differences)
{
	const unsigned long unit = fill->order ? 1UL << fill->order : pageblock_nr_pages;
	unsigned long pfn, next, i, nr_written;
	struct page *copy;

	copy = kvmalloc_array(unit, sizeof(*copy), GFP_KERNEL);
	if (!copy)
		return 0;
	for (pfn = fill->begin; pfn < fill->stop; pfn = next) {
		const struct page *page = pfn_to_page(pfn);

		next = fill->order ? pfn + unit : min(fill->stop, ALIGN(pfn + 1, unit));
		nr_written = min(next - pfn, fill->nr_written);
		memcpy(copy, page, nr_written * sizeof(*copy));
		write_as_kernel(fill, pfn, next - pfn, fill->order, nr_written);
		for (i = 0; i < nr_written; i++)
			*differences += !!memcmp(page + i, copy + i, sizeof(*copy));
		cond_resched();
	}
	kvfree(copy);
	return fill->stop - fill->begin;
}
