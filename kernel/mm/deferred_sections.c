// SPDX-License-Identifier: GPL-2.0-only
/*
 * Boot memory whose struct pages are initialised after boot, or when they are
 * needed.
 *
 * See Documentation/mm/deferred_sections.rst.
 */
#define pr_fmt(fmt) "deferred_init: " fmt

#include <linux/bitops.h>
#include <linux/cleanup.h>
#include <linux/crash_reserve.h>
#include <linux/freezer.h>
#include <linux/init.h>
#include <linux/irq_work.h>
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
#include "internal.h"
#include "mm_init.h"
#include "page_alloc.h"
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
 * Keep the mark at which allocations and the thread look closer: the free pages of
 * a zone, without those that are deferred, in CMA or in highatomic pageblocks, are
 * to stay above its low watermark, and above the reserve beyond it. Pages of the
 * last two kinds count whether they are free or not: that can change at any time.
 * The zone lock is held.
 */
void deferred_sections_set_mark(struct zone *zone)
{
	struct deferred_sections *d = zone_deferred(zone);
	const unsigned long unfreed = d ? atomic_long_read(&d->nr_unfreed) : 0;
	unsigned long mark = 0;

	if (unfreed)
		mark = zone->_watermark[WMARK_LOW] + DEFERRED_SECTIONS_RESERVE +
		       unfreed * DEFERRED_CHUNK_PAGES +
		       zone_cma_pages(zone) + zone->nr_reserved_highatomic;
	WRITE_ONCE(zone->deferred_mark, mark);
}

/*
 * Deferred pages count as managed and as free. When their chunk is freed,
 * the allocator counts them again.
 */
static void deferred_sections_account(struct zone *zone, long nr_pages)
{
	atomic_long_add(nr_pages, &zone->managed_pages);
	mod_zone_page_state(zone, NR_FREE_PAGES, nr_pages);
	mod_zone_page_state(zone, NR_FREE_PAGES_BLOCKS, nr_pages);
	mod_zone_page_state(zone, NR_DEFERRED, nr_pages);
}

/* Take a chunk out of a mask, and return its number, or -1 if none is left. */
static int deferred_sections_claim(unsigned long *mask)
{
	unsigned long left;
	int chunk;

	while ((left = READ_ONCE(*mask))) {
		chunk = __ffs(left);
		if (test_and_clear_bit(chunk, mask))
			return chunk;
	}
	return -1;
}

static unsigned long deferred_sections_pfn(const struct deferred_sections *d,
					   const struct deferred_section *s,
					   int chunk)
{
	return section_nr_to_pfn(d->first + (s - d->section)) +
	       chunk * DEFERRED_CHUNK_PAGES;
}

/*
 * Write the struct pages of a chunk that nobody has claimed, if one is left. Who
 * writes the last one puts the section online.
 *
 * An owner is not preempted before it is done, so others may spin until it is,
 * whatever its priority.
 */
static bool deferred_sections_write_chunk(struct deferred_sections *d,
					  struct deferred_section *s)
{
	unsigned long pfn;
	int chunk;

	guard(preempt)();
	chunk = deferred_sections_claim(&s->to_write);
	if (chunk < 0)
		return false;
	pfn = deferred_sections_pfn(d, s, chunk);
	deferred_init_pages(d->zone, pfn, pfn + DEFERRED_CHUNK_PAGES);
	/* Orders the struct pages of all writers before the section is online. */
	if (atomic_dec_return(&s->unwritten) == 1) {
		pfn = deferred_sections_pfn(d, s, 0);
		online_mem_sections(pfn, pfn + PAGES_PER_SECTION);
		/* Pairs with the acquires of those who free chunks, or wait. */
		atomic_set_release(&s->unwritten, 0);
	}
	return true;
}

/* A chunk has been freed. The thread ends after the last one of its zone. */
static void deferred_sections_freed(struct deferred_sections *d,
				    struct deferred_section *s)
{
	deferred_sections_account(d->zone, -(long)DEFERRED_CHUNK_PAGES);
	atomic_dec_return_release(&s->unfreed);
	if (atomic_long_dec_and_test(&d->nr_unfreed))
		irq_work_queue(&d->wake);
	scoped_guard(spinlock_irqsave, &d->zone->lock)
		deferred_sections_set_mark(d->zone);
}

/*
 * Free a chunk of a section that is online, if one is left. No buddy lies in
 * another chunk.
 */
static bool deferred_sections_free_chunk(struct deferred_sections *d,
					 struct deferred_section *s)
{
	unsigned long pfn, i;
	int chunk;

	if (atomic_read_acquire(&s->unwritten))
		return false;
	chunk = deferred_sections_claim(&s->to_free);
	if (chunk < 0)
		return false;
	pfn = deferred_sections_pfn(d, s, chunk);
	for (i = 0; i < DEFERRED_CHUNK_PAGES; i += MAX_ORDER_NR_PAGES)
		deferred_free_pages(pfn + i, MAX_ORDER_NR_PAGES);
	deferred_sections_freed(d, s);
	return true;
}

