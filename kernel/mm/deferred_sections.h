/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_DEFERRED_SECTIONS_H
#define _MM_DEFERRED_SECTIONS_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/jump_label.h>
#include <linux/mmzone.h>
#include <linux/vmstat.h>
#include <linux/wait.h>

/**
 * struct deferred_sections - sections whose struct pages boot left unwritten
 * @zone: the zone that all of them belong to
 * @first: number of the section that bit 0 of each map stands for
 * @nr: bits in each map
 * @unclaimed: sections that nobody has begun to initialise
 * @unwritten: sections whose pages are not all in the allocator yet: those in
 *             @unclaimed, and those that someone is initialising
 * @nr_unclaimed: sections in @unclaimed
 * @nr_unwritten: sections in @unwritten
 * @wait: where @thread sleeps
 * @thread: initialises sections that nobody else has claimed
 *
 * Clearing a bit of @unclaimed takes that section, until its bit of @unwritten
 * is cleared. There is no lock, so that any context that may allocate may also
 * initialise a section. Nothing frees this structure.
 */
struct deferred_sections {
	struct zone *zone;
	unsigned long first;
	unsigned long nr;
	unsigned long *unclaimed;
	unsigned long *unwritten;
	atomic_long_t nr_unclaimed;
	atomic_long_t nr_unwritten;
	wait_queue_head_t wait;
	struct task_struct *thread;
};

#ifdef CONFIG_DEFERRED_SECTIONS
DECLARE_STATIC_KEY_FALSE(deferred_sections_left);

void deferred_sections_setup(void);
void deferred_sections_set_apart(struct zone *zone, unsigned long start_pfn);
void deferred_sections_start(void);
void deferred_sections_init_range(unsigned long start_pfn, unsigned long end_pfn);
bool __deferred_sections_grow(struct zone *zone, gfp_t gfp_mask);
void __deferred_sections_keep_margin(struct zone *zone, unsigned int order,
				     gfp_t gfp_mask);

static inline struct deferred_sections *zone_deferred(const struct zone *zone)
{
	/* Pairs with the releases in mm/deferred_sections.c. */
	return smp_load_acquire(&zone->deferred);
}

/**
 * pfn_is_deferred() - whether a page is in a section that is not written yet
 * @zone: the zone that would have the page
 * @pfn: its PFN
 *
 * Return: true if the section was set apart for @zone at boot and its pages are
 * not all in the allocator yet. Some of them may be, and may be in use: while the
 * section is being freed, it is online.
 */
static inline bool pfn_is_deferred(const struct zone *zone, unsigned long pfn)
{
	const struct deferred_sections *d = zone_deferred(zone);
	unsigned long bit;

	if (!d)
		return false;
	bit = pfn_to_section_nr(pfn) - d->first;
	return bit < d->nr && test_bit_acquire(bit, d->unwritten);
}

/* Whether some sections of a zone are not written yet. */
static inline bool zone_has_deferred(const struct zone *zone)
{
	const struct deferred_sections *d = zone_deferred(zone);

	return d && atomic_long_read_acquire(&d->nr_unwritten);
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

static inline bool __deferred_sections_grow(struct zone *zone, gfp_t gfp_mask)
{
	return false;
}

static inline void __deferred_sections_keep_margin(struct zone *zone,
						   unsigned int order,
						   gfp_t gfp_mask)
{
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

static inline bool deferred_sections_enabled(void)
{
	return false;
}
#endif /* CONFIG_DEFERRED_SECTIONS */

#endif /* _MM_DEFERRED_SECTIONS_H */
