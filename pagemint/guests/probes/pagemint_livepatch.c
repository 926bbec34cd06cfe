// SPDX-License-Identifier: GPL-2.0-only
/*
 * A livepatch of memmap_init_zone_device(), which keeps the module for stock
 * kernels from loading. Bind nothing while it is on: its function does nothing.
 */
#include <linux/livepatch.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>

static void nothing(struct zone *zone, unsigned long start_pfn,
		    unsigned long nr_pages, struct dev_pagemap *pgmap)
{
}

static struct klp_func funcs[] = {
	{ .old_name = "memmap_init_zone_device", .new_func = nothing },
	{ }
};

static struct klp_object objects[] = {
	{ .funcs = funcs },
	{ }
};

static struct klp_patch patch = {
	.mod = THIS_MODULE,
	.objs = objects,
};

static int __init pagemint_livepatch_init(void)
{
	return klp_enable_patch(&patch);
}
module_init(pagemint_livepatch_init);

/* The kernel unloads a livepatch only after it has been disabled. */
static void __exit pagemint_livepatch_exit(void)
{
}
module_exit(pagemint_livepatch_exit);

MODULE_DESCRIPTION("A livepatch that keeps pagemint from loading");
MODULE_INFO(livepatch, "Y");
MODULE_LICENSE("GPL");
