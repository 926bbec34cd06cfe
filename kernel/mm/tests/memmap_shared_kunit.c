// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests for the memmap that sections of a device share.
 *
 * Each test maps device memory, as if memmap_shared=1 had been given.
 */
#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <kunit/test-bug.h>
#include <linux/array_size.h>
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/ioport.h>
#include <linux/kthread.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/set_memory.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include <asm/tlbflush.h>

#include "../memmap_shared.h"

#define SHARED_SECTIONS		4UL
#define SHARED_PAGES		(SHARED_SECTIONS * PAGES_PER_SECTION)
#define SHARED_BYTES		(SHARED_PAGES * sizeof(struct page))
#define SHARED_ROUNDS		16
#define SHARED_TASKS		4U
#define SHARED_HERD		16U
/* Single pages with the memmap of a section, and their page table. */
#define SHARED_SINGLE		(1U + PTRS_PER_PTE)

struct shared_test {
	struct dev_pagemap pgmap;
	struct resource *res;
	enum memory_type type;	/* of the memory that is mapped next */
	unsigned int order;	/* of its compounds */
	bool mapped;
	bool enabled;		/* memmap_shared_enabled before the test */
	void *before;		/* a copy of struct pages */
	struct page *pages[SHARED_SINGLE];	/* what shared_single() allocated */
	unsigned int nr;	/* pages in that array */
	unsigned int limit;	/* most pages that shared_single() allocates */
	unsigned int overtaken;	/* with so many, it acts as a faster task; 0: never */
	unsigned int blocks;	/* how many blocks it allocates */
	gfp_t gfp[2];		/* of the last block, and of the last page */
	unsigned int flushes;	/* calls of shared_flush() */
	unsigned long flushed;	/* bytes in these */
	atomic_t allocs;	/* calls of shared_slow() or shared_held() */
	struct completion held;	/* shared_held() waits for @release */
	struct completion release;
	int nid;		/* of all mappings: a test may move between nodes */
};

struct shared_task {
	struct work_struct work;
	struct completion done;
	struct kunit *test;
	unsigned long pfn;
	gfp_t gfp;
	int err;
};

