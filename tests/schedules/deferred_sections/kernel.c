// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's half: compiled as mm/deferred_sections.c is. It has one zone, the allocator's
 * uses of mm/deferred_sections.h, and stand-ins for the functions that the object calls.
 */
#include <linux/cleanup.h>
#include <linux/crash_reserve.h>
#include <linux/freezer.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/memblock.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/page_ext.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/suspend.h>
#include <linux/vmstat.h>

#include "deferred_sections.h"
#include "internal.h"
#include "mm_init.h"
#include "page_alloc.h"
#include "glue.h"

/* One node, one zone. Nothing but their fields that the object reads is set. */
static struct pglist_data node;
static struct zone *const zone = &node.node_zones[ZONE_NORMAL];
static unsigned long nr_irq_works;

/* Data that belong to other objects, and stay as they are. */
struct memblock memblock;
struct resource crashk_res;
struct cpuinfo_x86 boot_cpu_data;
unsigned long max_pfn = (FIRST_SECTION + NR_SECTIONS) * SECTION_PAGES;
struct static_key_false freezer_active, init_on_free, page_alloc_shuffle_key;
bool _page_poisoning_enabled_early;
kmem_buckets kmalloc_caches[NR_KMALLOC_TYPES];
unsigned long vmemmap_base;

/* These do nothing. */
void __init_waitqueue_head(struct wait_queue_head *w, const char *n, struct lock_class_key *k) {}
void init_wait_entry(struct wait_queue_entry *e, int flags) {}
long prepare_to_wait_event(struct wait_queue_head *w, struct wait_queue_entry *e, int s) { return 0; }
void finish_wait(struct wait_queue_head *w, struct wait_queue_entry *e) {}
int __wake_up(struct wait_queue_head *w, unsigned int m, int nr, void *key) { return 0; }
int _printk(const char *format, ...) { return 0; }
bool __refrigerator(bool check) { return false; }
bool freezing_slow_path(struct task_struct *p) { return false; }
bool set_freezable(void) { return false; }
void set_user_nice(struct task_struct *p, long nice) {}
int kthread_stop(struct task_struct *k) { return 0; }
int wake_up_process(struct task_struct *k) { return 1; }
void kfree(const void *p) {}
void kvfree(const void *p) {}
void mem_hotplug_begin(void) {}
void mem_hotplug_done(void) {}
int register_pm_notifier(struct notifier_block *nb) { return 0; }
bool page_ext_needed(void) { return false; }
bool range_contains_unaccepted_memory(phys_addr_t start, unsigned long size) { return false; }
void __ubsan_handle_shift_out_of_bounds(void *data, void *a, void *b) { user_fail("bad shift"); }
void __ubsan_handle_out_of_bounds(void *data, void *i) { user_fail("out of bounds"); }
void SetPageHWPoisonTakenOff(struct page *page) { set_page_private(page, 1); }

/* These stand in for something. */
int match_string(const char * const *array, size_t n, const char *string)
{
	for (size_t i = 0; i < n; i++)
		if (!__builtin_strcmp(array[i], string))
			return i;
	return -1;
}

struct pglist_data *first_online_pgdat(void)
{
	return &node;
}

struct zone *next_zone(struct zone *z)
{
	return z == &node.node_zones[MAX_NR_ZONES - 1] ? NULL : z + 1;
}

void *__kmalloc_cache_noprof(struct kmem_cache *s, gfp_t flags, size_t size)
{
	return user_zalloc(size);
}

void *__kvmalloc_node_noprof(DECL_KMALLOC_PARAMS(size, b, token), unsigned long align, gfp_t flags,
			     int nid)
{
	return user_zalloc(size);
}

static int (*thread_fn)(void *data);
static void *thread_data;

struct task_struct *kthread_create_on_node(int (*fn)(void *data), void *data, int nid,
					   const char *name, ...)
{
	thread_fn = fn;
	thread_data = data;
	return current;
}

/* The free memory: all of the zone but one section. */
void __next_mem_range(u64 *i, int nid, enum memblock_flags flags, struct memblock_type *a,
		      struct memblock_type *b, phys_addr_t *start, phys_addr_t *end, int *out)
{
	switch (*i) {
	case 0:
		*start = PFN_PHYS(FIRST_PFN);
		*end = PFN_PHYS(FIRST_PFN + HOLE * SECTION_PAGES);
		*i = 1;
		return;
	case 1:
		*start = PFN_PHYS(FIRST_PFN + (HOLE + 1) * SECTION_PAGES);
		*end = PFN_PHYS(FIRST_PFN + NR_SECTIONS * SECTION_PAGES);
		*i = 2;
		return;
	}
	*i = ULLONG_MAX;
}

void mod_zone_page_state(struct zone *z, enum zone_stat_item item, long delta)
{
	atomic_long_add(delta, &z->vm_stat[item]);
}

unsigned long _raw_spin_lock_irqsave(raw_spinlock_t *lock)
{
	user_lock(1);
	return 0;
}

