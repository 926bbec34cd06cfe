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
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

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
#include <linux/sched/mm.h>
#include <linux/set_memory.h>
#include <linux/string.h>
#include <linux/vmstat.h>
#include <linux/wait.h>

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

/* Sections that are populated together. */
#define BATCH_SECTIONS	32UL

/* A task that populates some sections. */
struct memmap_populate {
	struct list_head node;	/* in memmap_populating */
	struct dev_pagemap *pgmap;
	unsigned long pfn;	/* the first one of the first section */
	unsigned long end_pfn;
	gfp_t gfp;
	pmd_t pmds[BATCH_SECTIONS];	/* copies, in the order of the sections */
	struct list_head pages;	/* those of the last copy, if it is in single pages */
};

static LIST_HEAD(memmap_populating);
static DEFINE_SPINLOCK(memmap_populating_lock);
static DECLARE_WAIT_QUEUE_HEAD(memmap_populating_wait);

/* ALLOC_NO_INIT: the caller writes all of the pages. */
VISIBLE_IF_KUNIT struct page *memmap_pages_alloc(int nid, unsigned int order,
						 gfp_t gfp)
{
	KUNIT_STATIC_STUB_REDIRECT(memmap_pages_alloc, nid, order, gfp);
	return __alloc_pages(gfp | __GFP_NOWARN, order, nid, NULL, ALLOC_NO_INIT);
}

/* On all CPUs. */
VISIBLE_IF_KUNIT void memmap_flush_tlb(unsigned long start, unsigned long end)
{
	KUNIT_STATIC_STUB_REDIRECT(memmap_flush_tlb, start, end);
	flush_tlb_kernel_range(start, end);
}

