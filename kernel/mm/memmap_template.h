/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MEMMAP_TEMPLATE_H
#define _MM_MEMMAP_TEMPLATE_H

#include <linux/memcpy_streaming.h>
#include <linux/mm_types.h>
#include <linux/sched.h>

/**
 * enum memmap_init_mode - how the memory map of device memory is written
 * @MEMMAP_INIT_SLOW: every page is initialised by itself
 * @MEMMAP_INIT_TEMPLATE: an image is copied page by page, through the cache
 * @MEMMAP_INIT_STREAMING: the same with memcpy_streaming()
 * @MEMMAP_INIT_FILL: whole runs with memfill_streaming()
 *
 * All of them leave the same bytes.
 */
enum memmap_init_mode {
	MEMMAP_INIT_SLOW,
	MEMMAP_INIT_TEMPLATE,
	MEMMAP_INIT_STREAMING,
	MEMMAP_INIT_FILL,
};

/* Pages at the start of a run that make its template. */
#define MEMMAP_TEMPLATE_NR	2

#define MEMMAP_PAGE_WORDS	(sizeof(struct page) / sizeof(u64))

/**
 * struct memmap_template - the page that comes next, and how it advances
 * @mode: how it is written
 * @has_step: whether any word of @step is not 0
 * @image: the bytes of the page that comes next
 * @step: what each word of @image advances by from page to page
 */
struct memmap_template {
	enum memmap_init_mode mode;
	bool has_step;
	union {
		struct page page;
		u64 words[MEMMAP_PAGE_WORDS];
	} image;
	u64 step[MEMMAP_PAGE_WORDS];
};

#ifdef CONFIG_MEMMAP_TEMPLATE
int memmap_init_mode_set(const char *name);
const char *memmap_init_mode_name(enum memmap_init_mode mode);
void memmap_template_begin(struct memmap_template *t);
void memmap_template_repeat(struct memmap_template *t, struct page *page,
			    unsigned long pfn, unsigned long nr_pages);
#else
static inline const char *memmap_init_mode_name(enum memmap_init_mode mode)
{
	return "slow";
}

static inline void memmap_template_begin(struct memmap_template *t)
{
	t->mode = MEMMAP_INIT_SLOW;
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
