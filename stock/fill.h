/* SPDX-License-Identifier: GPL-2.0 */
/* Fills the memmap of a device with copies of what the kernel's own code writes. */
#ifndef _PAGEMINT_FILL_H
#define _PAGEMINT_FILL_H

#include <linux/memremap.h>
#include <linux/mm_types.h>
#include <linux/types.h>

/* The first pages of a compound, which can differ from all others. */
#define NR_FIRST 4
/* The image of all other pages of a compound, and of all pages of order 0. */
#define REST NR_FIRST
#define NR_IMAGES (REST + 1)
#define WORDS_PER_PAGE (sizeof(struct page) / sizeof(u64))

/**
 * struct pattern - struct pages that recur with a step
 * @image: the first NR_FIRST struct pages, and one for all others
 * @step: what each word of an image advances by from one occurrence to the next
 */
struct pattern {
	u64 image[NR_IMAGES][WORDS_PER_PAGE];
	u64 step[NR_IMAGES][WORDS_PER_PAGE];
};

/**
 * struct fill - the memmap that one call initialises
 * @zone: argument of the call
 * @start_pfn: argument of the call
 * @pgmap: argument of the call
 * @first: the first PFN that is not the altmap's
 * @begin: the first PFN that is filled
 * @stop: the PFN behind the last that is filled
 * @end: the PFN behind the last
 * @order: order of the compounds, or 0
 * @nr_written: struct pages that are written of each compound, fewer than it has if they are
 *	deduplicated, or of each pageblock
 * @pages: the compounds, or the pages of order 0
 * @probe: the small compounds that the kernel's own code writes at the start of each pageblock
 * @moved: a copy of @pgmap, whose altmap can end anywhere
 */
struct fill {
	struct zone *zone;
	unsigned long start_pfn;
	struct dev_pagemap *pgmap;
	unsigned long first;
	unsigned long begin;
	unsigned long stop;
	unsigned long end;
	unsigned int order;
	unsigned long nr_written;
	struct pattern pages;
	struct pattern probe;
	struct dev_pagemap moved;
};

/**
 * can_fill() - find out whether this module knows how to fill a memmap
 * @fill: initialised from the other arguments
 * @zone: argument of the call
 * @start_pfn: argument of the call
 * @nr_pages: argument of the call
 * @pgmap: argument of the call
 *
 * Return: false if all is left to the kernel's own code.
 */
bool can_fill(struct fill *fill, struct zone *zone, unsigned long start_pfn,
	      unsigned long nr_pages, struct dev_pagemap *pgmap);

/**
 * fill_memmap() - initialise a memmap
 * @fill: from can_fill()
 *
 * Return: false if pages differ that should be alike: the kernel's own code must write all again.
 */
bool fill_memmap(struct fill *fill);

/**
 * verify_memmap() - compare a filled memmap with what the kernel's own code writes
 * @fill: the memmap; it is left as the kernel's own code writes it
 * @differences: struct pages that differ are added to it
 *
 * Return: pages whose struct pages were compared, shared ones among them; none if there is no
 *	memory for a copy of a compound's pages.
 */
unsigned long verify_memmap(struct fill *fill, unsigned long *differences);

#endif /* _PAGEMINT_FILL_H */
