// SPDX-License-Identifier: GPL-2.0-only
/*
 * Let the sections of a device share a memmap until their pages are used.
 *
 * All struct pages of device-private memory or of fsdax are alike after
 * memremap_pages(), and all compounds of devdax. Those of a section fill one PMD
 * of the vmemmap. So the PMDs of all sections map one block of struct pages,
 * read-only. A section gets a memmap of its own from pgmap_populate_memmap(),
 * which is called before anybody writes to a struct page of that section.
 *
 * Reading a shared struct page is safe. Its reference count is 0, so code that
 * takes a reference first gets none, and does not write. Code that takes none has
 * to look before it writes: memory_failure() finds no mapping.
 *
 * See Documentation/mm/memmap_shared.rst.
 */
#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/page_ref.h>
#include <linux/pgalloc.h>
#include <linux/set_memory.h>
#include <linux/string.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include "internal.h"
#include "memmap_shared.h"
#include "mm_init.h"
#include "page_alloc.h"

#define BLOCK_PAGES	((long)(PMD_SIZE >> PAGE_SHIFT))

bool memmap_shared_enabled;
core_param(memmap_shared, memmap_shared_enabled, bool, 0644);

/* Serialises the changes of entries. Nothing is allocated under it. */
static DEFINE_MUTEX(memmap_shared_lock);

/* ALLOC_NO_INIT: the caller writes all of the pages. */
VISIBLE_IF_KUNIT struct page *memmap_pages_alloc(int nid, unsigned int order,
						 gfp_t retry)
{
	const gfp_t gfp = GFP_KERNEL | __GFP_NOWARN | retry;

	KUNIT_STATIC_STUB_REDIRECT(memmap_pages_alloc, nid, order, retry);
	return __alloc_pages(gfp, order, nid, NULL, ALLOC_NO_INIT);
}

/* Free what memmap_copy() has allocated so far. */
static void memmap_copy_free(pmd_t pmd, struct list_head *pages)
{
	struct page *page, *next;

	if (pmd_leaf(pmd)) {
		__free_pages(pmd_page(pmd), PMD_ORDER);
		return;
	}
	list_for_each_entry_safe(page, next, pages, lru)
		__free_page(page);
	__free_page(pmd_page(pmd));
}

/*
 * Copy the shared struct pages, and return the entry that maps the copy. If
 * memory is fragmented, the copy is in single pages, to which
 * vmemmap_populate_hugepages() falls back, too. They are added to @pages, and
 * the entry is that of a page table, which maps @block until memmap_copy_map().
 * vmemmap_free() frees both kinds. Returns a none entry if memory is short.
 *
 * Not by streaming stores: the pages that are initialised next would come from
 * memory, which costs more than the stores save if many of the pages are used.
 */
static pmd_t memmap_copy(int nid, struct page *block, struct list_head *pages)
{
	/* This may be a page fault, and single pages will do. */
	struct page *page = memmap_pages_alloc(nid, PMD_ORDER, __GFP_NORETRY);
	pmd_t pmd = __pmd(0);
	pte_t *table;
	int i;

	if (page) {
		memcpy(page_address(page), page_address(block), PMD_SIZE);
		return pmd_mkhuge(pfn_pmd(page_to_pfn(page), PAGE_KERNEL));
	}

	page = memmap_pages_alloc(nid, 0, __GFP_RETRY_MAYFAIL);
	if (!page)
		return pmd;
	table = page_address(page);
	pmd_populate_kernel(&init_mm, &pmd, table);
	for (i = 0; i < PTRS_PER_PTE; i++) {
		page = memmap_pages_alloc(nid, 0, __GFP_RETRY_MAYFAIL);
		if (!page) {
			memmap_copy_free(pmd, pages);
			return __pmd(0);
		}
		memcpy(page_address(page), page_address(block + i), PAGE_SIZE);
		list_add_tail(&page->lru, pages);
		set_pte(table + i, pfn_pte(page_to_pfn(block + i), PAGE_KERNEL_RO));
	}
	return pmd;
}

/* Let the page table of a copy map the copy. */
static void memmap_copy_map(pmd_t pmd, struct list_head *pages)
{
	pte_t *pte = (pte_t *)pmd_page_vaddr(pmd);
	struct page *page, *next;

	list_for_each_entry_safe(page, next, pages, lru) {
		list_del(&page->lru);
		set_pte(pte++, pfn_pte(page_to_pfn(page), PAGE_KERNEL));
	}
}