void _raw_spin_unlock_irqrestore(raw_spinlock_t *lock, unsigned long flags)
{
	user_lock(0);
}

bool irq_work_queue(struct irq_work *work)
{
	__atomic_add_fetch(&nr_irq_works, 1, __ATOMIC_RELAXED);
	work->func(work);
	return true;
}

bool static_key_slow_inc(struct static_key *key)
{
	return true;
}

void static_key_slow_dec(struct static_key *key)
{
}

void schedule(void)
{
	user_sleep("schedule()");
}

signed long schedule_timeout_uninterruptible(signed long timeout)
{
	user_sleep("schedule_timeout_uninterruptible()");
	return 0;
}

unsigned long deferred_init_pages(struct zone *z, unsigned long pfn, unsigned long end_pfn)
{
	user_write(pfn, end_pfn - pfn);
	return end_pfn - pfn;
}

void deferred_free_pages(unsigned long pfn, unsigned long nr_pages)
{
	atomic_long_add(nr_pages, &zone->managed_pages);
	if (nr_pages == 1 && PageHWPoison(pfn_to_page(pfn)))
		return;		/* as __free_pages_prepare() says */
	user_free(pfn, nr_pages);
	mod_zone_page_state(zone, NR_FREE_PAGES, nr_pages);
}

void online_mem_sections(unsigned long pfn, unsigned long end_pfn)
{
	user_online(pfn);
}

void offline_mem_sections(unsigned long pfn, unsigned long end_pfn)
{
	user_offline(pfn);
}

/* The handler of deferred_init=, where a build renames the section .init.setup. */
extern const struct obs_kernel_param __start_init_setup[];

/* The tests call these. */
void glue_boot(void)
{
	__start_init_setup->setup_func("lazy");
	zone->zone_pgdat = &node;
	zone->zone_start_pfn = FIRST_PFN;
	zone->spanned_pages = NR_SECTIONS * SECTION_PAGES;
	zone->present_pages = zone->spanned_pages;
	zone->_watermark[WMARK_MIN] = MIN_WMARK;
	zone->_watermark[WMARK_LOW] = LOW_WMARK;
	vmemmap_base = (unsigned long)user_zalloc((FIRST_SECTION + NR_SECTIONS) * SECTION_PAGES *
						  sizeof(struct page));
	deferred_sections_setup();
	deferred_sections_set_apart(zone, FIRST_PFN);
	deferred_sections_start();
}

void glue_thread(void)
{
	thread_fn(thread_data);
}

long glue_free(void) { return atomic_long_read(&zone->vm_stat[NR_FREE_PAGES]); }
long glue_deferred(void) { return atomic_long_read(&zone->vm_stat[NR_DEFERRED]); }
long glue_managed(void) { return atomic_long_read(&zone->managed_pages); }
long glue_mark(void) { return READ_ONCE(zone->deferred_mark); }
int glue_has_deferred(void) { return zone_has_deferred(zone); }
int glue_is_deferred(unsigned long pfn) { return pfn_is_deferred(zone, pfn); }
int glue_grow(void) { return __deferred_sections_grow(zone); }
int glue_wait(void) { return __deferred_sections_wait(zone); }
int glue_poison(unsigned long pfn) { return deferred_sections_poison(pfn); }
int glue_page_poisoned(unsigned long pfn) { return PageHWPoison(pfn_to_page(pfn)); }
int glue_page_count(unsigned long pfn) { return page_ref_count(pfn_to_page(pfn)); }
unsigned long glue_irq_works(void) { return nr_irq_works; }
int glue_preempt_count(void) { return preempt_count(); }

void glue_add_free(long nr)
{
	mod_zone_page_state(zone, NR_FREE_PAGES, nr);
}

void glue_init_range(unsigned long pfn, unsigned long end_pfn)
{
	deferred_sections_init_range(pfn, end_pfn);
}

/* As get_page_from_freelist() has it, with the watermark that the slow path uses. */
int glue_try(unsigned int order, int atomic, int nolock)
{
	const gfp_t gfp = nolock ? __GFP_NOWARN : atomic ? GFP_ATOMIC : GFP_KERNEL;
	const int alloc_flags = nolock ? ALLOC_NOLOCK : atomic ? ALLOC_NON_BLOCK | ALLOC_MIN_RESERVE : 0;
	const long nr = 1L << order;
	long ready;

	if (zone_page_state(zone, NR_FREE_PAGES) < READ_ONCE(zone->deferred_mark) &&
	    !deferred_sections_keep_margin(zone, order, alloc_flags, gfp))
		return 0;
	if (glue_free() < (atomic || nolock ? MIN_WMARK / 2 : MIN_WMARK) + nr)
		return 0;
	/* rmqueue(): the buddy lists have what is free and not deferred. */
	do {
		ready = glue_free() - glue_deferred();
		if (ready >= nr) {
			glue_add_free(-nr);
			return 1;
		}
	} while (!nolock && __deferred_sections_grow(zone));
	return 0;
}
