/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_DEFERRED_SECTIONS_H
#define _MM_DEFERRED_SECTIONS_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/irq_work.h>
#include <linux/jump_label.h>
#include <linux/minmax.h>
#include <linux/mmzone.h>
#include <linux/vmstat.h>
#include <linux/wait.h>

/*
 * A chunk is what one task writes or frees at a time. It is one buddy of the highest
 * order, unless a section has more of these than a word has bits.
 */
#define DEFERRED_CHUNK_PAGES	MAX(MAX_ORDER_NR_PAGES, PAGES_PER_SECTION / BITS_PER_LONG)
#define DEFERRED_SECTION_CHUNKS	(PAGES_PER_SECTION / DEFERRED_CHUNK_PAGES)
#define DEFERRED_SECTION_MASK	GENMASK(DEFERRED_SECTION_CHUNKS - 1, 0)

/**
 * struct deferred_section - a section whose struct pages boot left unwritten
 * @to_write: chunks whose struct pages nobody has begun to write
 * @to_free: chunks that nobody has begun to free
 * @unwritten: chunks that are not written, and 1 until the section is online
 * @unfreed: chunks that are not in the allocator
 *
 * All are 0 if the section was not set apart, and in the end. Clearing a bit
 * takes that chunk. There is no lock, so that any context that may allocate may
 * also write and free chunks.
 */
struct deferred_section {
	unsigned long to_write;
	unsigned long to_free;
	atomic_t unwritten;
	atomic_t unfreed;
};

/**
 * struct deferred_sections - the deferred sections of a zone
 * @zone: the zone
 * @first: number of the first section in @section
 * @nr: sections in @section
 * @section: all sections of a range, with those that were not set apart
 * @next: the first section that may have chunks to free
 * @nr_unfreed: chunks of all sections that are not in the allocator
 * @growing: bit 0 is set while an allocation fills the zone up to its low watermark
 * @wait: where @thread sleeps
 * @wake: wakes it, from any context
 * @thread: initialises what nobody else has claimed
 *
 * Nothing frees this structure.
 */
struct deferred_sections {
	struct zone *zone;
	unsigned long first;
	unsigned long nr;
	struct deferred_section *section;
	struct deferred_section *next;
	atomic_long_t nr_unfreed;
	unsigned long growing;
	wait_queue_head_t wait;
	struct irq_work wake;
	struct task_struct *thread;
};

#ifdef CONFIG_DEFERRED_SECTIONS
DECLARE_STATIC_KEY_FALSE(deferred_sections_left);

void deferred_sections_setup(void);
void deferred_sections_set_apart(struct zone *zone, unsigned long start_pfn);
void deferred_sections_start(void);
void deferred_sections_init_range(unsigned long start_pfn, unsigned long end_pfn);
bool deferred_sections_poison(unsigned long pfn);
void deferred_sections_set_mark(struct zone *zone);
bool __deferred_sections_grow(struct zone *zone);
bool __deferred_sections_wait(struct zone *zone);
bool deferred_sections_keep_margin(struct zone *zone, unsigned int order,
				   int alloc_flags, gfp_t gfp_mask);

static inline struct deferred_sections *zone_deferred(const struct zone *zone)
{
	/* Pairs with the releases in mm/deferred_sections.c. */
	return smp_load_acquire(&zone->deferred);
}

/**
 * pfn_is_deferred() - whether a page is in a section that is not online yet
 * @zone: the zone that would have the page
 * @pfn: its PFN
 *
 * Return: true if the section was set apart for @zone at boot and is not online.
 */
static inline bool pfn_is_deferred(const struct zone *zone, unsigned long pfn)
{
	const struct deferred_sections *d = zone_deferred(zone);
	unsigned long i;

	if (!d)
		return false;
	i = pfn_to_section_nr(pfn) - d->first;
	return i < d->nr && atomic_read_acquire(&d->section[i].unwritten);
}

/* Whether some chunks of a zone are not in the allocator yet. */
static inline bool zone_has_deferred(const struct zone *zone)
{
	const struct deferred_sections *d = zone_deferred(zone);

	return d && atomic_long_read_acquire(&d->nr_unfreed);
}

static inline bool deferred_sections_enabled(void)
{
	return static_branch_unlikely(&deferred_sections_left);
}

/* Pages that count as free, but cannot be allocated yet. */
static inline unsigned long zone_deferred_pages(struct zone *zone)
{
	return deferred_sections_enabled() ? zone_page_state(zone, NR_DEFERRED) : 0;
}

/* Whether the free pages of a zone are so few that the deferred ones matter. */
static __always_inline bool zone_below_deferred_mark(struct zone *zone)
{
	return deferred_sections_enabled() &&
	       zone_page_state(zone, NR_FREE_PAGES) < READ_ONCE(zone->deferred_mark);
}
#else
static inline void deferred_sections_setup(void)
{
}

static inline void deferred_sections_set_apart(struct zone *zone,
					       unsigned long start_pfn)
{
}

static inline void deferred_sections_start(void)
{
}

static inline void deferred_sections_init_range(unsigned long start_pfn,
						unsigned long end_pfn)
{
}

static inline bool deferred_sections_poison(unsigned long pfn)
{
	return false;
}

static inline void deferred_sections_set_mark(struct zone *zone)
{
}

static inline bool __deferred_sections_grow(struct zone *zone)
{
	return false;
}

static inline bool __deferred_sections_wait(struct zone *zone)
{
	return false;
}

static inline bool deferred_sections_keep_margin(struct zone *zone,
						 unsigned int order,
						 int alloc_flags, gfp_t gfp_mask)
{
	return true;
}

static inline bool pfn_is_deferred(const struct zone *zone, unsigned long pfn)
{
	return false;
}

static inline bool zone_has_deferred(const struct zone *zone)
{
	return false;
}

static inline unsigned long zone_deferred_pages(struct zone *zone)
{
	return 0;
}

static inline bool zone_below_deferred_mark(struct zone *zone)
{
	return false;
}

static inline bool deferred_sections_enabled(void)
{
	return false;
}
#endif /* CONFIG_DEFERRED_SECTIONS */

#endif /* _MM_DEFERRED_SECTIONS_H */