static vm_fault_t shared_migrate(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

static void shared_free(struct folio *folio)
{
}

static const struct dev_pagemap_ops shared_ops = {
	.folio_free = shared_free,
	.migrate_to_ram = shared_migrate,
};

static unsigned long shared_pfn(struct shared_test *st, unsigned long section)
{
	return PHYS_PFN(st->res->start) + section * PAGES_PER_SECTION;
}

/* Map the memory from @skip bytes on. */
static void shared_map(struct kunit *test, unsigned int flags, unsigned long skip)
{
	struct shared_test *st = test->priv;

	memset(&st->pgmap, 0, sizeof(st->pgmap));
	st->pgmap.type = st->type;
	st->pgmap.vmemmap_shift = st->order;
	st->pgmap.flags = flags;
	st->pgmap.ops = &shared_ops;
	st->pgmap.owner = st;
	st->pgmap.nr_range = 1;
	st->pgmap.range.start = st->res->start + skip;
	st->pgmap.range.end = st->res->end;
	KUNIT_ASSERT_FALSE(test, IS_ERR(memremap_pages(&st->pgmap, st->nid)));
	st->mapped = true;
}

static void shared_unmap(struct shared_test *st)
{
	memunmap_pages(&st->pgmap);
	st->mapped = false;
}

static int shared_populate(struct shared_test *st, unsigned long pfn, unsigned long nr)
{
	return pgmap_populate_memmap(&st->pgmap, pfn, nr, GFP_KERNEL);
}

/* How many sections are shared; those that a test does not map do not count. */
static unsigned long shared_count(struct shared_test *st, unsigned long first)
{
	unsigned long section, nr = 0;

	for (section = first; section < SHARED_SECTIONS; section++)
		nr += memmap_is_shared(shared_pfn(st, section));
	return nr;
}

static void shared_copy(struct shared_test *st)
{
	memcpy(st->before, pfn_to_page(shared_pfn(st, 0)), SHARED_BYTES);
}

/* Compare all struct pages with the copy, but for those of @nr pages from @pfn. */
static void shared_compare(struct kunit *test, unsigned long pfn, unsigned long nr)
{
	struct shared_test *st = test->priv;
	const unsigned long first = shared_pfn(st, 0);
	const struct page *before = st->before;
	unsigned long i;

	for (i = 0; i < SHARED_PAGES; i++) {
		if (first + i >= pfn && first + i < pfn + nr)
			continue;
		if (!memcmp(before + i, pfn_to_page(first + i), sizeof(*before)))
			continue;
		KUNIT_FAIL(test, "page %lu of %lu differs", i, SHARED_PAGES);
		return;
	}
}

static void shared_mark(unsigned long pfn, unsigned long nr)
{
	for (; nr; nr--, pfn++)
		pfn_to_page(pfn)->zone_device_data = pfn_to_page(pfn);
}

static void shared_expect_marked(struct kunit *test, unsigned long pfn, unsigned long nr)
{
	for (; nr; nr--, pfn++)
		KUNIT_ASSERT_PTR_EQ(test, pfn_to_page(pfn)->zone_device_data,
				    (void *)pfn_to_page(pfn));
}

static int shared_init(struct kunit *test)
{
	struct shared_test *st = kunit_kzalloc(test, sizeof(*st), GFP_KERNEL);

	if (PAGES_PER_SECTION * sizeof(struct page) != PMD_SIZE ||
	    !cpu_feature_enabled(X86_FEATURE_PSE))
		kunit_skip(test, "the vmemmap of a section is not one PMD");
	KUNIT_ASSERT_NOT_NULL(test, st);
	st->before = vmalloc(SHARED_BYTES);
	KUNIT_ASSERT_NOT_NULL(test, st->before);
	test->priv = st;
	st->nid = numa_mem_id();
	st->enabled = memmap_shared_enabled;
	memmap_shared_enabled = true;
	st->res = request_free_mem_region(&iomem_resource,
					  PFN_PHYS(SHARED_PAGES), "memmap_shared");
	KUNIT_ASSERT_FALSE(test, IS_ERR(st->res));

	st->type = MEMORY_DEVICE_PRIVATE;
	shared_map(test, PGMAP_SHARED_MEMMAP, 0);
	return 0;
}

static void shared_exit(struct kunit *test)
{
	struct shared_test *st = test->priv;

	if (!st)
		return;
	if (st->mapped)
		shared_unmap(st);
	while (st->nr)
		__free_page(st->pages[--st->nr]);
	if (!IS_ERR_OR_NULL(st->res))
		release_mem_region(st->res->start, resource_size(st->res));
	vfree(st->before);
	memmap_shared_enabled = st->enabled;
}

/* A memmap that is shared reads as one that is not. */
static void shared_reads_test(struct kunit *test)
{
	struct shared_test *st = test->priv;

	KUNIT_EXPECT_EQ(test, shared_count(st, 0), SHARED_SECTIONS);
	shared_copy(st);
	shared_unmap(st);

	shared_map(test, 0, 0);
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), 0UL);
	/* The flags of the pgmap are all that differs, and no struct page has them. */
	shared_compare(test, 0, 0);
}

static void shared_populate_test(struct kunit *test)
{
	struct shared_test *st = test->priv;
	const unsigned long pfn = shared_pfn(st, 1) + 5;

	shared_copy(st);
	KUNIT_ASSERT_EQ(test, 0, shared_populate(st, pfn, 1));
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), SHARED_SECTIONS - 1);
	KUNIT_EXPECT_FALSE(test, memmap_is_shared(pfn));
	shared_compare(test, 0, 0);

	shared_mark(pfn, 1);
	shared_compare(test, pfn, 1);

	/* Once more, which must not write. */
	KUNIT_ASSERT_EQ(test, 0, shared_populate(st, pfn - 1, 3));
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), SHARED_SECTIONS - 1);
	shared_expect_marked(test, pfn, 1);
	shared_compare(test, pfn, 1);
}

