/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MEMMAP_SHARED_H
#define _MM_MEMMAP_SHARED_H

#include <linux/mmzone.h>
#include <linux/pgtable.h>

struct dev_pagemap;
struct vmem_altmap;

#ifdef CONFIG_MEMMAP_SHARED
extern bool memmap_shared_enabled;

/**
 * memmap_is_shared() - whether a section has no memmap of its own
 * @pfn: a PFN of the section; it need not have a struct page
 *
 * Once a section has a memmap of its own, it keeps that until it is removed, and
 * all CPUs read and write it.
 *
 * Return: true if its struct pages are read-only, and shared with other sections.
 */
static inline bool memmap_is_shared(unsigned long pfn)
{
	const struct mem_section *ms = __pfn_to_section(pfn);

	/* Pairs with clear_bit_unlock() in memmap_populate_map(). */
	return ms && test_bit_acquire(SECTION_MEMMAP_SHARED_BIT,
				      &ms->section_mem_map);
}

void memmap_shared_begin(struct dev_pagemap *pgmap, int nid);
void memmap_shared_end(struct dev_pagemap *pgmap);
bool memmap_shared_map(pmd_t *pmd, unsigned long addr, unsigned long next,
		       struct dev_pagemap *pgmap);
void memmap_shared_unmap(unsigned long pfn, struct vmem_altmap *altmap);
#if IS_ENABLED(CONFIG_KUNIT)
struct page *memmap_pages_alloc(int nid, unsigned int order, gfp_t gfp);
void memmap_flush_tlb(unsigned long start, unsigned long end);
#endif
#else
static inline bool memmap_is_shared(unsigned long pfn)
{
	return false;
}

static inline void memmap_shared_begin(struct dev_pagemap *pgmap, int nid)
{
}

static inline void memmap_shared_end(struct dev_pagemap *pgmap)
{
}

static inline bool memmap_shared_map(pmd_t *pmd, unsigned long addr,
				     unsigned long next,
				     struct dev_pagemap *pgmap)
{
	return false;
}

static inline void memmap_shared_unmap(unsigned long pfn,
				       struct vmem_altmap *altmap)
{
}
#endif /* CONFIG_MEMMAP_SHARED */

#endif /* _MM_MEMMAP_SHARED_H */
