// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fast initialisation of the memmap of device memory, for stock kernels.
 *
 * ftrace redirects calls of memmap_init_zone_device() to this module. The
 * kernel's own code initialises the first two pages of each pageblock, and sets
 * its migratetype. If both pages are identical, to each other and to those of
 * the pageblocks before, the rest of the pageblock is filled with copies of
 * them. So the module need not know the layout of struct page. If the pages
 * differ, the kernel's own code initialises everything again.
 *
 * See docs/stock.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/memfill_streaming.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/module.h>
#include <linux/page_ref.h>
#include <linux/pageblock-flags.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/static_call.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/wait_bit.h>

#include <asm/nops.h>

#include "compat.h"
#include "fault.h"

#ifndef CONFIG_X86_64
#error "only x86-64 is supported"
#endif
#ifndef CONFIG_DYNAMIC_FTRACE_WITH_ARGS
#error "needs a kernel with CONFIG_DYNAMIC_FTRACE_WITH_ARGS"
#endif

#define FUNCTION "memmap_init_zone_device"

/* Pages at the start of each pageblock that the kernel's own code initialises. */
#define NR_OWN 2

/* The hooked function behind its fentry: a direct call, which IBT permits. */
DEFINE_STATIC_CALL_NULL(original, memmap_init_zone_device);

static bool enabled = true;
module_param(enabled, bool, 0644);
MODULE_PARM_DESC(enabled, "Y: fill; N: leave all calls to the kernel's own code");

static struct {
	atomic64_t calls;
	atomic64_t pages_filled;
	atomic64_t pages_original;	/* by the kernel's own code */
	atomic64_t mismatches;		/* calls that found pages which differ */
	atomic64_t microseconds;	/* of all calls */
} stats;

static int stat_set(const char *val, const struct kernel_param *kp)
{
	return -EPERM;
}

static int stat_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%lld\n", atomic64_read(kp->arg));
}

static const struct kernel_param_ops stat_ops = {
	.set = stat_set,
	.get = stat_get,
};

module_param_cb(calls, &stat_ops, &stats.calls, 0444);
MODULE_PARM_DESC(calls, "statistics: calls");
module_param_cb(pages_filled, &stat_ops, &stats.pages_filled, 0444);
MODULE_PARM_DESC(pages_filled, "statistics: pages that were filled");
module_param_cb(pages_original, &stat_ops, &stats.pages_original, 0444);
MODULE_PARM_DESC(pages_original, "statistics: pages left to the kernel's own code");
module_param_cb(mismatches, &stat_ops, &stats.mismatches, 0444);
MODULE_PARM_DESC(mismatches, "statistics: calls that found pages which differ");
module_param_cb(microseconds, &stat_ops, &stats.microseconds, 0444);
MODULE_PARM_DESC(microseconds, "statistics: time in all calls");

/* Calls under way, which unloading waits for. */
static atomic_t under_way;

/*
 * Let the kernel's own code initialise pages. It always starts behind the
 * altmap, whichever PFN it is given, so hide the altmap from it.
 *
 * memory_failure() can already find the pgmap, and may read its flags while the
 * altmap is hidden. It then takes a page of the altmap for one of the device,
 * marks it poisoned, and finds no process to kill: nobody can have mapped the
 * device yet. That page holds struct pages, so consuming the poison is fatal in
 * any case.
 */
static void init_own(struct zone *zone, unsigned long pfn,
		     unsigned long nr_pages, struct dev_pagemap *pgmap)
{
	const unsigned int flags = pgmap->flags;

	WRITE_ONCE(pgmap->flags, flags & ~PGMAP_ALTMAP_VALID);
	static_call(original)(zone, pfn, nr_pages, pgmap);
	WRITE_ONCE(pgmap->flags, flags);
}

/*
 * Initialise order-0 pages. Non-temporal stores need a fence on the CPU that
 * made them: there is one at the end of each section, before cond_resched(),
 * and one before return. If the task is preempted in between, the context
 * switch orders the stores: it takes the runqueue lock, and on x86 a locked
 * instruction orders non-temporal stores.
 *
 * Return: number of pages filled, or -1 if pages differ that should be alike.
 */
static long fill_range(struct zone *zone, unsigned long start_pfn,
		       unsigned long end_pfn, struct dev_pagemap *pgmap)
{
	unsigned long pfn, next;
	struct page image;
	long filled = 0;

	for (pfn = start_pfn; pfn < end_pfn; pfn = next) {
		struct page *page = pfn_to_page(pfn);
		unsigned long own;

		next = min(end_pfn, ALIGN(pfn + 1, pageblock_nr_pages));
		own = min_t(unsigned long, next - pfn, NR_OWN);
		init_own(zone, pfn, own, pgmap);

		if (pfn == start_pfn)
			image = *page;
		if (memcmp(page, &image, sizeof(image)) ||
		    memcmp(page + own - 1, &image, sizeof(image)) ||
		    fault_at("mismatch")) {
			filled = -1;
			break;
		}

		memfill_streaming(page + own, (u64 *)&image, NULL, sizeof(image),
				  next - pfn - own);
		filled += next - pfn - own;
		if (IS_ALIGNED(next, PAGES_PER_SECTION)) {
			memfill_streaming_drain();
			cond_resched();
		}
	}
	memfill_streaming_drain();
	return filled;
}

/* Whether this module can handle a call. */
static bool can_fill(struct zone *zone, const struct dev_pagemap *pgmap)
{
	/* Filled pages raise no events, and a trace must have every page. */
	if (page_ref_tracepoint_active(page_ref_set))
		return false;
	return READ_ONCE(enabled) && zone_idx(zone) == ZONE_DEVICE &&
	       pgmap && !pgmap->vmemmap_shift;
}