/* The sections that a range touches are populated, and no others. */
static void shared_range_test(struct kunit *test)
{
	static const struct {
		long start, nr;
		unsigned long populated;
	} ranges[] = {
		{ PAGES_PER_SECTION + 1, 0, 0 },
		{ PAGES_PER_SECTION, PAGES_PER_SECTION, 1 },
		{ PAGES_PER_SECTION - 1, 1, 1 },
		{ PAGES_PER_SECTION - 1, 2, 2 },
		{ PAGES_PER_SECTION - 1, PAGES_PER_SECTION + 2, 3 },
		{ 0, SHARED_PAGES, SHARED_SECTIONS },
	};
	struct shared_test *st = test->priv;
	unsigned long pfn;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		pfn = shared_pfn(st, 0) + ranges[i].start;
		KUNIT_ASSERT_EQ(test, 0, shared_populate(st, pfn, ranges[i].nr));
		KUNIT_EXPECT_EQ_MSG(test, shared_count(st, 0),
				    SHARED_SECTIONS - ranges[i].populated, "range %u", i);
		shared_mark(pfn, ranges[i].nr);
		shared_expect_marked(test, pfn, ranges[i].nr);
		shared_unmap(st);
		shared_map(test, PGMAP_SHARED_MEMMAP, 0);
	}
}

/* A section that the device has in part has a memmap of its own. */
static void shared_part_test(struct kunit *test)
{
	struct shared_test *st = test->priv;

	shared_unmap(st);
	shared_map(test, PGMAP_SHARED_MEMMAP, SUBSECTION_SIZE);
	KUNIT_EXPECT_FALSE(test, memmap_is_shared(shared_pfn(st, 0)));
	KUNIT_EXPECT_EQ(test, shared_count(st, 1), SHARED_SECTIONS - 1);
	shared_mark(shared_pfn(st, 0) + PAGES_PER_SUBSECTION,
		    PAGES_PER_SECTION - PAGES_PER_SUBSECTION);
}

static void shared_folio_test(struct kunit *test)
{
	struct shared_test *st = test->priv;
	const unsigned long pfn = shared_pfn(st, 2);
	struct folio *folio = page_folio(pfn_to_page(pfn));

	shared_copy(st);
	KUNIT_ASSERT_EQ(test, 0, shared_populate(st, pfn, 1UL << PMD_ORDER));
	zone_device_folio_init(folio, &st->pgmap, PMD_ORDER);
	KUNIT_EXPECT_EQ(test, folio_order(folio), (unsigned int)PMD_ORDER);
	shared_compare(test, pfn, 1UL << PMD_ORDER);
	folio_unlock(folio);
	folio_put(folio);
}

/* fsdax shares as well, and is populated by PFN. No CPU accesses the memory. */
static void shared_fsdax_test(struct kunit *test)
{
	struct shared_test *st = test->priv;
	const unsigned long pfn = shared_pfn(st, 3) - 1;

	shared_unmap(st);
	st->type = MEMORY_DEVICE_FS_DAX;
	shared_map(test, 0, 0);
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), 0UL);
	shared_copy(st);
	shared_unmap(st);

	shared_map(test, PGMAP_SHARED_MEMMAP, 0);
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), SHARED_SECTIONS);
	shared_compare(test, 0, 0);
	KUNIT_ASSERT_EQ(test, 0, pfn_populate_memmap(pfn, 2, GFP_KERNEL));
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), SHARED_SECTIONS - 2);
	shared_mark(pfn, 2);
	shared_compare(test, pfn, 2);
	KUNIT_ASSERT_EQ(test, 0, pfn_populate_memmap(pfn, 2, GFP_KERNEL));
	shared_expect_marked(test, pfn, 2);
}

/*
 * Compounds of devdax share if their tail pages hold a mask. They read as those of
 * a memmap written at the bind; _deferred_list does so once a section is populated.
 */
