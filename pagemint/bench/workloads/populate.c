// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device whose sections share a memmap: its bind, and pgmap_populate_memmap() at the
 * first use of each section. No CPU walks the page tables that they write.
 */
#include <linux/memory_hotplug.h>
#include <linux/memremap.h>
#include <linux/mm.h>

#include <asm/coco.h>

#include "glue.h"

NATIVE_OBJECTS("mm/memmap_shared.o", "mm/memremap.o", "arch/x86/lib/memcpy_64.o");
NATIVE_REPLACED("mm/memmap_shared.o:__alloc_pages_noprof=native_alloc_block");

#ifdef CONFIG_MEMMAP_SHARED
#include <../mm/memmap_shared.h>
#include <../mm/mm_init.h>

/* These flags make an entry of a page table present; nobody looks at others. */
#define NATIVE_TABLE	_KERNPG_TABLE_NOENC

struct mm_struct init_mm;
unsigned int pgdir_shift, ptrs_per_p4d;
unsigned long phys_base;
phys_addr_t physical_mask = (1ULL << __PHYSICAL_MASK_SHIFT) - 1;
pteval_t __supported_pte_mask = ~0UL, __default_kernel_pte_mask = ~0UL;
#ifdef CONFIG_AMD_MEM_ENCRYPT
u64 sme_me_mask;	/* no memory is encrypted */
#endif

u64 cc_mkdec(u64 val)
{
	return val;
}

/* The references to the dev_pagemap. */
static DEFINE_PER_CPU(unsigned long, populate_references);

static struct {
	unsigned long next_page;	/* of the struct page of the next block */
	unsigned long next_table;	/* where the next page table is */
	unsigned long flushes;
} state;

int set_memory_ro(unsigned long addr, int nr_pages)
{
	return 0;
}

void memmap_pages_add(long delta)
{
}

void flush_tlb_kernel_range(unsigned long start, unsigned long end)
{
	state.flushes++;
}

/* Replaces the page allocator: returns the block that the command has for this section. */
struct page *native_alloc_block(gfp_t gfp, unsigned int order, int nid, nodemask_t *mask,
				unsigned int alloc_flags);
struct page *native_alloc_block(gfp_t gfp, unsigned int order, int nid, nodemask_t *mask,
				unsigned int alloc_flags)
{
	struct page *page = pfn_to_page(state.next_page);

	state.next_page += 1UL << order;
	return page;
}

/* The table that an entry points to; a new one if there is none. */
static unsigned long native_table(unsigned long *entry)
{
	unsigned long table;

	if (!*entry) {
		table = state.next_table;
		state.next_table += PAGE_SIZE;
		memset((void *)table, 0, PAGE_SIZE);
		*entry = (table - page_offset_base) | NATIVE_TABLE;
	}
	return (*entry & PTE_PFN_MASK) + page_offset_base;
}

static pmd_t *native_pmd(unsigned long addr)
{
	unsigned long *entry = (unsigned long *)init_mm.pgd + pgd_index(addr);

	if (pgtable_l5_enabled())
		entry = (unsigned long *)native_table(entry) + p4d_index(addr);
	entry = (unsigned long *)native_table(entry) + pud_index(addr);
	return (pmd_t *)native_table(entry) + pmd_index(addr);
}

/*
 * populate tree= first= sections= used=: binds SECTIONS sections from PFN FIRST, and
 * gives the first USED of them a memmap of their own. The window has these sections
 * first, then one whose memmap is the shared block, then one for page tables, then
 * the struct pages of the blocks. The memory of a section's block is its memmap in
 * the window, so that the result can be read there. Answers shares=1, bind_ns=,
 * use_ns= and flushes=; or shares=0 if the tree has no shared memmap.
 */
NATIVE_COMMAND(populate)
{
	unsigned long first = native_number(r, "first"), nr = native_number(r, "sections");
	unsigned long used = native_number(r, "used");
	unsigned long blocks = first + (nr + 2) * PAGES_PER_SECTION;
	unsigned long direct = page_offset_base, start, i;
	struct dev_pagemap *pgmap = (void *)NATIVE_PGMAP;
	long begun;
	int err;

	native_need_memmap(r, first, blocks - first + ((nr + 1) << PMD_ORDER));
	page_offset_base = (unsigned long)pfn_to_page(first) - (blocks << PAGE_SHIFT);
	native_begin(first, nr * PAGES_PER_SECTION, 0);

	memset(pgmap, 0, sizeof(*pgmap));
	pgmap->type = MEMORY_DEVICE_PRIVATE;
	pgmap->flags = PGMAP_SHARED_MEMMAP;
	pgmap->nr_range = 1;
	pgmap->range.start = PFN_PHYS(first);
	pgmap->range.end = PFN_PHYS(first + nr * PAGES_PER_SECTION) - 1;
	pgmap->ref.percpu_count_ptr = (unsigned long)&populate_references;

	pgdir_shift = pgtable_l5_enabled() ? 48 : 39;
	ptrs_per_p4d = pgtable_l5_enabled() ? 512 : 1;
	state.next_table = (unsigned long)pfn_to_page(first + (nr + 1) * PAGES_PER_SECTION);
	init_mm.pgd = memset((void *)state.next_table, 0, PAGE_SIZE);
	state.next_table += PAGE_SIZE;

	state.next_page = blocks + (nr << PMD_ORDER);
	memmap_shared_enabled = true;
	begun = native_now();
	memmap_shared_begin(pgmap, 0);
	for (i = 0; i < nr; i++) {
		start = (unsigned long)pfn_to_page(first + i * PAGES_PER_SECTION);
		if (!memmap_shared_map(native_pmd(start), start, start + PMD_SIZE, pgmap))
			native_fail("a section does not share its memmap", start);
	}
	/* As a bind does; where nothing is shared, memmap_init_zone_device() does it. */
	pageblock_migratetype_init_range(first, nr * PAGES_PER_SECTION, MIGRATE_MOVABLE, false);
	native_answer(r, "bind_ns", native_now() - begun);

	state.next_page = blocks;
	state.flushes = 0;
	begun = native_now();
	err = pgmap_populate_memmap(pgmap, first, used * PAGES_PER_SECTION, GFP_KERNEL);
	native_answer(r, "use_ns", native_now() - begun);
	native_answer(r, "flushes", state.flushes);
	native_answer(r, "shares", 1);
	page_offset_base = direct;
	memset(pgmap, 0, sizeof(*pgmap));
	if (err)
		native_fail("a section is not populated", -err);
}
#else
NATIVE_COMMAND(populate)
{
	/* An argument that nobody reads is an error. */
	native_number(r, "first");
	native_number(r, "sections");
	native_number(r, "used");
	native_answer(r, "shares", 0);
}
#endif