static bool memmap_can_share(const struct dev_pagemap *pgmap)
{
	if (!memmap_shared_enabled || !(pgmap->flags & PGMAP_SHARED_MEMMAP) ||
	    PAGES_PER_SECTION * sizeof(struct page) != PMD_SIZE)
		return false;
	switch (pgmap->type) {
	case MEMORY_DEVICE_PRIVATE:
	case MEMORY_DEVICE_FS_DAX:
		return !pgmap->vmemmap_shift;
	case MEMORY_DEVICE_DEVDAX:
		/* Tail pages must not hold the address of their head. */
		return !pgmap->vmemmap_shift ||
		       (compound_info_has_mask() &&
			pgmap->vmemmap_shift <= PFN_SECTION_SHIFT);
	default:
		return false;
	}
}

/*
 * Make a compound of the first pages of a block. _deferred_list holds its own
 * address, so it is left out; nobody reads that of a ZONE_DEVICE folio.
 */
static void memmap_shared_compound(struct folio *folio, unsigned int order)
{
	if (order)
		prep_compound_page(&folio->page, order);
	if (order > 1)
		memset(&folio->_deferred_list, 0, sizeof(folio->_deferred_list));
}

/* Write what memmap_shared_compound() left out, to a section's own struct pages. */
static void memmap_own_compound(struct page *page, unsigned int order)
{
	unsigned long i;

	for (i = 0; order > 1 && i < PAGES_PER_SECTION; i += 1UL << order)
		INIT_LIST_HEAD(&((struct folio *)(page + i))->_deferred_list);
}

/*
 * Return the PFN of the block that the altmap reserves for a section. It hands
 * out one for each whole section, in the order of the sections.
 */
static unsigned long memmap_reserved_pfn(const struct dev_pagemap *pgmap,
					 unsigned long pfn)
{
	const unsigned long first = SECTION_ALIGN_UP(PHYS_PFN(pgmap->ranges[0].start));
	const struct vmem_altmap *altmap = &pgmap->altmap;

	return ALIGN(altmap->base_pfn + altmap->reserve, BLOCK_PAGES) +
	       (pfn - first) / PAGES_PER_SECTION * BLOCK_PAGES;
}

/* Map that block as the direct map does, through which it is written. */
static pmd_t memmap_reserved_pmd(const struct dev_pagemap *pgmap, unsigned long pfn)
{
	pgprot_t prot = PAGE_KERNEL;

	/* As in memremap_pages(). */
	if (pgmap->type == MEMORY_DEVICE_FS_DAX)
		prot = pgprot_decrypted(prot);
	return pmd_mkhuge(pfn_pmd(memmap_reserved_pfn(pgmap, pfn), prot));
}

/*
 * Take a section's own block from the altmap, so that it can be populated at any
 * time. Nothing notes where the block is, so it has to be the one expected.
 */
static bool __meminit memmap_reserve(struct dev_pagemap *pgmap, unsigned long pfn)
{
	struct vmem_altmap *altmap = &pgmap->altmap;
	void *block;

	/* move_pfn_range_to_zone() initialises the altmap's own pages. */
	if (pfn < altmap->base_pfn + vmem_altmap_offset(altmap))
		return false;
	block = vmemmap_alloc_block_buf(PMD_SIZE, NUMA_NO_NODE, altmap);
	if (!block)
		return false;
	if (PHYS_PFN(__pa(block)) == memmap_reserved_pfn(pgmap, pfn))
		return true;
	vmem_altmap_free(altmap, BLOCK_PAGES);
	return false;
}

/**
 * memmap_shared_begin() - make the struct pages that sections will share
 * @pgmap: the device's; its ranges are added later
 * @nid: the node of its memory
 *
 * There is no such block if the driver has not asked for sharing, if it is not
 * possible, or if memory is short. Each section then gets a memmap of its own.
 */
