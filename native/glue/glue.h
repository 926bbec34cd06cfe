/* SPDX-License-Identifier: GPL-2.0-only */
/* Helpers that glue/tree.c has for the workloads. */
#ifndef PAGEMINT_GLUE_H
#define PAGEMINT_GLUE_H

#include <linux/mmzone.h>

#include "native.h"

#define native_pgdat	((struct pglist_data *)NATIVE_PGDAT)

/* Events of page_ref_set since native_begin(). */
extern unsigned long native_events;

/*
 * Begin to bring pages up: their sections are there, with @map as section_mem_map
 * and no bit of a pageblock set. The command blocks tells of @nr_pages from @pfn on.
 */
void native_begin(unsigned long pfn, unsigned long nr_pages, unsigned long map);

#endif
