/* SPDX-License-Identifier: GPL-2.0-only */
/* Helpers in glue/tree.c for the workloads. */
#ifndef PAGEMINT_GLUE_H
#define PAGEMINT_GLUE_H

#include <linux/mmzone.h>

#include "native.h"

/*
 * The free lists begin at the same address in each tree, whatever else struct
 * zone holds there: their addresses enter the pages on them.
 */
#define NATIVE_FREE_LISTS	(NATIVE_PGDAT + 0x10000UL)
#define native_pgdat	((struct pglist_data *)(NATIVE_FREE_LISTS -			\
			 offsetof(struct pglist_data, node_zones[ZONE_NORMAL].free_area)))

/* Number of page_ref_set events since native_begin(). */
extern unsigned long native_events;

/*
 * Make the sections of @nr_pages from @pfn on, with @map as section_mem_map and all
 * pageblock bits clear. Set the range that the command blocks reports on, and clear
 * native_events.
 */
void native_begin(unsigned long pfn, unsigned long nr_pages, unsigned long map);

#endif
