/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the halves of the host program say to each other: the glue, compiled as
 * kernel code once for each tree, and the rest, which is plain C.
 */
#ifndef PAGEMINT_NATIVE_H
#define PAGEMINT_NATIVE_H

/* pfn_to_page(0), aligned for the largest compound that there is. */
#define NATIVE_VMEMMAP		(1UL << 44)
/* The dev_pagemap: its address enters every page. */
#define NATIVE_PGMAP		0x50000000UL
#define NATIVE_PGMAP_SIZE	4096UL
/* Symbols without a stand-in: each a page that cannot be touched. */
#define NATIVE_TRAPS		0x60000000UL
#define NATIVE_TRAP_SIZE	4096UL

/* One call of memmap_init_zone_device(). */
struct native_case {
	unsigned long start_pfn;
	unsigned long nr_pages;
	unsigned int type;		/* enum memory_type */
	unsigned int order;		/* of the compounds */
	unsigned int altmap;		/* whether the next two count */
	unsigned long altmap_reserve;
	unsigned long altmap_free;
	unsigned int nid;
	unsigned int early;		/* the sections were there at boot */
};

/* What a kernel turns its returns into when it boots, for the CPU it finds. */
enum native_returns {
	NATIVE_RET_PLAIN,	/* ret */
	NATIVE_RET_SAFE,	/* AMD Zen 1 to 4, and guests not told of a fix */
	NATIVE_RET_UNTRAINED,	/* AMD Zen 1 and 2, where not the above */
};

/* Tables that the kernel applies when it boots. */
struct native_tables {
	void *alt, *alt_end;
	void *jump, *jump_end;
	unsigned long *mcount, *mcount_end;
	unsigned long *ret, *ret_end;
	enum native_returns returns;
};

#endif