static void shared_compound_test(struct kunit *test)
{
	const unsigned long shared = compound_info_has_mask() ? SHARED_SECTIONS : 0;
	struct shared_test *st = test->priv;
	struct page *before = st->before;
	struct folio *folio;
	unsigned long i;

	shared_unmap(st);
	st->type = MEMORY_DEVICE_DEVDAX;
	st->order = PMD_ORDER;
	shared_map(test, 0, 0);
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), 0UL);
	shared_copy(st);
	shared_unmap(st);

	shared_map(test, PGMAP_SHARED_MEMMAP, 0);
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), shared);
	KUNIT_ASSERT_EQ(test, 0, shared_populate(st, shared_pfn(st, 1), 1));
	for (i = 0; i < SHARED_PAGES; i += 1UL << PMD_ORDER) {
		if (!memmap_is_shared(shared_pfn(st, 0) + i))
			continue;
		folio = (struct folio *)(before + i);
		memset(&folio->_deferred_list, 0, sizeof(folio->_deferred_list));
	}
	shared_compare(test, 0, 0);
}

/*
 * A task may find that a section is shared, and look at its first page only when
 * another task has populated it and resets a folio there: the page has no pgmap.
 */
static void shared_reset_test(struct kunit *test)
{
	struct shared_test *st = test->priv;
	struct page *block = st->pgmap.shared_block;
	struct folio *first = page_address(block);

	KUNIT_ASSERT_EQ(test, 0, set_memory_rw((unsigned long)first, 1));
	first->pgmap = NULL;
	KUNIT_ASSERT_EQ(test, 0, set_memory_ro((unsigned long)first, 1));
	KUNIT_EXPECT_EQ(test, 0, pfn_populate_memmap(shared_pfn(st, 0), 1, GFP_KERNEL));
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), SHARED_SECTIONS - 1);
}

/* Pages of other types have a reference from the start, or other users. */
static void shared_type_test(struct kunit *test)
{
	struct shared_test *st = test->priv;

	shared_unmap(st);
	st->type = MEMORY_DEVICE_GENERIC;
	shared_map(test, PGMAP_SHARED_MEMMAP, 0);
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), 0UL);
}

/* Ordinary memory has a memmap of its own. */
static void shared_ordinary_test(struct kunit *test)
{
	struct page *page = alloc_page(GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, 0, pfn_populate_memmap(page_to_pfn(page), 1, GFP_KERNEL));
	__free_page(page);
	/* This one has no section. */
	KUNIT_EXPECT_EQ(test, 0, pfn_populate_memmap(PHYS_PFN(~0UL), 1, GFP_KERNEL));
}

/*
 * Allocate single pages up to the limit, and keep a reference to each. Allocate a
 * few blocks first, or none.
 */
static struct page *shared_single(int nid, unsigned int order, gfp_t gfp)
{
	struct shared_test *st = kunit_get_current_test()->priv;
	struct page *page;

	st->gfp[!order] = gfp;
	if (order && st->blocks) {
		st->blocks--;
		return alloc_pages_node(nid, GFP_KERNEL, order);
	}
	if (order || st->nr == st->limit)
		return NULL;
	page = alloc_pages_node(nid, GFP_KERNEL, 0);
	if (!page)
		return NULL;
	get_page(page);
	st->pages[st->nr++] = page;
	if (st->nr == st->overtaken) {
		kunit_deactivate_static_stub(kunit_get_current_test(), memmap_pages_alloc);
		/* By these flags it does not wait for itself. */
		pgmap_populate_memmap(&st->pgmap, shared_pfn(st, 1), 1, GFP_NOIO);
	}
	return page;
}

/* Nobody else has a reference to a page of shared_single() any more. */
static void shared_expect_freed(struct kunit *test)
{
	struct shared_test *st = test->priv;

	while (st->nr) {
		KUNIT_EXPECT_EQ(test, 1, page_count(st->pages[--st->nr]));
		__free_page(st->pages[st->nr]);
	}
}