/**
 * __deferred_sections_grow() - get more memory for a zone
 * @zone: the zone
 *
 * Frees what is left of a section that is online, or else helps to write the next
 * one. Stops when a chunk has been freed since the call, by anyone. Never waits.
 *
 * Return: true if one has been.
 */
bool __deferred_sections_grow(struct zone *zone)
{
	struct deferred_sections *d = zone_deferred(zone);
	struct deferred_section *s, *end;
	long unfreed;

	if (!d)
		return false;
	unfreed = atomic_long_read(&d->nr_unfreed);
	end = d->section + d->nr;
	for (s = READ_ONCE(d->next); s < end && !READ_ONCE(s->to_free); s++)
		;
	/* No bit is ever set again, so the sections before it are done with. */
	WRITE_ONCE(d->next, s);

	for (; s < end; s++) {
		while (atomic_long_read(&d->nr_unfreed) == unfreed &&
		       deferred_sections_write_chunk(d, s))
			;
		while (deferred_sections_free_chunk(d, s))
			;
		if (atomic_long_read(&d->nr_unfreed) != unfreed)
			return true;
	}
	return false;
}

/* Wait until a section is online whose last chunks others are writing. */
static void deferred_sections_wait_online(struct deferred_section *s)
{
	might_sleep();
	while (atomic_read_acquire(&s->unwritten))
		cpu_relax();
}

/**
 * __deferred_sections_wait() - wait for a section, rather than reclaim memory
 * @zone: the zone
 *
 * Waits for the writers of one section of which no chunk is left to help with: each
 * has at most one chunk, and is not preempted.
 *
 * Context: may sleep, so that no lock is held that an interrupt of a writer needs.
 * Return: true if there was such a section.
 */
bool __deferred_sections_wait(struct zone *zone)
{
	struct deferred_sections *d = zone_deferred(zone);
	struct deferred_section *s;

	if (!d)
		return false;
	for (s = READ_ONCE(d->next); s < d->section + d->nr; s++) {
		if (READ_ONCE(s->to_write) || !atomic_read(&s->unwritten))
			continue;
		deferred_sections_wait_online(s);
		return true;
	}
	return false;
}

/* Free pages that can be allocated before another section is initialised. */
static long deferred_sections_ready(struct zone *zone)
{
	return zone_page_state(zone, NR_FREE_PAGES) -
	       zone_page_state(zone, NR_FREE_CMA_PAGES) -
	       zone_page_state(zone, NR_DEFERRED) -
	       READ_ONCE(zone->nr_free_highatomic);
}

/**
 * deferred_sections_keep_margin() - keep initialised pages above the watermarks
 * @zone: a zone that is about to be allocated from, and is below its mark
 * @order: order of the allocation
 * @alloc_flags: its flags
 * @gfp_mask: its flags
 *
 * The watermarks count deferred pages as free. Wake the thread to fill its reserve.
 * If it does not keep up, initialise a section here: below the low watermark if
 * nobody else does, and below the min one in any case. Callers that are atomic
 * do not: they may use the pages below the watermarks.
 *
 * Return: false if the zone has only the pages below its min watermark, and others
 * are initialising all that is left. An allocation that may not use those looks
 * elsewhere.
 */
bool deferred_sections_keep_margin(struct zone *zone, unsigned int order,
				   int alloc_flags, gfp_t gfp_mask)
{
	struct deferred_sections *d = zone_deferred(zone);
	long ready;

	if (!d)
		return true;
	/* If this comes too early, the next allocation wakes the thread. */
	if (waitqueue_active(&d->wait))
		irq_work_queue(&d->wake);
	/* Light allocations of huge pages have none of these flags, and are not atomic. */
	if ((alloc_flags & ALLOC_NOLOCK) ||
	    (!gfpflags_allow_blocking(gfp_mask) &&
	     (gfp_mask & (__GFP_HIGH | __GFP_KSWAPD_RECLAIM))))
		return true;

	ready = deferred_sections_ready(zone) - (1L << order);
	if (ready < (long)zone->_watermark[WMARK_MIN])
		return __deferred_sections_grow(zone) ||
		       !atomic_long_read(&d->nr_unfreed) ||
		       (alloc_flags & (ALLOC_NO_WATERMARKS | ALLOC_RESERVES));
	if (ready < (long)zone->_watermark[WMARK_LOW] &&
	    !test_and_set_bit_lock(0, &d->growing)) {
		__deferred_sections_grow(zone);
		clear_bit_unlock(0, &d->growing);
	}
	return true;
}

/* Sleep a tick: a task that frees a chunk can be preempted. It wakes nobody. */
static void deferred_sections_relax(void)
{
	schedule_timeout_uninterruptible(1);
}

/* Write all of a section, and wait for others that do. */
static void deferred_sections_write_all(struct deferred_sections *d,
					struct deferred_section *s)
{
	while (deferred_sections_write_chunk(d, s))
		cond_resched();
	deferred_sections_wait_online(s);
}

