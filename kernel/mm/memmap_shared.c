// SPDX-License-Identifier: GPL-2.0-only
/*
 * Let the sections of a device share a memmap until their pages are used.
 *
 * All struct pages of device-private memory are alike after memremap_pages(),
 * and those of a section fill one PMD of the vmemmap. So the PMDs of all
 * sections map one block of struct pages, read-only. A section gets a block of
 * its own from pgmap_populate_memmap(), which the driver calls before anybody
 * writes to a struct page of that section.
 *
 * A read of a shared struct page is right: its reference count is 0, so nobody
 * goes on to take a reference, which would write.
 *
 * See Documentation/mm/memmap_shared.rst.
 */
#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
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

/* Serialises the replacement of blocks. Nothing is allocated under it. */
static DEFINE_MUTEX(memmap_shared_lock);

/* The caller writes all of the block. */
static struct page *memmap_block_alloc(int nid)
{
	const gfp_t gfp = GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;
	struct page *block;

	block = __alloc_frozen_pages(gfp, PMD_ORDER, nid, NULL, ALLOC_NO_INIT);
	if (block)
		set_page_refcounted(block);
	return block;
}

static bool memmap_can_share(const struct dev_pagemap *pgmap)
{
	const unsigned int mask = PGMAP_SHARED_MEMMAP | PGMAP_ALTMAP_VALID;

	return memmap_shared_enabled &&
	       (pgmap->flags & mask) == PGMAP_SHARED_MEMMAP &&
	       pgmap->type == MEMORY_DEVICE_PRIVATE && !pgmap->vmemmap_shift &&
	       PAGES_PER_SECTION * sizeof(struct page) == PMD_SIZE;
}

/**
 * memmap_shared_begin() - make the struct pages that sections will share
 * @pgmap: whose sections; its ranges are added later
 * @nid: the node of its memory
 *
 * Does nothing unless the driver has asked for it and it is possible. Then, or
 * if there is no memory, each section gets a memmap of its own.
 */
void memmap_shared_begin(struct dev_pagemap *pgmap, int nid)
{
	const unsigned long pfn = PHYS_PFN(pgmap->ranges[0].start);
	struct page *block, *image;
	unsigned long i;

	pgmap->shared_block = NULL;
	if (!memmap_can_share(pgmap))
		return;

	block = memmap_block_alloc(nid);
	if (!block)
		return;

	image = page_address(block);
	for (i = 0; i < 2; i++)
		__init_zone_device_page(image + i, pfn + i, ZONE_DEVICE, nid, pgmap);
	/* They differ if a struct page holds its own address or section. */
	if (memcmp(image, image + 1, sizeof(*image)) || page_ref_count(image))
		goto out_free;
	for (; i < PAGES_PER_SECTION; i++)
		image[i] = image[0];

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
 * @pgmap: whose sections; all its ranges are removed
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
 * @pgmap: whose section it is; NULL for ordinary memory
 *
 * Return: true if they are mapped; false if the section is to have its own.
 */
bool __meminit memmap_shared_map(pmd_t *pmd, unsigned long addr,
				 unsigned long next, struct dev_pagemap *pgmap)
{
	struct mem_section *ms;

	/* A part of a section may share it with other memory. */
	if (!pgmap || !pgmap->shared_block || next - addr != PMD_SIZE)
		return false;

	ms = __pfn_to_section(page_to_pfn((struct page *)addr));
	ms->section_mem_map |= SECTION_MEMMAP_SHARED;
	set_pmd(pmd, pmd_mkhuge(pfn_pmd(page_to_pfn(pgmap->shared_block),
					PAGE_KERNEL_RO)));
	return true;
}

/**
 * memmap_shared_unmap() - take the shared struct pages from a section
 * @pfn: first PFN of the section, which is being removed
 *
 * The caller frees the page tables and flushes the TLBs. The struct pages stay
 * until memmap_shared_end().
 */
void memmap_shared_unmap(unsigned long pfn)
{
	spin_lock(&init_mm.page_table_lock);
	pmd_clear(pmd_off_k((unsigned long)pfn_to_page(pfn)));
	spin_unlock(&init_mm.page_table_lock);
}

static int memmap_shared_replace(struct dev_pagemap *pgmap, unsigned long pfn)
{
	const unsigned long addr = (unsigned long)pfn_to_page(pfn);
	struct mem_section *ms = __pfn_to_section(pfn);
	struct page *block;
	int err = 0;

	if (WARN_ON_ONCE(!pgmap_pfn_valid(pgmap, pfn)))
		return -EINVAL;
	/* memunmap_pages() waits until it is done. */
	if (!percpu_ref_tryget_live(&pgmap->ref))
		return -ENODEV;

	/*
	 * Before the lock is taken: reclaim must not wait for somebody who
	 * waits for it.
	 */
	block = memmap_block_alloc(page_to_nid(pfn_to_page(pfn)));
	/* Another task may have done it meanwhile. */
	if (!block) {
		err = memmap_is_shared(pfn) ? -ENOMEM : 0;
		goto out_put;
	}
	memcpy(page_address(block), page_address(pgmap->shared_block), PMD_SIZE);

	mutex_lock(&memmap_shared_lock);
	if (memmap_is_shared(pfn)) {
		/*
		 * A CPU whose TLB still has the old entry reads the same bytes
		 * until somebody writes. Nobody writes before the bit is clear,
		 * and then no TLB has the old entry.
		 */
		spin_lock(&init_mm.page_table_lock);
		set_pmd(pmd_off_k(addr),
			pmd_mkhuge(pfn_pmd(page_to_pfn(block), PAGE_KERNEL)));
		spin_unlock(&init_mm.page_table_lock);
		flush_tlb_kernel_range(addr, addr + PMD_SIZE);
		clear_bit_unlock(SECTION_MEMMAP_SHARED_BIT, &ms->section_mem_map);
		memmap_pages_add(BLOCK_PAGES);
		block = NULL;
	}
	mutex_unlock(&memmap_shared_lock);

	if (block)
		__free_pages(block, PMD_ORDER);
out_put:
	percpu_ref_put(&pgmap->ref);
	return err;
}

/**
 * pgmap_populate_memmap() - make struct pages of a device writable
 * @pgmap: the device's
 * @pfn: the first of its pages that will be used
 * @nr_pages: how many
 *
 * A driver that sets PGMAP_SHARED_MEMMAP calls this before it initialises the
 * pages with zone_device_page_init(), or writes to their struct pages in any
 * other way. @pgmap must not be freed meanwhile. May sleep. Is cheap if the
 * pages have been used before.
 *
 * Return: 0, -EINVAL if the pages are not of @pgmap, -ENODEV if it is being
 * unmapped, or -ENOMEM if memory is short or fragmented. Unless it is 0, the
 * pages must not be used.
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
