// SPDX-License-Identifier: GPL-2.0-only
/*
 * Boot memory whose struct pages are initialised after boot, or when they are
 * needed.
 *
 * See Documentation/mm/deferred_sections.rst.
 */
#define pr_fmt(fmt) "deferred_init: " fmt

#include <linux/bitmap.h>
#include <linux/crash_reserve.h>
#include <linux/freezer.h>
#include <linux/init.h>
#include <linux/kexec_handover.h>
#include <linux/kmemleak.h>
#include <linux/kthread.h>
#include <linux/memblock.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/page_ext.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/suspend.h>
#include <linux/vmstat.h>
#include <xen/xen.h>

#include "deferred_sections.h"
#include "mm_init.h"
#include "shuffle.h"

/**
 * enum deferred_init_mode - who initialises sections that are wholly free
 * @DEFERRED_INIT_EAGER: boot, before it goes on
 * @DEFERRED_INIT_BACKGROUND: a thread for each node, or allocations that need them first
 * @DEFERRED_INIT_LAZY: allocations that need them, and a thread that keeps a reserve
 */
enum deferred_init_mode {
	DEFERRED_INIT_EAGER,
	DEFERRED_INIT_BACKGROUND,
	DEFERRED_INIT_LAZY,
};

static const char * const deferred_init_mode_names[] = {
	[DEFERRED_INIT_EAGER]		= "eager",
	[DEFERRED_INIT_BACKGROUND]	= "background",
	[DEFERRED_INIT_LAZY]		= "lazy",
};

static enum deferred_init_mode deferred_init_mode __ro_after_init;

/* Counts the zones with sections that are not written yet, and never rises after boot. */
DEFINE_STATIC_KEY_FALSE(deferred_sections_left);

/*
 * Pages that the thread of a zone keeps above the low watermark, for those that
 * cannot initialise a section, or had better not: alloc_pages_nolock(), and
 * allocations in atomic context.
 */
#define DEFERRED_SECTIONS_RESERVE	PAGES_PER_SECTION

static int __init deferred_init_param(char *val)
{
	int mode;

	if (!val)
		return -EINVAL;
	mode = match_string(deferred_init_mode_names,
			    ARRAY_SIZE(deferred_init_mode_names), val);
	if (mode < 0)
		return mode;
	deferred_init_mode = mode;
	return 0;
}
early_param("deferred_init", deferred_init_param);

/*
 * Return the name of a feature that would touch all struct pages at the end of
 * boot, would make it expensive to free a section, or has not been tried.
 */
static const char * __init deferred_sections_obstacle(void)
{
	if (IS_ENABLED(CONFIG_KASAN))
		return "KASAN";
	if (page_ext_needed())
		return "page_ext";
	if (mem_alloc_profiling_enabled())
		return "memory allocation profiling";
	if (page_poisoning_enabled())
		return "page poisoning";
	if (debug_pagealloc_enabled())
		return "debug_pagealloc";
	if (want_init_on_free())
		return "init_on_free";
	if (IS_ENABLED(CONFIG_DEBUG_OBJECTS_FREE))
		return "debugobjects";
	if (is_shuffle_order(SHUFFLE_ORDER))
		return "page_alloc.shuffle";
	if (kho_is_enabled())
		return "kexec handover";
#ifdef CONFIG_CRASH_RESERVE
	if (crashk_res.end)
		return "crashkernel";
#endif
	if (IS_ENABLED(CONFIG_FA_DUMP))
		return "fadump";
	if (range_contains_unaccepted_memory(0, PFN_PHYS(max_pfn)))
		return "unaccepted memory";
	if (xen_pv_domain())
		return "Xen";
	return NULL;
}

/**
 * deferred_sections_setup() - decide whether boot leaves sections unwritten
 *
 * Called once, before any section is set apart.
 */
void __init deferred_sections_setup(void)
{
	const char *obstacle;

	if (deferred_init_mode == DEFERRED_INIT_EAGER)
		return;
	obstacle = deferred_sections_obstacle();
	if (!obstacle)
		return;
	pr_info("eager, because of %s\n", obstacle);
	deferred_init_mode = DEFERRED_INIT_EAGER;
}