static struct deferred_section *
deferred_sections_find(const struct deferred_sections *d, unsigned long pfn)
{
	const unsigned long i = pfn_to_section_nr(pfn) - d->first;

	return i < d->nr ? d->section + i : NULL;
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
	struct deferred_sections *d;
	struct deferred_section *s;
	struct zone *zone;
	unsigned long pfn;

	if (!deferred_sections_enabled())
		return;

	might_sleep();
	for_each_populated_zone(zone) {
		d = zone_deferred(zone);
		if (!d)
			continue;
		pfn = max(start_pfn, section_nr_to_pfn(d->first));
		for (; pfn < end_pfn; pfn = SECTION_ALIGN_UP(pfn + 1)) {
			s = deferred_sections_find(d, pfn);
			if (!s)
				break;
			deferred_sections_write_all(d, s);
			while (deferred_sections_free_chunk(d, s))
				cond_resched();
			while (atomic_read_acquire(&s->unfreed))
				deferred_sections_relax();
		}
	}
}

#ifdef CONFIG_MEMORY_FAILURE
/**
 * deferred_sections_poison() - keep a deferred page that is bad from the allocator
 * @pfn: its PFN
 *
 * Initialises the section of the page. The bad page is marked before its chunk is
 * freed, and left out, as if take_page_off_buddy() had taken it.
 *
 * Context: may sleep.
 * Return: false if the page is not deferred, or has been freed just now.
 */
bool deferred_sections_poison(unsigned long pfn)
{
	const int chunk = (pfn & ~PAGE_SECTION_MASK) / DEFERRED_CHUNK_PAGES;
	struct deferred_section *s = NULL;
	struct deferred_sections *d;
	struct page *page;
	struct zone *zone;
	unsigned long i;

	if (!deferred_sections_enabled())
		return false;

	for_each_populated_zone(zone) {
		d = zone_deferred(zone);
		s = d ? deferred_sections_find(d, pfn) : NULL;
		/* The chunk is ours from here on, whoever writes it. */
		if (s && test_and_clear_bit(chunk, &s->to_free))
			break;
		s = NULL;
	}
	if (s) {
		deferred_sections_write_all(d, s);
		page = pfn_to_page(pfn);
		SetPageHWPoison(page);
		/* The allocator takes no single page that is marked. */
		pfn = ALIGN_DOWN(pfn, DEFERRED_CHUNK_PAGES);
		for (i = 0; i < DEFERRED_CHUNK_PAGES; i++)
			deferred_free_pages(pfn + i, 1);
		SetPageHWPoisonTakenOff(page);
		page_ref_inc(page);
		deferred_sections_freed(d, s);
	}
	/* Leave no other chunk of the section behind. */
	deferred_sections_init_range(pfn, pfn + 1);
	return s;
}
#endif

static void deferred_sections_wake(struct irq_work *work)
{
	wake_up(&container_of(work, struct deferred_sections, wake)->wait);
}

/* Whether the thread of a zone is to initialise more, or to end. */
static bool deferred_sections_short(const struct deferred_sections *d)
{
	return !atomic_long_read(&d->nr_unfreed) ||
	       zone_page_state(d->zone, NR_FREE_PAGES) <
	       READ_ONCE(d->zone->deferred_mark);
}

/* Initialise the sections of a zone: all at once, or when a reserve runs low. */
static int deferred_sections_thread(void *data)
{
	struct deferred_sections *d = data;
	struct zone *zone = d->zone;

	/* The reserve is for those who cannot help themselves: fill it promptly. */
	if (deferred_init_mode != DEFERRED_INIT_LAZY)
		set_user_nice(current, MAX_NICE);
	set_freezable();
	do {
		if (deferred_init_mode == DEFERRED_INIT_LAZY)
			wait_event_freezable(d->wait, deferred_sections_short(d));
		try_to_freeze();
		/* Others may be busy with the last chunks. */
		if (__deferred_sections_grow(zone))
			cond_resched();
		else
			deferred_sections_relax();
	} while (atomic_long_read_acquire(&d->nr_unfreed));

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
	kvfree(d->section);
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
	d->section = kvzalloc_objs(*d->section, d->nr);
	d->next = d->section;
	init_waitqueue_head(&d->wait);
	init_irq_work(&d->wake, deferred_sections_wake);
	d->thread = kthread_create_on_node(deferred_sections_thread, d, nid,
					   "kdeferred%d", nid);
	if (d->section && !IS_ERR(d->thread))
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
	struct deferred_section *s;
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
			s = deferred_sections_find(d, pfn);
			s->to_write = DEFERRED_SECTION_MASK;
			s->to_free = DEFERRED_SECTION_MASK;
			atomic_set(&s->unwritten, DEFERRED_SECTION_CHUNKS + 1);
			atomic_set(&s->unfreed, DEFERRED_SECTION_CHUNKS);
			offline_mem_sections(pfn, pfn + PAGES_PER_SECTION);
		}
	}
	if (!nr) {
		deferred_sections_free(d);
		return;
	}

	atomic_long_set(&d->nr_unfreed, nr * DEFERRED_SECTION_CHUNKS);
	/* Pairs with the acquire in zone_deferred(). */
	smp_store_release(&zone->deferred, d);
	deferred_sections_account(zone, nr * PAGES_PER_SECTION);
	scoped_guard(spinlock_irqsave, &zone->lock)
		deferred_sections_set_mark(zone);
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