/* Free what memmap_copy() has allocated so far. */
static void memmap_copy_free(pmd_t pmd, struct list_head *pages)
{
	struct page *page, *next;

	if (pmd_leaf(pmd)) {
		__free_pages(pmd_page(pmd), PMD_ORDER);
		return;
	}
	list_for_each_entry_safe(page, next, pages, lru) {
		list_del(&page->lru);
		__free_page(page);
	}
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
static pmd_t memmap_copy(int nid, struct page *block, gfp_t gfp,
			 struct list_head *pages)
{
	/* Single pages will do, so a block is not worth much reclaim. */
	struct page *page = memmap_pages_alloc(nid, PMD_ORDER, __GFP_NORETRY |
					       (gfp & ~__GFP_RETRY_MAYFAIL));
	pmd_t pmd = __pmd(0);
	pte_t *table;
	int i;

	if (page) {
		memcpy(page_address(page), page_address(block), PMD_SIZE);
		return pmd_mkhuge(pfn_pmd(page_to_pfn(page), PAGE_KERNEL));
	}

	page = memmap_pages_alloc(nid, 0, gfp);
	if (!page)
		return pmd;
	table = page_address(page);
	pmd_populate_kernel(&init_mm, &pmd, table);
	for (i = 0; i < PTRS_PER_PTE; i++) {
		page = memmap_pages_alloc(nid, 0, gfp);
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

	block = memmap_pages_alloc(nid, PMD_ORDER, GFP_KERNEL | __GFP_RETRY_MAYFAIL);
	if (!block) {
		pr_warn("%pra: no memory for a shared block: all of the memmap is written\n",
			&pgmap->ranges[0]);
		return;
	}

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

/* Return the first PFN of the first section that shares its memmap, or @end_pfn. */
static unsigned long memmap_next_shared(unsigned long pfn, unsigned long end_pfn)
{
	for (pfn = SECTION_ALIGN_DOWN(pfn); pfn < end_pfn; pfn += PAGES_PER_SECTION)
		if (memmap_is_shared(pfn))
			return pfn;
	return end_pfn;
}

/*
 * Whether one task leaves a section to another that has begun to populate it.
 *
 * That saves both the work twice, but the other task may be in reclaim. A task may
 * itself enter reclaim by its gfp flags, so the locks that it holds are not needed
 * there. That covers the reclaim of another task only if that has no flag beyond
 * these: a task that holds the handle of a journal must not wait for one that waits,
 * in the file system, for the journal.
 */
static bool memmap_waits_for(const struct memmap_populate *task,
			     const struct memmap_populate *other)
{
	return task->pfn < other->end_pfn && other->pfn < task->end_pfn &&
	       !(other->gfp & ~task->gfp & (__GFP_IO | __GFP_FS));
}

/*
 * Begin to populate sections, unless there is nothing left to do. Return false
 * while another task is to be waited for.
 */
static bool memmap_populate_begin(struct memmap_populate *task)
{
	struct memmap_populate *other;
	bool wait = false;

	if (memmap_next_shared(task->pfn, task->end_pfn) == task->end_pfn)
		return true;
	spin_lock(&memmap_populating_lock);
	list_for_each_entry(other, &memmap_populating, node)
		wait |= memmap_waits_for(task, other);
	if (!wait)
		list_add(&task->node, &memmap_populating);
	spin_unlock(&memmap_populating_lock);
	return !wait;
}

static void memmap_populate_end(struct memmap_populate *task)
{
	spin_lock(&memmap_populating_lock);
	list_del_init(&task->node);
	spin_unlock(&memmap_populating_lock);
	wake_up_all(&memmap_populating_wait);
}

/*
 * Copy the shared struct pages for each section, until one gets single pages. A
 * reserved block is in use if another task is faster, so memmap_populate_map()
 * copies to it.
 */
static int memmap_populate_copy(struct memmap_populate *task)
{
	unsigned long pfn = task->pfn;
	pmd_t *pmd = task->pmds;

	for (; pfn < task->end_pfn; pfn += PAGES_PER_SECTION, pmd++) {
		if (!memmap_is_shared(pfn))
			continue;
		if (WARN_ON_ONCE(!pgmap_pfn_valid(task->pgmap, pfn)))
			return -EINVAL;
		if (pgmap_altmap(task->pgmap)) {
			*pmd = memmap_reserved_pmd(task->pgmap, pfn);
			continue;
		}
		*pmd = memmap_copy(page_to_nid(pfn_to_page(pfn)),
				   task->pgmap->shared_block, task->gfp, &task->pages);
		/* Another task may have populated it meanwhile. */
		if (pmd_none(*pmd) && memmap_is_shared(pfn))
			return -ENOMEM;
		if (!list_empty(&task->pages))
			break;
		cond_resched();
	}
	return 0;
}

/* Map the copies in place of the shared struct pages. */
static void memmap_populate_map(struct memmap_populate *task)
{
	const bool reserved = pgmap_altmap(task->pgmap);
	unsigned long pfn, addr, start = 0, end = 0;
	pmd_t *pmd, *last = NULL;

	mutex_lock(&memmap_shared_lock);
	for (pfn = task->pfn, pmd = task->pmds; pfn < task->end_pfn;
	     pfn += PAGES_PER_SECTION, pmd++) {
		if (pmd_none(*pmd))
			continue;
		/* Another task that did not wait was faster. */
		if (!memmap_is_shared(pfn)) {
			if (!reserved)
				memmap_copy_free(*pmd, &task->pages);
			*pmd = __pmd(0);
			continue;
		}
		if (reserved)
			memcpy((void *)pmd_page_vaddr(*pmd),
			       page_address(task->pgmap->shared_block), PMD_SIZE);
		/*
		 * A CPU whose TLB still has the old entry reads the same bytes
		 * until somebody writes. Nobody writes before the bit is clear,
		 * and then no TLB has the old entry.
		 */
		addr = (unsigned long)pfn_to_page(pfn);
		spin_lock(&init_mm.page_table_lock);
		/* The copy is visible before its entry is. */
		smp_wmb();
		set_pmd(pmd_off_k(addr), *pmd);
		spin_unlock(&init_mm.page_table_lock);
		start = last ? start : addr;
		end = addr + PMD_SIZE;
		last = pmd;
	}
	if (!last)
		goto unlock;

	/*
	 * x86: to flush any address of a large page is to flush all of it, even if
	 * the TLB has it in smaller parts, as long as a large page is mapped there.
	 * A range of 512 pages would be flushed with all else in every TLB.
	 */
	if (end - start == PMD_SIZE && list_empty(&task->pages))
		memmap_flush_tlb(start, start + PAGE_SIZE);
	else
		memmap_flush_tlb(start, end);
	/*
	 * The page table maps the shared block until here: no TLB may have entries
	 * of two sizes that lead to different pages.
	 */
	if (!list_empty(&task->pages)) {
		memmap_copy_map(*last, &task->pages);
		memmap_flush_tlb(end - PMD_SIZE, end);
	}

	for (pfn = task->pfn, pmd = task->pmds; pfn < task->end_pfn;
	     pfn += PAGES_PER_SECTION, pmd++) {
		if (pmd_none(*pmd))
			continue;
		memmap_own_compound(pfn_to_page(pfn), task->pgmap->vmemmap_shift);
		clear_bit_unlock(SECTION_MEMMAP_SHARED_BIT,
				 &__pfn_to_section(pfn)->section_mem_map);
		memmap_pages_add(BLOCK_PAGES);
	}
unlock:
	mutex_unlock(&memmap_shared_lock);
}

/*
 * Populate the sections from @pfn on, at least the first of them.
 *
 * Memory is allocated before memmap_shared_lock is taken: reclaim may wait for a
 * task that waits for the lock.
 */
static int memmap_populate(struct dev_pagemap *pgmap, unsigned long pfn,
			   unsigned long end_pfn, gfp_t gfp)
{
	struct memmap_populate task = {
		.node = LIST_HEAD_INIT(task.node),
		.pgmap = pgmap,
		.pfn = pfn,
		/* A reserved block is written under the mutex: one at a time. */
		.end_pfn = min(end_pfn, pfn + PAGES_PER_SECTION *
			       (pgmap_altmap(pgmap) ? 1 : BATCH_SECTIONS)),
		.gfp = current_gfp_context(gfp),
		.pages = LIST_HEAD_INIT(task.pages),
	};
	int err;

	/* memunmap_pages() waits until it is done. */
	if (!percpu_ref_tryget_live(&pgmap->ref))
		return -ENODEV;
	/* The OOM killer may need this task to exit before the other one goes on. */
	if (wait_event_killable(memmap_populating_wait, memmap_populate_begin(&task))) {
		err = -EINTR;
	} else if (list_empty(&task.node)) {
		err = 0;
	} else {
		err = memmap_populate_copy(&task);
		memmap_populate_map(&task);
		memmap_populate_end(&task);
	}
	percpu_ref_put(&pgmap->ref);
	return err;
}

/**
 * pgmap_populate_memmap() - make struct pages of a device writable
 * @pgmap: the device's
 * @pfn: the first of its pages that will be used
 * @nr_pages: number of these pages
 * @gfp: GFP_KERNEL, GFP_NOFS or GFP_NOIO, with __GFP_RETRY_MAYFAIL if the caller
 *	can do without these pages
 *
 * A driver that sets PGMAP_SHARED_MEMMAP calls this before it initialises the
 * pages with zone_device_page_init(), or writes to their struct pages in any
 * other way. @pgmap must not be freed meanwhile. Is cheap if the pages have been
 * used before.
 *
 * Allocates memory and sleeps, or waits for a task that does so with no more of
 * __GFP_IO and __GFP_FS. So the caller must not hold a lock that reclaim needs, as
 * for any allocation by @gfp. That includes all locks that an MMU notifier takes.
 * Lockdep checks in each call what it knows: the locks of reclaim with __GFP_FS,
 * and those of notifiers.
 *
 * Return: 0, -EINVAL if a section that shares its memmap is not of @pgmap,
 * -ENODEV if @pgmap is being unmapped, -ENOMEM if memory is short, or -EINTR if
 * the task was killed while it waited. Unless it is 0, the pages must not be used.
 * Without __GFP_RETRY_MAYFAIL memory is short only for a task that the OOM killer
 * has chosen or that dumps core.
 */
int pgmap_populate_memmap(struct dev_pagemap *pgmap, unsigned long pfn,
			  unsigned long nr_pages, gfp_t gfp)
{
	const unsigned long end_pfn = pfn + nr_pages;
	int err;

	might_alloc(gfp);
	if (!nr_pages)
		return 0;
	while ((pfn = memmap_next_shared(pfn, end_pfn)) < end_pfn) {
		err = memmap_populate(pgmap, pfn, end_pfn, gfp);
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
 * @gfp: as for pgmap_populate_memmap()
 *
 * Does what pgmap_populate_memmap() does, for a caller that does not know
 * whether the pages are of a device that shares its memmap, or have struct pages
 * at all. The caller keeps the device bound meanwhile.
 *
 * Return: 0, or an error of pgmap_populate_memmap().
 */
int pfn_populate_memmap(unsigned long pfn, unsigned long nr_pages, gfp_t gfp)
{
	const unsigned long end_pfn = pfn + nr_pages;
	struct dev_pagemap *pgmap;
	unsigned long next;
	int err;

	might_alloc(gfp);
	if (!nr_pages)
		return 0;
	while ((pfn = memmap_next_shared(pfn, end_pfn)) < end_pfn) {
		/*
		 * Not page_pgmap(): the section may be populated meanwhile, and
		 * a page in use has no pgmap while its order changes.
		 */
		pgmap = get_dev_pagemap(pfn);
		if (!pgmap)
			return -ENODEV;
		/* The pages after those of this device may be of another one. */
		next = pfn + PAGES_PER_SECTION;
		while (next < end_pfn && pgmap_pfn_valid(pgmap, next))
			next += PAGES_PER_SECTION;
		err = pgmap_populate_memmap(pgmap, pfn, min(next, end_pfn) - pfn, gfp);
		put_dev_pagemap(pgmap);
		if (err)
			return err;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(pfn_populate_memmap);