void memmap_shared_begin(struct dev_pagemap *pgmap, int nid)
{
	const unsigned long pfn = PHYS_PFN(pgmap->ranges[0].start);
	const unsigned long nr = pgmap_vmemmap_nr(pgmap);
	struct page *block, *image;
	unsigned long i;

	pgmap->shared_block = NULL;
	/* A trace of page_ref_set is to show every page. */
	if (page_ref_tracepoint_active(page_ref_set) || !memmap_can_share(pgmap))
		return;

	block = memmap_pages_alloc(nid, PMD_ORDER, __GFP_RETRY_MAYFAIL);
	if (!block)
		return;

	image = page_address(block);
	for (i = 0; i < 2; i++)
		__init_zone_device_page(image + i, pfn + i, ZONE_DEVICE, nid, pgmap);
	/* They differ if a struct page holds its own address or section. */
	if (memcmp(image, image + 1, sizeof(*image)) || page_ref_count(image))
		goto out_free;
	for (; i < nr; i++)
		image[i] = image[0];
	memmap_shared_compound((struct folio *)image, pgmap->vmemmap_shift);
	for (; i < PAGES_PER_SECTION; i++)
		image[i] = image[i - nr];

	/* This fails before it has changed anything. */
	if (set_memory_ro((unsigned long)image, BLOCK_PAGES))
		goto out_free;
	pgmap->shared_block = block;
	memmap_pages_add(BLOCK_PAGES);
	return;

out_free:
	__free_pages(block, PMD_ORDER);
}

/**
 * memmap_shared_end() - free the struct pages that sections shared
 * @pgmap: the device's; all its ranges are removed
 */
void memmap_shared_end(struct dev_pagemap *pgmap)
{
	struct page *block = pgmap->shared_block;

	if (!block)
		return;
	pgmap->shared_block = NULL;
	/* Nobody else could use it: better lose it than free it read-only. */
	if (WARN_ON_ONCE(set_memory_rw((unsigned long)page_address(block), BLOCK_PAGES)))
		return;
	__free_pages(block, PMD_ORDER);
	memmap_pages_add(-BLOCK_PAGES);
}

/**
 * memmap_shared_map() - map the shared struct pages for a section
 * @pmd: entry of the vmemmap, which maps nothing yet
 * @addr: first address to be mapped
 * @next: the end of what is to be mapped by this entry
 * @pgmap: that of the section; NULL for ordinary memory
 *
 * Return: true if they are mapped; false if the section is to have its own.
 */
bool __meminit memmap_shared_map(pmd_t *pmd, unsigned long addr,
				 unsigned long next, struct dev_pagemap *pgmap)
{
	struct mem_section *ms;
	unsigned long pfn;

	/* The rest of the section may be other memory. */
	if (!pgmap || !pgmap->shared_block || next - addr != PMD_SIZE)
		return false;

	pfn = page_to_pfn((struct page *)addr);
	if (pgmap_altmap(pgmap) && !memmap_reserve(pgmap, pfn))
		return false;

	ms = __pfn_to_section(pfn);
	ms->section_mem_map |= SECTION_MEMMAP_SHARED;
	set_pmd(pmd, pmd_mkhuge(pfn_pmd(page_to_pfn(pgmap->shared_block),
					PAGE_KERNEL_RO)));
	return true;
}

/**
 * memmap_shared_unmap() - take the shared struct pages from a section
 * @pfn: first PFN of the section, which is being removed
 * @altmap: has a block reserved for the section; or NULL
 *
 * The caller frees the page tables and flushes the TLBs. The struct pages stay
 * until memmap_shared_end().
 */
void memmap_shared_unmap(unsigned long pfn, struct vmem_altmap *altmap)
{
	spin_lock(&init_mm.page_table_lock);
	pmd_clear(pmd_off_k((unsigned long)pfn_to_page(pfn)));
	spin_unlock(&init_mm.page_table_lock);
	if (altmap)
		vmem_altmap_free(altmap, BLOCK_PAGES);
}