/* If there is no block, a section gets all of its single pages or none. */
static void shared_single_test(struct kunit *test)
{
	static const unsigned int limits[] = { 0, 1, 2, SHARED_SINGLE - 1 };
	struct shared_test *st = test->priv;
	const unsigned long pfn = shared_pfn(st, 1);
	unsigned int i;

	shared_copy(st);
	kunit_activate_static_stub(test, memmap_pages_alloc, shared_single);
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		st->limit = limits[i];
		KUNIT_EXPECT_EQ(test, -ENOMEM, shared_populate(st, pfn, 1));
		KUNIT_EXPECT_EQ(test, st->nr, st->limit);
		KUNIT_EXPECT_EQ(test, shared_count(st, 0), SHARED_SECTIONS);
		shared_expect_freed(test);
	}

	st->limit = SHARED_SINGLE;
	KUNIT_EXPECT_EQ(test, 0, shared_populate(st, pfn, 1));
	KUNIT_EXPECT_EQ(test, st->nr, SHARED_SINGLE);
	KUNIT_ASSERT_EQ(test, shared_count(st, 0), SHARED_SECTIONS - 1);
	shared_compare(test, 0, 0);
	shared_mark(pfn, PAGES_PER_SECTION);
	shared_expect_marked(test, pfn, PAGES_PER_SECTION);
	shared_compare(test, pfn, PAGES_PER_SECTION);
	shared_unmap(st);
	shared_expect_freed(test);
}

/* Memory gets short in the middle of a range: what was allocated is used. */
static void shared_partial_test(struct kunit *test)
{
	struct shared_test *st = test->priv;

	shared_copy(st);
	st->blocks = 2;
	st->limit = SHARED_SINGLE;
	kunit_activate_static_stub(test, memmap_pages_alloc, shared_single);
	KUNIT_EXPECT_EQ(test, -ENOMEM, shared_populate(st, shared_pfn(st, 0), SHARED_PAGES));
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), SHARED_SECTIONS - 3);
	KUNIT_EXPECT_TRUE(test, memmap_is_shared(shared_pfn(st, 3)));
	shared_compare(test, 0, 0);
	shared_mark(shared_pfn(st, 0), 3 * PAGES_PER_SECTION);
	shared_expect_marked(test, shared_pfn(st, 0), 3 * PAGES_PER_SECTION);
	shared_compare(test, shared_pfn(st, 0), 3 * PAGES_PER_SECTION);
	shared_unmap(st);
	shared_expect_freed(test);
}

/* The caller says how to allocate single pages. A block is never worth waiting. */
static void shared_gfp_test(struct kunit *test)
{
	static const gfp_t flags[] = {
		GFP_KERNEL, GFP_NOFS, GFP_NOIO,
		GFP_KERNEL | __GFP_RETRY_MAYFAIL, GFP_NOIO | __GFP_RETRY_MAYFAIL,
	};
	struct shared_test *st = test->priv;
	unsigned int i;

	st->limit = SHARED_SINGLE;
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		kunit_activate_static_stub(test, memmap_pages_alloc, shared_single);
		KUNIT_EXPECT_EQ(test, 0, pgmap_populate_memmap(&st->pgmap, shared_pfn(st, 1),
							       1, flags[i]));
		KUNIT_EXPECT_TRUE(test, st->gfp[1] == flags[i]);
		KUNIT_EXPECT_TRUE(test, st->gfp[0] ==
				  ((flags[i] & ~__GFP_RETRY_MAYFAIL) | __GFP_NORETRY));
		kunit_deactivate_static_stub(test, memmap_pages_alloc);
		shared_unmap(st);
		shared_expect_freed(test);
		shared_map(test, PGMAP_SHARED_MEMMAP, 0);
	}
}

/* Without a block at the bind, each section has a memmap of its own. */
static void shared_no_block_test(struct kunit *test)
{
	struct shared_test *st = test->priv;

	shared_copy(st);
	shared_unmap(st);
	kunit_activate_static_stub(test, memmap_pages_alloc, shared_single);
	shared_map(test, PGMAP_SHARED_MEMMAP, 0);
	kunit_deactivate_static_stub(test, memmap_pages_alloc);
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), 0UL);
	shared_compare(test, 0, 0);
}

/* Single pages are freed if another task has populated the section meanwhile. */
static void shared_overtaken_test(struct kunit *test)
{
	struct shared_test *st = test->priv;

	st->limit = SHARED_SINGLE;
	st->overtaken = SHARED_SINGLE;
	kunit_activate_static_stub(test, memmap_pages_alloc, shared_single);
	KUNIT_EXPECT_EQ(test, 0, shared_populate(st, shared_pfn(st, 1), 1));
	KUNIT_EXPECT_EQ(test, st->nr, SHARED_SINGLE);
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), SHARED_SECTIONS - 1);
	shared_expect_freed(test);
}

