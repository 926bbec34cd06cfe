// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fast initialisation of the memmap of device memory, for stock kernels.
 *
 * See docs/stock.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "fault.h"
#include "fill.h"
#include "hook.h"

static bool enabled = true;
module_param(enabled, bool, 0644);
MODULE_PARM_DESC(enabled, "Y: fill; N: leave all calls to the kernel's own code");

static bool verify;
module_param(verify, bool, 0644);
MODULE_PARM_DESC(verify, "Y: compare all that is filled with what the kernel's own code writes");

static bool force;
module_param(force, bool, 0444);
MODULE_PARM_DESC(force, "Y: load even if the kernel's own code is as fast");

static struct {
	atomic64_t calls;
	atomic64_t pages_filled;
	atomic64_t pages_original;	/* by the kernel's own code */
	atomic64_t pages_verified;
	atomic64_t mismatches;		/* calls that found pages which differ */
	atomic64_t differences;		/* struct pages that differ, if verified */
	atomic64_t microseconds;	/* of all calls, without verification */
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
module_param_cb(pages_verified, &stat_ops, &stats.pages_verified, 0444);
MODULE_PARM_DESC(pages_verified, "statistics: filled pages that were verified");
module_param_cb(mismatches, &stat_ops, &stats.mismatches, 0444);
MODULE_PARM_DESC(mismatches, "statistics: calls that found pages which differ");
module_param_cb(differences, &stat_ops, &stats.differences, 0444);
MODULE_PARM_DESC(differences, "statistics: verified pages that differ");
module_param_cb(microseconds, &stat_ops, &stats.microseconds, 0444);
MODULE_PARM_DESC(microseconds, "statistics: time in all calls, without verification");

/* Return: false if the caller has to initialise the whole memmap. */
static bool try_fill(struct fill *fill)
{
	if (fill_memmap(fill)) {
		atomic64_add(fill->stop - fill->begin, &stats.pages_filled);
		atomic64_add(fill->begin - fill->first + fill->end - fill->stop,
			     &stats.pages_original);
		return true;
	}
	atomic64_inc(&stats.mismatches);
	pr_warn_once("unexpected struct pages: left to the kernel's own code\n");
	return false;
}

static void verify_fill(struct fill *fill)
{
	unsigned long differences = 0;

	atomic64_add(verify_memmap(fill, &differences), &stats.pages_verified);
	atomic64_add(differences, &stats.differences);
	if (differences)
		pr_err("%lu filled pages differ from what the kernel's own code writes\n",
		       differences);
}

/* Runs instead of memmap_init_zone_device(). */
static void init_memmap(struct zone *zone, unsigned long start_pfn,
			unsigned long nr_pages, struct dev_pagemap *pgmap)
{
	struct fill *fill = READ_ONCE(enabled) ? kmalloc(sizeof(*fill), GFP_KERNEL) : NULL;
	ktime_t start = ktime_get();
	bool filled;

	if (fault_at("slow"))
		msleep(1000);

	filled = fill && can_fill(fill, zone, start_pfn, nr_pages, pgmap) && try_fill(fill);
	if (!filled) {
		static_call(pagemint_original)(zone, start_pfn, nr_pages, pgmap);
		atomic64_add(nr_pages, &stats.pages_original);
	}

	atomic64_inc(&stats.calls);
	atomic64_add(ktime_us_delta(ktime_get(), start), &stats.microseconds);
	if (filled && READ_ONCE(verify))
		verify_fill(fill);
	kfree(fill);
}

static int __init pagemint_init(void)
{
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

	if (KERNEL_IS_FAST && !force) {
		pr_info("this kernel is as fast by itself; force=1 loads the module anyway\n");
		return -EOPNOTSUPP;
	}

	err = add_hook(init_memmap);
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
MODULE_VERSION("0.2.0");
MODULE_LICENSE("GPL");
