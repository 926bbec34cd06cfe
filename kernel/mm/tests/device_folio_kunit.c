// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests for the struct pages of device folios.
 *
 * The pages are an array with leftovers in all fields. Each test initialises a
 * folio there twice, with zone_device_page_init() and one field after the other,
 * and compares all bytes. Both write to the same place, as the pages point to
 * each other.
 */
#include <kunit/test.h>
#include <linux/array_size.h>
#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/log2.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/percpu-refcount.h>
#include <linux/prandom.h>
#include <linux/string.h>

#define FOLIO_SEED	0x666f6c696fULL
#define FOLIO_MAX_ORDER	9
/* Pages on both sides of a folio, which must not change. */
#define FOLIO_GUARD	BIT(FOLIO_MAX_ORDER)
#define FOLIO_NR_PAGES	(FOLIO_GUARD + BIT(FOLIO_MAX_ORDER) + FOLIO_GUARD)
#define FOLIO_BYTES	(FOLIO_NR_PAGES * sizeof(struct page))
/*
 * In the flags of a page, the head, and in those of the first tail, the order.
 * Any page can have been exclusive to a process.
 */
#define FOLIO_FLAGS	(0xffUL | BIT(PG_anon_exclusive))

static const unsigned int folio_orders[] = { 0, 1, 2, 3, 5, FOLIO_MAX_ORDER };

struct folio_test {
	struct dev_pagemap pgmap;
	struct page *pages;	/* naturally aligned, as a memmap is */
	void *before;		/* their contents before the test */
	void *result;		/* their contents after zone_device_page_init() */
};

static void folio_release(struct percpu_ref *ref)
{
	complete(&container_of(ref, struct dev_pagemap, ref)->done);
}

static void folio_fill(struct folio_test *ft)
{
	struct rnd_state rnd;
	unsigned long i;

	prandom_seed_state(&rnd, FOLIO_SEED);
	prandom_bytes_state(&rnd, ft->pages, FOLIO_BYTES);
	for (i = 0; i < FOLIO_NR_PAGES; i++) {
		struct page *page = ft->pages + i;

		page->flags.f &= FOLIO_FLAGS;
		set_page_zone(page, ZONE_DEVICE);
		/* Free pages have these, and debug kernels check it. */
		set_page_count(page, 0);
		set_page_private(page, 0);
	}
}

/* A single page that was never part of a larger folio. */
static void folio_reset_page(struct page *page, struct dev_pagemap *pgmap)
{
	struct folio *folio = (struct folio *)page;

	page->flags.f &= ~FOLIO_FLAGS;
#ifdef NR_PAGES_IN_LARGE_FOLIO
	/* _nr_pages is in the struct page that follows the folio's first one. */
	((struct folio *)(page - 1))->_nr_pages = 0;
#endif
	folio->mapping = NULL;
	folio->pgmap = pgmap;
	folio->share = 0;
}

static int folio_test_init(struct kunit *test)
{
	struct folio_test *ft = kunit_kzalloc(test, sizeof(*ft), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ft);
	test->priv = ft;
	ft->before = kunit_kmalloc(test, FOLIO_BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ft->before);
	ft->result = kunit_kmalloc(test, FOLIO_BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ft->result);
	/* A power of two is naturally aligned, and so is the folio in it. */
	ft->pages = kunit_kmalloc(test, roundup_pow_of_two(FOLIO_BYTES), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ft->pages);
	folio_fill(ft);
	memcpy(ft->before, ft->pages, FOLIO_BYTES);

	init_completion(&ft->pgmap.done);
	KUNIT_ASSERT_EQ(test, 0, percpu_ref_init(&ft->pgmap.ref, folio_release,
						 PERCPU_REF_INIT_ATOMIC, GFP_KERNEL));
	return 0;
}

static void folio_test_exit(struct kunit *test)
{
	struct folio_test *ft = test->priv;

	if (!ft || !ft->pgmap.ref.data)
		return;
	/* A folio took as many references as it has pages, and the test put them. */
	percpu_ref_kill(&ft->pgmap.ref);
	KUNIT_EXPECT_TRUE(test, completion_done(&ft->pgmap.done));
	percpu_ref_exit(&ft->pgmap.ref);
}

static void device_folio_init_test(struct kunit *test)
{
	struct folio_test *ft = test->priv;
	struct page *head = ft->pages + FOLIO_GUARD;
	unsigned int i, order;
	unsigned long nr;

	for (i = 0; i < ARRAY_SIZE(folio_orders); i++) {
		order = folio_orders[i];
		zone_device_page_init(head, &ft->pgmap, order);
		percpu_ref_put_many(&ft->pgmap.ref, 1UL << order);
		memcpy(ft->result, ft->pages, FOLIO_BYTES);

		memcpy(ft->pages, ft->before, FOLIO_BYTES);
		for (nr = 0; nr < 1UL << order; nr++)
			folio_reset_page(head + nr, &ft->pgmap);
		if (order)
			prep_compound_page(head, order);
		set_page_count(head, 1);
		__folio_set_locked((struct folio *)head);

		for (nr = 0; nr < FOLIO_NR_PAGES; nr++)
			KUNIT_EXPECT_MEMEQ_MSG(test, ft->result + nr * sizeof(struct page),
					       ft->pages + nr, sizeof(struct page),
					       "order %u, page %ld", order,
					       (long)nr - (long)FOLIO_GUARD);
		memcpy(ft->pages, ft->before, FOLIO_BYTES);
	}
}

static struct kunit_case device_folio_cases[] = {
	KUNIT_CASE(device_folio_init_test),
	{}
};

static struct kunit_suite device_folio_suite = {
	.name = "device_folio",
	.init = folio_test_init,
	.exit = folio_test_exit,
	.test_cases = device_folio_cases,
};

kunit_test_suite(device_folio_suite);

MODULE_DESCRIPTION("KUnit tests for the struct pages of device folios");
MODULE_LICENSE("GPL");