/*
 * Deferred pages count as managed and as free. When their section is freed,
 * the allocator counts them again.
 */
static void deferred_sections_account(struct zone *zone, long nr_pages)
{
	atomic_long_add(nr_pages, &zone->managed_pages);
	mod_zone_page_state(zone, NR_FREE_PAGES, nr_pages);
	mod_zone_page_state(zone, NR_FREE_PAGES_BLOCKS, nr_pages);
	mod_zone_page_state(zone, NR_DEFERRED, nr_pages);
}

/* Become the owner of a section, if nobody else has. */
static bool deferred_sections_claim(struct deferred_sections *d, unsigned long bit)
{
	if (!test_and_clear_bit(bit, d->unclaimed))
		return false;
	atomic_long_dec(&d->nr_unclaimed);
	return true;
}

/*
 * Write the struct pages of a section and free its pages. The caller owns it.
 * No buddy lies in another section, so the neighbours need not be written.
 * The releases pair with the acquires of those who wait for it, or for all.
 */
static void deferred_sections_init(struct deferred_sections *d,
				   unsigned long bit)
{
	unsigned long pfn = section_nr_to_pfn(d->first + bit);
	const unsigned long end_pfn = pfn + PAGES_PER_SECTION;

	deferred_init_pages(d->zone, pfn, end_pfn);
	/* The struct pages come first. Pairs with pfn_to_online_page(). */
	smp_wmb();
	online_mem_sections(pfn, end_pfn);

	for (; pfn < end_pfn; pfn += MAX_ORDER_NR_PAGES) {
		deferred_free_pages(pfn, MAX_ORDER_NR_PAGES);
		deferred_sections_account(d->zone, -(long)MAX_ORDER_NR_PAGES);
	}

	clear_bit_unlock(bit, d->unwritten);
	atomic_long_dec_return_release(&d->nr_unwritten);
}

/* Claim and initialise any section. */
static bool deferred_sections_init_any(struct deferred_sections *d)
{
	unsigned long bit;

	while (atomic_long_read(&d->nr_unclaimed)) {
		bit = find_first_bit(d->unclaimed, d->nr);
		/* Another owner has cleared the last bit, and is about to lower the count. */
		if (bit >= d->nr)
			break;
		if (deferred_sections_claim(d, bit)) {
			deferred_sections_init(d, bit);
			return true;
		}
	}
	return false;
}

/*
 * Wait for other owners. A section takes a few milliseconds, unless its owner is
 * preempted. The owner wakes nobody, because it may hold any lock that an
 * allocation may be made under.
 */
static void deferred_sections_relax(void)
{
	schedule_timeout_uninterruptible(1);
}

/**
 * __deferred_sections_grow() - get more memory for a zone that ran out of it
 * @zone: the zone
 * @gfp_mask: flags of the allocation that failed
 *
 * Initialises one section. If others are initialising the last ones, waits for
 * them if @gfp_mask allows it.
 *
 * Return: true if the allocation should be tried again.
 */
bool __deferred_sections_grow(struct zone *zone, gfp_t gfp_mask)
{
	struct deferred_sections *d = zone_deferred(zone);

	if (!d)
		return false;
	if (deferred_sections_init_any(d))
		return true;
	if (!atomic_long_read_acquire(&d->nr_unwritten) ||
	    !gfpflags_allow_blocking(gfp_mask))
		return false;
	while (atomic_long_read_acquire(&d->nr_unwritten))
		deferred_sections_relax();
	return true;
}

/* Free pages that can be allocated before another section is initialised. */
static long deferred_sections_ready(struct zone *zone)
{
	return zone_page_state(zone, NR_FREE_PAGES) -
	       zone_page_state(zone, NR_FREE_CMA_PAGES) -
	       zone_page_state(zone, NR_DEFERRED) -
	       READ_ONCE(zone->nr_free_highatomic);
}

/* Whether the thread of a zone is to initialise more, or to end. */
static bool deferred_sections_short(const struct deferred_sections *d)
{
	return !atomic_long_read(&d->nr_unclaimed) ||
	       deferred_sections_ready(d->zone) <
	       (long)(low_wmark_pages(d->zone) + DEFERRED_SECTIONS_RESERVE);
}