static void shared_run(struct work_struct *work)
{
	struct shared_task *task = container_of(work, struct shared_task, work);
	struct shared_test *st = task->test->priv;

	/* Stubs are for this task, too. */
	current->kunit_test = task->test;
	task->err = pgmap_populate_memmap(&st->pgmap, task->pfn, 1, task->gfp);
	current->kunit_test = NULL;
	if (!task->err)
		shared_mark(task->pfn, 1);
	complete(&task->done);
}

/* Let a task populate section 1 for its page @i. */
static void shared_task_init(struct kunit *test, struct shared_task *task,
			     unsigned long i, gfp_t gfp)
{
	INIT_WORK(&task->work, shared_run);
	init_completion(&task->done);
	task->test = test;
	task->pfn = shared_pfn(test->priv, 1) + i;
	task->gfp = gfp;
}

/* Several tasks need a section at a time: none loses what another wrote. */
static void shared_race_test(struct kunit *test)
{
	struct shared_test *st = test->priv;
	struct shared_task *tasks;
	unsigned int i, round;

	tasks = kunit_kcalloc(test, SHARED_TASKS, sizeof(*tasks), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, tasks);
	for (round = 0; round < SHARED_ROUNDS; round++) {
		for (i = 0; i < SHARED_TASKS; i++) {
			shared_task_init(test, &tasks[i], 7 * i, GFP_KERNEL);
			queue_work(system_dfl_wq, &tasks[i].work);
		}
		for (i = 0; i < SHARED_TASKS; i++)
			flush_work(&tasks[i].work);
		for (i = 0; i < SHARED_TASKS; i++) {
			KUNIT_EXPECT_EQ(test, 0, tasks[i].err);
			shared_expect_marked(test, tasks[i].pfn, 1);
		}
		KUNIT_EXPECT_EQ(test, shared_count(st, 0), SHARED_SECTIONS - 1);
		shared_unmap(st);
		shared_map(test, PGMAP_SHARED_MEMMAP, 0);
	}
}

/* This takes a while, in which others come. */
static struct page *shared_slow(int nid, unsigned int order, gfp_t gfp)
{
	struct shared_test *st = kunit_get_current_test()->priv;

	atomic_inc(&st->allocs);
	msleep(100);
	return alloc_pages_node(nid, gfp, order);
}

/* Many tasks need a section at a time: one of them makes the copy. */
static void shared_herd_test(struct kunit *test)
{
	struct shared_test *st = test->priv;
	struct shared_task *tasks;
	unsigned int i;

	tasks = kunit_kcalloc(test, SHARED_HERD, sizeof(*tasks), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, tasks);
	kunit_activate_static_stub(test, memmap_pages_alloc, shared_slow);
	for (i = 0; i < SHARED_HERD; i++) {
		shared_task_init(test, &tasks[i], i, GFP_KERNEL);
		queue_work(system_dfl_wq, &tasks[i].work);
	}
	for (i = 0; i < SHARED_HERD; i++)
		flush_work(&tasks[i].work);
	for (i = 0; i < SHARED_HERD; i++) {
		KUNIT_EXPECT_EQ(test, 0, tasks[i].err);
		shared_expect_marked(test, tasks[i].pfn, 1);
	}
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&st->allocs));
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), SHARED_SECTIONS - 1);
}

/* The first allocation takes as long as the test wants. */
static struct page *shared_held(int nid, unsigned int order, gfp_t gfp)
{
	struct shared_test *st = kunit_get_current_test()->priv;

	if (atomic_inc_return(&st->allocs) == 1) {
		complete(&st->held);
		wait_for_completion(&st->release);
	}
	return alloc_pages_node(nid, gfp, order);
}

