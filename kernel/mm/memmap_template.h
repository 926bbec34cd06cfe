/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MEMMAP_TEMPLATE_H
#define _MM_MEMMAP_TEMPLATE_H

#include <linux/memfill_streaming.h>
#include <linux/minmax.h>
#include <linux/mm_types.h>
#include <linux/sched.h>

/**
 * enum memmap_init_mode - how struct pages that are nearly identical are written
 * @MEMMAP_INIT_SLOW: one by one, field by field
 * @MEMMAP_INIT_CACHED: as copies of an image, through the cache
 * @MEMMAP_INIT_STREAMING: as copies of an image, with streaming stores
 *
 * All of them leave the same bytes.
 */
enum memmap_init_mode {
	MEMMAP_INIT_SLOW,
	MEMMAP_INIT_CACHED,
	MEMMAP_INIT_STREAMING,
};

#define MEMMAP_PAGE_WORDS	(sizeof(struct page) / sizeof(u64))

/*
 * Pages at the start of a unit that the slow path initialises. The last two
 * show how each further page differs from the one before. Before them, a
 * compound has the pages that struct folio overlaps.
 */
#define MEMMAP_RUN_IMAGES	2U
#define MEMMAP_COMPOUND_IMAGES	\
	(MEMMAP_RUN_IMAGES + (unsigned int)(sizeof(struct folio) / sizeof(struct page)))

/**
 * struct memmap_template - images of the struct pages of a range
 * @mode: how they are written
 * @nr_images: pages at the start of a unit that have an image
 * @nr_units: units that the images come from so far, at most 2
 * @image: the first pages of the first unit while @nr_units is 1; later those of
 *         the unit to be written next
 * @step: how much each word of @image grows from unit to unit
 *
 * A unit is a compound, or a whole run of single pages.
 */
struct memmap_template {
	enum memmap_init_mode mode;
	unsigned int nr_images;
	unsigned int nr_units;
	u64 image[MEMMAP_COMPOUND_IMAGES][MEMMAP_PAGE_WORDS];
	u64 step[MEMMAP_COMPOUND_IMAGES][MEMMAP_PAGE_WORDS];
};

#ifdef CONFIG_MEMMAP_TEMPLATE
int memmap_init_mode_set(const char *name);
enum memmap_init_mode memmap_init_mode_get(void);
void memmap_template_write(struct memmap_template *t, struct page *page,
			   unsigned long pfn, unsigned long nr_pages);
#else
static inline enum memmap_init_mode memmap_init_mode_get(void)
{
	return MEMMAP_INIT_SLOW;
}

static inline void memmap_template_write(struct memmap_template *t,
					 struct page *page, unsigned long pfn,
					 unsigned long nr_pages)
{
}
#endif /* CONFIG_MEMMAP_TEMPLATE */

/**
 * memmap_template_begin() - prepare for a range of units
 * @t: the template
 * @nr_images: MEMMAP_RUN_IMAGES or MEMMAP_COMPOUND_IMAGES
 */
static inline void memmap_template_begin(struct memmap_template *t,
					 unsigned int nr_images)
{
	t->mode = memmap_init_mode_get();
	t->nr_images = nr_images;
	t->nr_units = 0;
}

/**
 * memmap_template_nr_slow() - how many pages of the next unit have no image yet
 * @t: the template
 * @nr_pages: pages in the unit
 *
 * The caller initialises that many, from the first page on, before it passes the
 * unit to memmap_template_write(). They are all in MEMMAP_INIT_SLOW. Otherwise
 * they are the first few pages of the first two units.
 */
static inline unsigned long
memmap_template_nr_slow(const struct memmap_template *t, unsigned long nr_pages)
{
	if (t->mode == MEMMAP_INIT_SLOW)
		return nr_pages;
	return t->nr_units < 2 ? min(nr_pages, t->nr_images) : 0;
}

/**
 * memmap_template_drain() - order what was written before later stores
 * @t: the template
 *
 * Each thread drains before another CPU may read the pages, and before it
 * overwrites them with ordinary stores itself.
 */
static inline void memmap_template_drain(const struct memmap_template *t)
{
	if (t->mode != MEMMAP_INIT_SLOW)
		memfill_streaming_drain();
}

/**
 * memmap_template_resched() - let other tasks run between two sections
 * @t: the template
 *
 * Drains first: streaming stores are ordered by a drain on the CPU that made
 * them, and this task may continue on another one. It may also be preempted
 * between two drains. Then the context switch orders them, as it takes the
 * runqueue lock: on x86 by a locked instruction, which drains.
 */
static inline void memmap_template_resched(const struct memmap_template *t)
{
	memmap_template_drain(t);
	cond_resched();
}

#endif /* _MM_MEMMAP_TEMPLATE_H */
