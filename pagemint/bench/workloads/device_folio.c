// SPDX-License-Identifier: GPL-2.0-only
/*
 * Folios of 2 MiB on a device: those of a file on fsdax, which a fault makes and
 * truncation splits again, and device-private ones, which a driver takes and frees.
 */
#include <linux/dax.h>
#include <linux/huge_mm.h>
#include <linux/iomap.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/version.h>
#include <linux/xarray.h>

#include "glue.h"

NATIVE_OBJECTS("fs/dax.o", "mm/memremap.o", "mm/page_alloc.o", "lib/list_debug.o");
/* Makes the folio of an entry. It is static: only the fault handlers in its file call it. */
NATIVE_STATICS("dax_insert_entry");

/* On 6.12 neither fsdax nor device-private memory has folios of several pages. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)

enum { NATIVE_ORDER = PMD_ORDER };

/* A function that gets the first PFN of a folio. */
typedef void native_folio_fn(unsigned long pfn);

static __always_inline long native_all(native_folio_fn *fn, unsigned long first, unsigned long nr)
{
	long begun = native_now();
	unsigned long i;

	for (i = 0; i < nr; i++)
		fn(first + (native_target(i, nr) << NATIVE_ORDER));
	return native_now() - begun;
}

/*
 * Arguments first= folios= times= [cold=] [keep=]: call @make for each of FOLIOS
 * folios from PFN FIRST, then @use for each, then @undo for each; all that TIMES
 * times. With cold=1 the struct pages are evicted from the cache before each @make
 * and @undo of the folios. With keep=1 the last @use and @undo are left out. Answers
 * make= and undo= (ns).
 */
static __always_inline void native_folios(struct native_request *r, native_folio_fn *make,
					  native_folio_fn *use, native_folio_fn *undo)
{
	unsigned long first = native_number(r, "first"), nr = native_number(r, "folios");
	unsigned long times = native_number(r, "times");
	bool cold = native_number_or(r, "cold", 0), keep = native_number_or(r, "keep", 0);
	unsigned long bytes = (nr << NATIVE_ORDER) * sizeof(struct page);
	long made = 0, undone = 0;

	native_need_memmap(r, first, nr << NATIVE_ORDER);
	while (times--) {
		if (cold)
			native_evict(pfn_to_page(first), bytes);
		made += native_all(make, first, nr);
		if (keep && !times)
			break;
		native_all(use, first, nr);
		if (cold)
			native_evict(pfn_to_page(first), bytes);
		undone += native_all(undo, first, nr);
	}
	native_answer(r, "make", made);
	native_answer(r, "undo", undone);
}

static void native_unused(unsigned long pfn)
{
}

/* Folios of a file on fsdax. */

/* The entries of fs/dax.c: a PFN, and flags below it. */
enum { NATIVE_DAX_LOCKED = 1, NATIVE_DAX_PMD = 2, NATIVE_DAX_EMPTY = 8, NATIVE_DAX_SHIFT = 4 };

/* Static in the object, so no header declares it. */
void *dax_insert_entry(struct xa_state *xas, struct vm_fault *vmf,
		       const struct iomap_iter *iter, void *entry, unsigned long pfn,
		       unsigned long flags);

/* At a fixed address, since the folios of a file point to it. */
#define native_mapping	((struct address_space *)(NATIVE_PGMAP + NATIVE_PGMAP_SIZE / 2))

/* The page cache of a file has one entry. */
static void *native_entry;

void *xas_store(struct xa_state *xas, void *entry)
{
	void *old = native_entry;

	native_entry = entry;
	return old;
}

void *xas_find_conflict(struct xa_state *xas)
{
	return native_entry;
}

/* The fault of a process that maps the file; reading leaves the inode alone. */
static void native_fault(unsigned long pfn)
{
	static struct file file = { .f_mapping = native_mapping };
	static struct vm_area_struct vma = { .vm_file = &file };
	static struct vm_fault vmf = { .vma = &vma };
	static const struct iomap_iter iter;
	unsigned long flags = NATIVE_DAX_EMPTY | NATIVE_DAX_PMD | NATIVE_DAX_LOCKED;
	XA_STATE(xas, &native_mapping->i_pages, 0);

	native_entry = xa_mk_value(flags);
	dax_insert_entry(&xas, &vmf, &iter, native_entry, pfn, NATIVE_DAX_PMD);
}

static void native_truncate(unsigned long pfn)
{
	native_entry = xa_mk_value(pfn << NATIVE_DAX_SHIFT | NATIVE_DAX_PMD);
	if (!dax_delete_mapping_entry(native_mapping, 0))
		native_fail("an entry is not deleted", pfn);
}

/*
 * dax_folio tree= ...: makes folios of fsdax pages, which the command init has
 * initialised, and splits them again. See native_folios().
 */
NATIVE_COMMAND(dax_folio)
{
	BUILD_BUG_ON(sizeof(*native_mapping) > NATIVE_PGMAP_SIZE / 2);
	BUILD_BUG_ON(sizeof(struct dev_pagemap) > NATIVE_PGMAP_SIZE / 2);
	native_folios(r, native_fault, native_unused, native_truncate);
}

/* Device-private folios. */

/* No header that modules can include declares it. */
void free_zone_device_folio(struct folio *folio);

DEFINE_PER_CPU(struct mthp_stat, mthp_stats);

/* The references to the dev_pagemap. */
static DEFINE_PER_CPU(unsigned long, native_references);

static void native_take(unsigned long pfn)
{
	zone_device_page_init(pfn_to_page(pfn), (void *)NATIVE_PGMAP, NATIVE_ORDER);
}

/* Whether a process has the folios as anonymous memory until they are freed. */
static bool native_anon;

static void native_map(unsigned long pfn)
{
	struct folio *folio = pfn_folio(pfn);

	if (native_anon) {
		folio->mapping = (void *)FOLIO_MAPPING_ANON;
		SetPageAnonExclusive(&folio->page);
	}
	/* folio_set_count() would have a branch for its event, which only objects may have. */
	atomic_set(&folio->_refcount, 0);
}

static void native_free(unsigned long pfn)
{
	free_zone_device_folio(pfn_folio(pfn));
}

static void native_driver_free(struct folio *folio)
{
}

/*
 * device_folio tree= ... [anon=]: makes folios of device-private pages, which the
 * command init has initialised, and frees them. See native_folios(). With anon=0 no
 * process maps them. Answers nr_anon=, the kernel's count of anonymous folios.
 */
NATIVE_COMMAND(device_folio)
{
	static const struct dev_pagemap_ops ops = { .folio_free = native_driver_free };
	struct dev_pagemap *pgmap = (void *)NATIVE_PGMAP;

	pgmap->ops = &ops;
	/* A device in use counts references on each CPU. */
	pgmap->ref.percpu_count_ptr = (unsigned long)&native_references;
	native_anon = native_number_or(r, "anon", 1);
	this_cpu_write(mthp_stats.stats[NATIVE_ORDER][MTHP_STAT_NR_ANON], 0);
	native_folios(r, native_take, native_map, native_free);
	native_answer(r, "nr_anon",
		      (long)this_cpu_read(mthp_stats.stats[NATIVE_ORDER][MTHP_STAT_NR_ANON]));
}
#endif