/* Return: true if all pages are initialised; if false, all must be initialised again. */
static bool try_fill(struct zone *zone, unsigned long start_pfn,
		     unsigned long nr_pages, struct dev_pagemap *pgmap)
{
	const unsigned long end_pfn = start_pfn + nr_pages;
	const struct vmem_altmap *altmap = pgmap_altmap(pgmap);
	long filled;

	/* The pages that hold the memmap are initialised already. */
	if (altmap)
		start_pfn = altmap->base_pfn + altmap->reserve + altmap->free;
	filled = fill_range(zone, start_pfn, end_pfn, pgmap);

	if (filled < 0) {
		atomic64_inc(&stats.mismatches);
		pr_warn_once("pages differ that should be alike: left to the kernel's own code\n");
		return false;
	}
	atomic64_add(filled, &stats.pages_filled);
	atomic64_add(end_pfn - start_pfn - filled, &stats.pages_original);
	return true;
}

/* Runs instead of the hooked function. */
static void replacement(struct zone *zone, unsigned long start_pfn,
			unsigned long nr_pages, struct dev_pagemap *pgmap)
{
	ktime_t start;

	atomic_inc(&under_way);
	start = ktime_get();
	fault_delay();

	if (!can_fill(zone, pgmap) ||
	    !try_fill(zone, start_pfn, nr_pages, pgmap)) {
		static_call(original)(zone, start_pfn, nr_pages, pgmap);
		atomic64_add(nr_pages, &stats.pages_original);
	}

	atomic64_inc(&stats.calls);
	atomic64_add(ktime_us_delta(ktime_get(), start), &stats.microseconds);
	if (atomic_dec_and_test(&under_way))
		wake_up_var(&under_way);
}

static void notrace hook(unsigned long ip, unsigned long parent_ip,
			 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	ftrace_regs_set_instruction_pointer(fregs, (unsigned long)replacement);
}

static struct ftrace_ops hook_ops = {
	.func = hook,
	.flags = FTRACE_OPS_FL_IPMODIFY,
};

/*
 * Find the fentry of the function with a disabled kprobe, which changes nothing
 * and knows whether its address is an ftrace site.
 *
 * Return: its address, or an error.
 */
static void __init *find_entry(void)
{
	static const u8 nop[MCOUNT_INSN_SIZE] = { BYTES_NOP5 };
	struct kprobe probe = {
		.symbol_name = fault_at("function") ? "-" : FUNCTION,
		.flags = KPROBE_FLAG_DISABLED,
	};
	bool traced;
	u8 *entry;
	int err;

	err = register_kprobe(&probe);
	if (err) {
		pr_err("this kernel has no " FUNCTION "() to hook (%d)\n", err);
		return ERR_PTR(err);
	}
	entry = (u8 *)probe.addr;
	traced = kprobe_ftrace(&probe);
	unregister_kprobe(&probe);

	/* If the function is traced, its nop is a call now. */
	if (!traced || fault_at("entry") ||
	    (memcmp(entry, nop, sizeof(nop)) && *entry != CALL_INSN_OPCODE)) {
		pr_err(FUNCTION "() begins with %5ph, which ftrace cannot hook\n",
		       entry);
		return ERR_PTR(-EOPNOTSUPP);
	}
	return entry;
}

static int __init add_hook(void *entry)
{
	int err;

	static_call_update(original, entry + MCOUNT_INSN_SIZE);
	err = fault_at("filter") ? -ENOMEM :
	      ftrace_set_filter_ip(&hook_ops, (unsigned long)entry, 0, 0);
	if (err) {
		pr_err("ftrace does not know " FUNCTION "() (%d)\n", err);
		return err;
	}

	err = fault_at("hook") ? -ENOMEM : register_ftrace_function(&hook_ops);
	if (err == -EBUSY)
		pr_err(FUNCTION "() is taken, by a livepatch or the like: remove that first\n");
	else if (err)
		pr_err("ftrace does not hook " FUNCTION "() (%d)\n", err);
	if (err)
		ftrace_set_filter_ip(&hook_ops, (unsigned long)entry, 1, 0);
	return err;
}

static void remove_hook(void)
{
	/* Fails only if ftrace has disabled itself, and then nothing is called. */
	WARN_ON(unregister_ftrace_function(&hook_ops));
	/* Every task past the hook is now in replacement() and counted in under_way. */
	synchronize_rcu_tasks();
	wait_var_event(&under_way, !atomic_read(&under_way));
	/* A task that is no longer counted may still be about to return from it. */
	synchronize_rcu_tasks();
	ftrace_free_filter(&hook_ops);
}

static int __init pagemint_init(void)
{
	void *entry;
	int err;

	if (IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KMSAN)) {
		pr_err("a kernel with KASAN or KMSAN must see every store\n");
		return -EOPNOTSUPP;
	}
	if (sizeof(struct page) != 64) {
		pr_err("struct page has %zu bytes, not 64\n",
		       sizeof(struct page));
		return -EOPNOTSUPP;
	}

	entry = find_entry();
	if (IS_ERR(entry))
		return PTR_ERR(entry);
	err = add_hook(entry);
	if (err)
		return err;
	if (fault_at("registered")) {
		remove_hook();
		return -ECANCELED;
	}
	return 0;
}
module_init(pagemint_init);

static void __exit pagemint_exit(void)
{
	remove_hook();
}
module_exit(pagemint_exit);

MODULE_DESCRIPTION("Fast initialisation of the memmap of device memory");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