/*
 * Wake the thread of a zone to fill its reserve. If it does not keep up, initialise
 * a section here, unless the caller is atomic: it may use the pages below the low
 * watermark. Not inlined, since most allocations find the reserve full.
 */
static noinline void deferred_sections_refill(struct deferred_sections *d,
					      unsigned int order, gfp_t gfp_mask)
{
	/* Without this flag the caller may hold a lock that a wake-up needs. */
	if (gfp_mask & __GFP_KSWAPD_RECLAIM) {
		/* If this comes too early, the next allocation wakes the thread. */
		if (waitqueue_active(&d->wait))
			wake_up(&d->wait);
		if (!gfpflags_allow_blocking(gfp_mask))
			return;
	} else if (gfp_mask & __GFP_HIGH) {
		return;
	}

	if (deferred_sections_ready(d->zone) <
	    (long)(low_wmark_pages(d->zone) + (1UL << order)))
		__deferred_sections_grow(d->zone, gfp_mask);
}

/**
 * __deferred_sections_keep_margin() - keep initialised pages above the low watermark
 * @zone: a zone that is about to be allocated from
 * @order: order of the allocation
 * @gfp_mask: its flags
 *
 * The watermarks count deferred pages as free. Keep a reserve beyond the low one.
 */
void __deferred_sections_keep_margin(struct zone *zone, unsigned int order,
				     gfp_t gfp_mask)
{
	struct deferred_sections *d = zone_deferred(zone);

	if (d && deferred_sections_short(d))
		deferred_sections_refill(d, order, gfp_mask);
}

/**
 * deferred_sections_init_range() - have the struct pages of a range initialised
 * @start_pfn: first PFN
 * @end_pfn: the PFN behind the last page
 *
 * On return no page of the range is deferred: those that were are in the
 * allocator. This is for callers that need all pages, not only those online.
 *
 * Context: may sleep.
 */
void deferred_sections_init_range(unsigned long start_pfn, unsigned long end_pfn)
{
	const unsigned long start = pfn_to_section_nr(start_pfn);
	const unsigned long end = pfn_to_section_nr(end_pfn - 1) + 1;
	struct deferred_sections *d;
	struct zone *zone;
	unsigned long nr;

	if (!deferred_sections_enabled())
		return;

	might_sleep();
	for_each_populated_zone(zone) {
		d = zone_deferred(zone);
		if (!d)
			continue;
		for (nr = max(start, d->first); nr < min(end, d->first + d->nr); nr++) {
			if (deferred_sections_claim(d, nr - d->first))
				deferred_sections_init(d, nr - d->first);
			while (test_bit_acquire(nr - d->first, d->unwritten))
				deferred_sections_relax();
			cond_resched();
		}
		/* The thread waits for the last section, too. */
		if (!atomic_long_read(&d->nr_unclaimed))
			wake_up(&d->wait);
	}
}

/* Initialise the sections of a zone: all at once, or when a reserve runs low. */
static int deferred_sections_thread(void *data)
{
	struct deferred_sections *d = data;
	struct zone *zone = d->zone;

	set_user_nice(current, MAX_NICE);
	set_freezable();
	do {
		if (deferred_init_mode == DEFERRED_INIT_LAZY)
			wait_event_freezable(d->wait, deferred_sections_short(d));
		try_to_freeze();
		cond_resched();
	} while (__deferred_sections_grow(zone, GFP_KERNEL));

	/* Nothing frees @d: others may still read it. */
	kmemleak_not_leak(d);
	/* Pairs with the acquire in zone_deferred(). */
	smp_store_release(&zone->deferred, NULL);
	static_branch_dec(&deferred_sections_left);

	/* Comes last: it can wait long, for memory that is going offline. */
	mem_hotplug_begin();
	set_zone_contiguous(zone);
	mem_hotplug_done();
	pr_info("node %d: all struct pages are initialised\n", zone_to_nid(zone));
	return 0;
}

