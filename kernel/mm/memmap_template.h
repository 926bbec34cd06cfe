/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MEMMAP_TEMPLATE_H
#define _MM_MEMMAP_TEMPLATE_H

#include <linux/ktime.h>
#include <linux/memcpy_streaming.h>
#include <linux/mm_types.h>
#include <linux/sched.h>

#include "memmap_race.h"

/**
 * enum memmap_init_mode - how the memory map of device memory is written
 * @MEMMAP_INIT_SLOW: every page is initialised by itself
 * @MEMMAP_INIT_TEMPLATE: whole runs of an image, through the cache
 * @MEMMAP_INIT_STREAMING: an image page by page, with memcpy_streaming()
 * @MEMMAP_INIT_FILL: whole runs with memfill_streaming()
 * @MEMMAP_INIT_AUTO: @MEMMAP_INIT_TEMPLATE or @MEMMAP_INIT_FILL, as is faster
 *
 * All of them leave the same bytes.
 */
enum memmap_init_mode {
	MEMMAP_INIT_SLOW,
	MEMMAP_INIT_TEMPLATE,
	MEMMAP_INIT_STREAMING,
	MEMMAP_INIT_FILL,
	MEMMAP_INIT_AUTO,
};

/* Pages at the start of a run that make its template. */
#define MEMMAP_TEMPLATE_NR	2

#define MEMMAP_PAGE_WORDS	(sizeof(struct page) / sizeof(u64))

/*
 * Bytes of a memory map from which on a race pays. A smaller one fits into the
 * caches of a large CPU, where cached stores are faster and serve who comes
 * next; and what a race costs would be felt.
 */
#define MEMMAP_RACE_MIN		SZ_32M

/* Bytes that memmap_template_how() needs. */
#define MEMMAP_TEMPLATE_HOW	40

/**
 * struct memmap_template - the page that comes next, and how it advances
 * @mode: how it is written; in a race, how the chunk is that comes next
 * @chosen: whether @mode was chosen here, in MEMMAP_INIT_AUTO
 * @has_step: whether any word of @step is not 0
 * @image: the bytes of the page that comes next
 * @step: what each word of @image advances by from page to page
 * @race: decides on the mode; over where there is none
 * @chunk_left: pages left to write in a chunk of the race
 * @chunk_start: when that chunk was begun
 *
 * Until @race is over, the pages are written by one task in a row.
 */
struct memmap_template {
	enum memmap_init_mode mode;
	bool chosen;
	bool has_step;
	union {
		struct page page;
		u64 words[MEMMAP_PAGE_WORDS];
	} image;
	u64 step[MEMMAP_PAGE_WORDS];
	struct memmap_race race;
	unsigned long chunk_left;
	ktime_t chunk_start;
};

#ifdef CONFIG_MEMMAP_TEMPLATE
int memmap_init_mode_set(const char *name);
const char *memmap_init_mode_name(enum memmap_init_mode mode);
void memmap_template_begin(struct memmap_template *t, unsigned long nr_pages);
const char *memmap_template_how(const struct memmap_template *t, char *buf);
void memmap_template_end(const struct memmap_template *t, unsigned long pfn,
			 unsigned long nr_pages, s64 us);
void memmap_template_repeat(struct memmap_template *t, struct page *page,
			    unsigned long pfn, unsigned long nr_pages);
#else
static inline void memmap_template_begin(struct memmap_template *t,
					 unsigned long nr_pages)
{
	t->mode = MEMMAP_INIT_SLOW;
}

static inline const char *
memmap_template_how(const struct memmap_template *t, char *buf)
{
	return "slow";
}

static inline void memmap_template_end(const struct memmap_template *t,
				       unsigned long pfn,
				       unsigned long nr_pages, s64 us)
{
}

static inline void memmap_template_repeat(struct memmap_template *t,
					  struct page *page, unsigned long pfn,
					  unsigned long nr_pages)
{
}
#endif /* CONFIG_MEMMAP_TEMPLATE */

/**
 * memmap_template_drain - order what was written before what follows
 * @t: the template
 */
static inline void memmap_template_drain(const struct memmap_template *t)
{
	if (t->mode != MEMMAP_INIT_SLOW)
		memcpy_streaming_drain();
}

/**
 * memmap_template_resched - let others run between two sections
 * @t: the template
 *
 * Drains first. Where the task is preempted in between, the switch drains: it
 * takes the runqueue lock, and on x86 a locked instruction orders streaming
 * stores as a fence does. An architecture whose lock does not must have a
 * barrier in switch_to() that does.
 */
static inline void memmap_template_resched(const struct memmap_template *t)
{
	memmap_template_drain(t);
	cond_resched();
}

#endif /* _MM_MEMMAP_TEMPLATE_H */