/* Let a task begin to populate section 1, and hold it there. */
static void shared_hold(struct kunit *test, struct shared_task *task, gfp_t gfp)
{
	struct shared_test *st = test->priv;

	atomic_set(&st->allocs, 0);
	init_completion(&st->held);
	init_completion(&st->release);
	kunit_activate_static_stub(test, memmap_pages_alloc, shared_held);
	shared_task_init(test, task, 0, gfp);
	queue_work(system_dfl_wq, &task->work);
	wait_for_completion(&st->held);
}

static void shared_let_go(struct kunit *test, struct shared_task *task)
{
	struct shared_test *st = test->priv;

	complete(&st->release);
	flush_work(&task->work);
	kunit_deactivate_static_stub(test, memmap_pages_alloc);
	KUNIT_EXPECT_EQ(test, 0, task->err);
	shared_expect_marked(test, task->pfn, 1);
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), SHARED_SECTIONS - 1);
}

/* A task waits for another if that is in no reclaim that is forbidden to itself. */
static void shared_reclaim_test(struct kunit *test)
{
	/* From the one that allows least. */
	static const gfp_t flags[] = { GFP_NOIO, GFP_NOFS, GFP_KERNEL };
	struct shared_test *st = test->priv;
	struct shared_task *tasks;
	unsigned long done;
	int i, j;

	tasks = kunit_kcalloc(test, 2, sizeof(*tasks), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, tasks);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		for (j = 0; j < ARRAY_SIZE(flags); j++) {
			shared_hold(test, &tasks[0], flags[i]);
			shared_task_init(test, &tasks[1], 1, flags[j]);
			queue_work(system_dfl_wq, &tasks[1].work);
			done = wait_for_completion_timeout(&tasks[1].done,
							   i <= j ? HZ / 5 : 20 * HZ);
			KUNIT_EXPECT_EQ_MSG(test, !done, i <= j, "%d %d", i, j);
			shared_let_go(test, &tasks[0]);
			flush_work(&tasks[1].work);
			KUNIT_EXPECT_EQ(test, 0, tasks[1].err);
			shared_expect_marked(test, tasks[1].pfn, 1);
			shared_unmap(st);
			shared_map(test, PGMAP_SHARED_MEMMAP, 0);
		}
	}
}

static int shared_thread(void *data)
{
	struct shared_task *task = data;

	allow_signal(SIGKILL);
	shared_run(&task->work);
	return 0;
}

/* A task that waits can be killed. */
static void shared_killed_test(struct kunit *test)
{
	struct shared_task *tasks;
	struct task_struct *thread;

	tasks = kunit_kcalloc(test, 2, sizeof(*tasks), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, tasks);
	shared_hold(test, &tasks[0], GFP_KERNEL);
	shared_task_init(test, &tasks[1], 1, GFP_KERNEL);
	thread = kthread_create(shared_thread, &tasks[1], "memmap_shared");
	if (IS_ERR(thread)) {
		KUNIT_FAIL(test, "no thread");
		goto out;
	}
	get_task_struct(thread);
	wake_up_process(thread);
	KUNIT_EXPECT_EQ(test, 0, wait_for_completion_timeout(&tasks[1].done, HZ / 5));
	send_sig(SIGKILL, thread, 1);
	KUNIT_EXPECT_NE(test, 0, wait_for_completion_timeout(&tasks[1].done, 20 * HZ));
	KUNIT_EXPECT_EQ(test, -EINTR, tasks[1].err);
out:
	shared_let_go(test, &tasks[0]);
	if (!IS_ERR(thread))
		kthread_stop_put(thread);
}

static void shared_flush(unsigned long start, unsigned long end)
{
	struct shared_test *st = kunit_get_current_test()->priv;

	st->flushes++;
	st->flushed += end - start;
	flush_tlb_kernel_range(start, end);
}

static void shared_expect_flushed(struct kunit *test, unsigned long nr,
				  unsigned int flushes, unsigned long bytes)
{
	struct shared_test *st = test->priv;

	st->flushes = 0;
	st->flushed = 0;
	KUNIT_EXPECT_EQ(test, 0, shared_populate(st, shared_pfn(st, 0), nr));
	KUNIT_EXPECT_EQ(test, st->flushes, flushes);
	KUNIT_EXPECT_EQ(test, st->flushed, bytes);
}