static int memmap_shared_replace(struct dev_pagemap *pgmap, unsigned long pfn)
{
	const unsigned long addr = (unsigned long)pfn_to_page(pfn);
	const bool reserved = pgmap_altmap(pgmap);
	struct mem_section *ms = __pfn_to_section(pfn);
	LIST_HEAD(pages);
	pmd_t pmd;
	int err = 0;

	if (WARN_ON_ONCE(!pgmap_pfn_valid(pgmap, pfn)))
		return -EINVAL;
	/* memunmap_pages() waits until it is done. */
	if (!percpu_ref_tryget_live(&pgmap->ref))
		return -ENODEV;

	/*
	 * Allocate before taking memmap_shared_lock: reclaim may wait for a
	 * task that waits for the lock.
	 */
	pmd = reserved ? memmap_reserved_pmd(pgmap, pfn) :
			 memmap_copy(page_to_nid(pfn_to_page(pfn)),
				     pgmap->shared_block, &pages);
	/* Another task may have done it meanwhile. */
	if (pmd_none(pmd)) {
		err = memmap_is_shared(pfn) ? -ENOMEM : 0;
		goto out_put;
	}

	mutex_lock(&memmap_shared_lock);
	if (memmap_is_shared(pfn)) {
		/* Under the lock: the block is in use if another task was faster. */
		if (reserved)
			memcpy((void *)pmd_page_vaddr(pmd),
			       page_address(pgmap->shared_block), PMD_SIZE);
		/*
		 * A CPU whose TLB still has the old entry reads the same bytes
		 * until somebody writes. Nobody writes before the bit is clear,
		 * and then no TLB has the old entry.
		 */
		spin_lock(&init_mm.page_table_lock);
		/* The copy is visible before its entry is. */
		smp_wmb();
		set_pmd(pmd_off_k(addr), pmd);
		spin_unlock(&init_mm.page_table_lock);
		flush_tlb_kernel_range(addr, addr + PMD_SIZE);
		/*
		 * The page table maps the shared block until here: no TLB may
		 * have entries of two sizes that lead to different pages.
		 */
		if (!list_empty(&pages)) {
			memmap_copy_map(pmd, &pages);
			flush_tlb_kernel_range(addr, addr + PMD_SIZE);
		}
		memmap_own_compound((struct page *)addr, pgmap->vmemmap_shift);
		clear_bit_unlock(SECTION_MEMMAP_SHARED_BIT, &ms->section_mem_map);
		memmap_pages_add(BLOCK_PAGES);
		pmd = __pmd(0);
	}
	mutex_unlock(&memmap_shared_lock);

	if (!pmd_none(pmd) && !reserved)
		memmap_copy_free(pmd, &pages);
out_put:
	percpu_ref_put(&pgmap->ref);
	return err;
}

/**
 * pgmap_populate_memmap() - make struct pages of a device writable
 * @pgmap: the device's
 * @pfn: the first of its pages that will be used
 * @nr_pages: number of these pages
 *
 * A driver that sets PGMAP_SHARED_MEMMAP calls this before it initialises the
 * pages with zone_device_page_init(), or writes to their struct pages in any
 * other way. @pgmap must not be freed meanwhile. May sleep. Is cheap if the
 * pages have been used before.
 *
 * Return: 0, -EINVAL if a section that shares its memmap is not of @pgmap,
 * -ENODEV if @pgmap is being unmapped, or -ENOMEM if memory is short. Unless it
 * is 0, the pages must not be used.
 */
int pgmap_populate_memmap(struct dev_pagemap *pgmap, unsigned long pfn,
			  unsigned long nr_pages)
{
	const unsigned long end_pfn = pfn + nr_pages;
	int err;

	might_sleep();
	if (!nr_pages)
		return 0;
	for (pfn = SECTION_ALIGN_DOWN(pfn); pfn < end_pfn; pfn += PAGES_PER_SECTION) {
		if (!memmap_is_shared(pfn))
			continue;
		err = memmap_shared_replace(pgmap, pfn);
		if (err)
			return err;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(pgmap_populate_memmap);

/**
 * pfn_populate_memmap() - make struct pages writable, if need be
 * @pfn: the first of the pages that will be used
 * @nr_pages: number of these pages
 *
 * Does what pgmap_populate_memmap() does, for a caller that does not know
 * whether the pages are of a device that shares its memmap, or have struct pages
 * at all. The caller keeps the device bound meanwhile.
 *
 * Return: 0, or an error of pgmap_populate_memmap().
 */
int pfn_populate_memmap(unsigned long pfn, unsigned long nr_pages)
{
	const unsigned long end_pfn = pfn + nr_pages;
	struct dev_pagemap *pgmap;
	int err;

	might_sleep();
	if (!nr_pages)
		return 0;
	for (pfn = SECTION_ALIGN_DOWN(pfn); pfn < end_pfn; pfn += PAGES_PER_SECTION) {
		if (!memmap_is_shared(pfn))
			continue;
		/*
		 * Not page_pgmap(): the section may be populated meanwhile, and
		 * a page in use has no pgmap while its order changes.
		 */
		pgmap = get_dev_pagemap(pfn);
		if (!pgmap)
			return -ENODEV;
		err = pgmap_populate_memmap(pgmap, pfn, 1);
		put_dev_pagemap(pgmap);
		if (err)
			return err;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(pfn_populate_memmap);
