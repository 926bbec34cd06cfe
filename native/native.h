/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the halves of the host program say to each other: the glue, compiled as
 * kernel code once for each tree, and the rest, which is plain C.
 */
#ifndef PAGEMINT_NATIVE_H
#define PAGEMINT_NATIVE_H

/* pfn_to_page(0), aligned for the largest compound that there is. */
#define NATIVE_VMEMMAP		(1UL << 44)
/* Where the memory of PFN 0 is mapped, as far as it is. */
#define NATIVE_DIRECT		(1UL << 45)
/* The dev_pagemap: its address enters every page. */
#define NATIVE_PGMAP		0x50000000UL
#define NATIVE_PGMAP_SIZE	4096UL
/* The node: the addresses of its free lists enter the pages on them. */
#define NATIVE_PGDAT		0x50100000UL
#define NATIVE_PGDAT_SIZE	0x100000UL
/*
 * What %gs points to, as to a CPU's own data in a kernel: the copy of the section
 * per_cpu lies that much higher. On 6.12 the canary of the stack has a place of its own.
 */
#define NATIVE_GS		0x10000000UL
#define NATIVE_GS_SIZE		4096UL
#define NATIVE_GS_CANARY	0x28UL
/* Symbols without a stand-in: each a page that cannot be touched. */
#define NATIVE_TRAPS		0x60000000UL
#define NATIVE_TRAP_SIZE	4096UL
/* Threads that initialise a memory map, at most. */
#define NATIVE_MAX_THREADS	64

/* Of the bits of a pageblock. */
#define NATIVE_MIGRATETYPE	0x07
#define NATIVE_ISOLATED		0x10

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

/* Ordinary memory: hot-added, or what boot finds free. */
struct native_memory {
	unsigned long start_pfn;
	unsigned long nr_pages;
	unsigned int nid;
	unsigned int driver;		/* a driver decides which pages go online */
	unsigned int nr_free;		/* ranges that memblock has free */
	unsigned long free[8][2];	/* the first PFN of each, and the one behind it */
};

enum native_copier {
	NATIVE_FOLIO_COPY,
	NATIVE_FOLIO_MC_COPY,
	NATIVE_COPY_USER_LARGE_FOLIO,
};

/* One run of copies: @nr folios, in an order that no prefetcher guesses. */
struct native_copy {
	unsigned long to, from;		/* PFNs of the first ones */
	unsigned int order;		/* of each */
	unsigned long nr;
	enum native_copier by;
};

/*
 * Which folio comes i-th of nr, and where it goes: in an order that no prefetcher guesses, and at
 * many distances, since memory is slower at some. nr is a power of two.
 */
static inline unsigned long native_source(unsigned long i, unsigned long nr)
{
	return i * 13 % nr;
}

static inline unsigned long native_target(unsigned long i, unsigned long nr)
{
	return (i * 7 + 5) % nr;
}

/* The CPU whose code is to run: what copies differ by. */
enum native_class {
	NATIVE_THIS_CPU,
	NATIVE_FSRM,		/* fast short rep movsb, and the following */
	NATIVE_ERMS,		/* enhanced rep movsb, and the following */
	NATIVE_REP_GOOD,	/* rep movsq is good */
	NATIVE_UNROLLED,	/* none of them */
};

/* What a kernel turns its returns into when it boots, for the CPU it finds. */
enum native_returns {
	NATIVE_RET_PLAIN,	/* ret */
	NATIVE_RET_SAFE,	/* AMD Zen 1 to 4, and guests not told of a fix */
	NATIVE_RET_UNTRAINED,	/* AMD Zen 1 and 2, where not the above */
};

/* Tables that the kernel applies when it boots, and what for. */
struct native_tables {
	void *alt, *alt_end;
	void *jump, *jump_end;
	unsigned long *mcount, *mcount_end;
	void *ex, *ex_end;
	unsigned long *ret, *ret_end;
	enum native_returns returns;
	enum native_class class;
	int events;		/* page_ref_set is active */
	int fragile;		/* copy_mc_fragile() is chosen */
};

#endif