/* Hibernation looks at all memory, so initialise all of it first. */
static int deferred_sections_pm_notify(struct notifier_block *nb,
				       unsigned long action, void *data)
{
	if (action == PM_HIBERNATION_PREPARE || action == PM_RESTORE_PREPARE)
		deferred_sections_init_range(0, max_pfn);
	return NOTIFY_OK;
}

static void __init deferred_sections_free(struct deferred_sections *d)
{
	if (!IS_ERR_OR_NULL(d->thread))
		kthread_stop(d->thread);
	bitmap_free(d->unclaimed);
	bitmap_free(d->unwritten);
	kfree(d);
}

static struct deferred_sections * __init
deferred_sections_alloc(struct zone *zone, unsigned long start_pfn)
{
	struct deferred_sections *d = kzalloc_obj(*d);
	const int nid = zone_to_nid(zone);

	if (!d)
		return NULL;
	d->zone = zone;
	d->first = pfn_to_section_nr(start_pfn);
	d->nr = pfn_to_section_nr(zone_end_pfn(zone) - 1) + 1 - d->first;
	d->unclaimed = bitmap_zalloc(d->nr, GFP_KERNEL);
	d->unwritten = bitmap_zalloc(d->nr, GFP_KERNEL);
	init_waitqueue_head(&d->wait);
	d->thread = kthread_create_on_node(deferred_sections_thread, d, nid,
					   "kdeferred%d", nid);
	if (d->unclaimed && d->unwritten && !IS_ERR(d->thread))
		return d;
	deferred_sections_free(d);
	return NULL;
}

/**
 * deferred_sections_set_apart() - leave the wholly free sections of a zone unwritten
 * @zone: the zone
 * @start_pfn: first PFN of the zone whose struct page is not initialised
 *
 * The caller initialises the other sections. They have a hole, an end of the memory,
 * or pages that memblock reserved, whose struct pages are initialised already.
 */
void __init deferred_sections_set_apart(struct zone *zone, unsigned long start_pfn)
{
	const unsigned long end_pfn = zone_end_pfn(zone);
	struct deferred_sections *d;
	phys_addr_t start, end;
	unsigned long nr = 0;
	u64 i;

	if (deferred_init_mode == DEFERRED_INIT_EAGER)
		return;
	d = deferred_sections_alloc(zone, start_pfn);
	if (!d) {
		pr_info("node %d: eager, because of a lack of memory\n",
			zone_to_nid(zone));
		return;
	}

	for_each_free_mem_range(i, zone_to_nid(zone), 0, &start, &end, NULL) {
		unsigned long pfn = SECTION_ALIGN_UP(max(PFN_UP(start), start_pfn));
		unsigned long epfn = SECTION_ALIGN_DOWN(min(PFN_DOWN(end), end_pfn));

		for (; pfn < epfn; pfn += PAGES_PER_SECTION, nr++) {
			__set_bit(pfn_to_section_nr(pfn) - d->first, d->unclaimed);
			offline_mem_sections(pfn, pfn + PAGES_PER_SECTION);
		}
	}
	if (!nr) {
		deferred_sections_free(d);
		return;
	}

	bitmap_copy(d->unwritten, d->unclaimed, d->nr);
	atomic_long_set(&d->nr_unclaimed, nr);
	atomic_long_set(&d->nr_unwritten, nr);
	deferred_sections_account(zone, nr * PAGES_PER_SECTION);
	/* Pairs with the acquire in zone_deferred(). */
	smp_store_release(&zone->deferred, d);
	pr_info("node %d: %lu of %lu sections are not initialised yet\n",
		zone_to_nid(zone), nr, d->nr);
}

/**
 * deferred_sections_start() - let sections be initialised
 *
 * Called once, when boot has set apart the sections of all zones and has initialised
 * all others. If one were claimed earlier, boot could initialise it once more.
 */
void __init deferred_sections_start(void)
{
	struct zone *zone;

	for_each_populated_zone(zone) {
		if (!zone_deferred(zone))
			continue;
		static_branch_inc(&deferred_sections_left);
		wake_up_process(zone_deferred(zone)->thread);
	}
	if (deferred_sections_enabled())
		pm_notifier(deferred_sections_pm_notify, 0);
}