/* A large page is flushed by one address, many are flushed at once. */
static void shared_flushes_test(struct kunit *test)
{
	struct shared_test *st = test->priv;

	kunit_activate_static_stub(test, memmap_flush_tlb, shared_flush);
	shared_expect_flushed(test, 1, 1, PAGE_SIZE);
	shared_expect_flushed(test, 1, 0, 0);
	shared_expect_flushed(test, SHARED_PAGES, 1, (SHARED_SECTIONS - 1) * PMD_SIZE);
	shared_unmap(st);

	shared_map(test, PGMAP_SHARED_MEMMAP, 0);
	st->flushes = 0;
	KUNIT_EXPECT_EQ(test, 0, pfn_populate_memmap(shared_pfn(st, 0), SHARED_PAGES,
						     GFP_KERNEL));
	KUNIT_EXPECT_EQ(test, st->flushes, 1);
	KUNIT_EXPECT_EQ(test, shared_count(st, 0), 0UL);
	shared_unmap(st);

	/* Each part of a large page that becomes small pages, once for each of them. */
	shared_map(test, PGMAP_SHARED_MEMMAP, 0);
	st->limit = SHARED_SINGLE;
	kunit_activate_static_stub(test, memmap_pages_alloc, shared_single);
	shared_expect_flushed(test, 1, 2, 2 * PMD_SIZE);
}

struct shared_look {
	unsigned long pfn;
	void *seen;
};

static void shared_look(void *info)
{
	struct shared_look *look = info;

	look->seen = READ_ONCE(pfn_to_page(look->pfn)->zone_device_data);
}

/* A CPU that has read the shared struct pages reads the section's own later. */
static void shared_flush_test(struct kunit *test)
{
	struct shared_test *st = test->priv;
	struct shared_look look;
	unsigned long section;
	int cpu;

	for (section = 0; section < SHARED_SECTIONS; section++) {
		look.pfn = shared_pfn(st, section) + section;
		for_each_online_cpu(cpu) {
			smp_call_function_single(cpu, shared_look, &look, true);
			KUNIT_EXPECT_NULL(test, look.seen);
		}
		KUNIT_ASSERT_EQ(test, 0, shared_populate(st, look.pfn, 1));
		shared_mark(look.pfn, 1);
		for_each_online_cpu(cpu) {
			smp_call_function_single(cpu, shared_look, &look, true);
			KUNIT_EXPECT_PTR_EQ_MSG(test, look.seen, (void *)pfn_to_page(look.pfn),
						"CPU %d", cpu);
		}
	}
}

static struct kunit_case memmap_shared_cases[] = {
	KUNIT_CASE(shared_reads_test),
	KUNIT_CASE(shared_populate_test),
	KUNIT_CASE(shared_range_test),
	KUNIT_CASE(shared_part_test),
	KUNIT_CASE(shared_folio_test),
	KUNIT_CASE(shared_fsdax_test),
	KUNIT_CASE(shared_compound_test),
	KUNIT_CASE(shared_reset_test),
	KUNIT_CASE(shared_type_test),
	KUNIT_CASE(shared_ordinary_test),
	KUNIT_CASE(shared_single_test),
	KUNIT_CASE(shared_partial_test),
	KUNIT_CASE(shared_gfp_test),
	KUNIT_CASE(shared_no_block_test),
	KUNIT_CASE(shared_overtaken_test),
	KUNIT_CASE(shared_race_test),
	KUNIT_CASE(shared_herd_test),
	KUNIT_CASE(shared_reclaim_test),
	KUNIT_CASE(shared_killed_test),
	KUNIT_CASE(shared_flushes_test),
	KUNIT_CASE(shared_flush_test),
	{}
};

static struct kunit_suite memmap_shared_suite = {
	.name = "memmap_shared",
	.init = shared_init,
	.exit = shared_exit,
	.test_cases = memmap_shared_cases,
};

kunit_test_suite(memmap_shared_suite);

MODULE_DESCRIPTION("KUnit tests for the memmap that sections of a device share");
MODULE_LICENSE("GPL");
