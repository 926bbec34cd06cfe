// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests for pages that a driver keeps offline while their memory block
 * goes online.
 *
 * The pages come from the allocator. Their struct pages are overwritten before
 * they go online, as nothing is known of them then.
 */
#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/stop_machine.h>
#include <linux/string.h>

#include "../mm_init.h"

/* The driver decides for pieces of this many pages. */
#define PIECE_ORDER	4
#define PIECE_PAGES	BIT(PIECE_ORDER)

enum piece { PIECE_ONLINE, PIECE_KEPT, PIECE_UNNAMED, PIECE_ONE_BY_ONE, PIECE_KEPT_TOO, NR_PIECES };

struct kept_test {
	struct page *pages;
	bool given;		/* to the allocator */
	struct zone *zone;
	unsigned long managed;
	struct page after[MAX_ORDER_NR_PAGES];
};

static enum piece piece_of(unsigned long i)
{
	return i / PIECE_PAGES % NR_PIECES;
}

static bool is_kept(unsigned long i)
{
	return piece_of(i) != PIECE_ONLINE && piece_of(i) != PIECE_ONE_BY_ONE;
}

static void kept_online_page(struct page *page, unsigned int order)
{
	unsigned long i, j;

	for (i = 0; i < 1UL << order; i += PIECE_PAGES, page += PIECE_PAGES) {
		switch (piece_of(i)) {
		case PIECE_ONLINE:
			generic_online_page(page, PIECE_ORDER);
			break;
		case PIECE_ONE_BY_ONE:
			for (j = 0; j < PIECE_PAGES; j++)
				generic_online_page(page + j, 0);
			break;
		case PIECE_UNNAMED:
			break;
		default:
			keep_pages_offline(page, PIECE_PAGES);
		}
	}
}

static int kept_test_init(struct kunit *test)
{
	struct kept_test *kt = kvzalloc(sizeof(*kt), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, kt);
	test->priv = kt;
	kt->pages = alloc_pages(GFP_KERNEL, MAX_PAGE_ORDER);
	KUNIT_ASSERT_NOT_NULL(test, kt->pages);
	kt->zone = page_zone(kt->pages);
	kt->managed = zone_managed_pages(kt->zone);
	return 0;
}

static void kept_test_exit(struct kunit *test)
{
	struct kept_test *kt = test->priv;

	if (kt && kt->pages && !kt->given)
		__free_pages(kt->pages, MAX_PAGE_ORDER);
	kvfree(kt);
}

/* All other CPUs are stopped: they might look at the garbage, or allocate pages. */
static int kept_go_online(void *data)
{
	struct kept_test *kt = data;
	const unsigned long pfn = page_to_pfn(kt->pages);
	unsigned long i;

	kt->given = true;
	/* Each page looks like a free buddy of a piece. */
	memset(kt->pages, PGTY_buddy, sizeof(kt->after));
	for (i = 0; i < MAX_ORDER_NR_PAGES; i++) {
		set_page_links(kt->pages + i, zone_idx(kt->zone),
			       zone_to_nid(kt->zone), pfn + i);
		set_page_private(kt->pages + i, PIECE_ORDER);
	}
	online_section_pages(kt->zone, pfn, pfn + MAX_ORDER_NR_PAGES);
	memcpy(kt->after, kt->pages, sizeof(kt->after));
	return 0;
}

static int kept_go_back(void *data)
{
	struct kept_test *kt = data;
	unsigned long i;

	for (i = 0; i < MAX_ORDER_NR_PAGES; i += PIECE_PAGES)
		if (is_kept(i))
			online_kept_page(kt->pages + i, PIECE_ORDER);
	memcpy(kt->after, kt->pages, sizeof(kt->after));
	return 0;
}

static void kept_expect(struct kunit *test, unsigned long i, bool kept)
{
	struct kept_test *kt = test->priv;
	struct page *page = &kt->after[i];

	KUNIT_EXPECT_EQ_MSG(test, page_ref_count(page), kept, "page %lu", i);
	KUNIT_EXPECT_EQ_MSG(test, !!PageOffline(page), kept, "page %lu", i);
	KUNIT_EXPECT_EQ_MSG(test, page_zonenum(page), zone_idx(kt->zone), "page %lu", i);
	KUNIT_EXPECT_EQ_MSG(test, page->flags.f & PAGE_FLAGS_CHECK_AT_PREP, 0UL, "page %lu", i);
	KUNIT_EXPECT_NULL_MSG(test, page->mapping, "page %lu", i);
	if (kept)
		KUNIT_EXPECT_PTR_EQ_MSG(test, page->lru.next, &kt->pages[i].lru, "page %lu", i);
}

/* Return how many pages of the zone the test has added. */
static unsigned long kept_added(struct kept_test *kt)
{
	return zone_managed_pages(kt->zone) - kt->managed;
}

static void kept_pages_test(struct kunit *test)
{
	struct kept_test *kt = test->priv;
	unsigned long i, nr_online = 0;

	if (set_online_page_callback(kept_online_page))
		kunit_skip(test, "a driver has an online_page_callback");
	mem_hotplug_begin();
	stop_machine_cpuslocked(kept_go_online, kt, NULL);
	mem_hotplug_done();
	KUNIT_EXPECT_EQ(test, 0, restore_online_page_callback(kept_online_page));

	for (i = 0; i < MAX_ORDER_NR_PAGES; i++) {
		kept_expect(test, i, is_kept(i));
		nr_online += !is_kept(i);
	}
	KUNIT_EXPECT_EQ(test, kept_added(kt), nr_online);

	stop_machine(kept_go_back, kt, NULL);
	for (i = 0; i < MAX_ORDER_NR_PAGES; i++)
		if (is_kept(i))
			kept_expect(test, i, false);
	KUNIT_EXPECT_EQ(test, kept_added(kt), MAX_ORDER_NR_PAGES);
	adjust_managed_page_count(kt->pages, -(long)MAX_ORDER_NR_PAGES);
}

static void all_pages_go_online_test(struct kunit *test)
{
	struct kept_test *kt = test->priv;
	unsigned long i;

	mem_hotplug_begin();
	stop_machine_cpuslocked(kept_go_online, kt, NULL);
	mem_hotplug_done();
	for (i = 0; i < MAX_ORDER_NR_PAGES; i++)
		kept_expect(test, i, false);
	KUNIT_EXPECT_EQ(test, kept_added(kt), MAX_ORDER_NR_PAGES);
	adjust_managed_page_count(kt->pages, -(long)MAX_ORDER_NR_PAGES);
}

/* Calls for pages that do not go online now are reported, and do nothing. */
static void other_pages_test(struct kunit *test)
{
	struct kept_test *kt = test->priv;

	kunit_warning_suppress(test) {
		generic_online_page(kt->pages, MAX_PAGE_ORDER);
		keep_pages_offline(kt->pages, MAX_ORDER_NR_PAGES);
		KUNIT_EXPECT_SUPPRESSED_WARNING_COUNT(test, 2);
	}
	KUNIT_EXPECT_EQ(test, page_count(kt->pages), 1);
	KUNIT_EXPECT_FALSE(test, PageOffline(kt->pages));
	KUNIT_EXPECT_EQ(test, kept_added(kt), 0UL);
}

static struct kunit_case kept_test_cases[] = {
	KUNIT_CASE(kept_pages_test),
	KUNIT_CASE(all_pages_go_online_test),
	KUNIT_CASE(other_pages_test),
	{}
};

static struct kunit_suite kept_test_suite = {
	.name = "added_memory",
	.init = kept_test_init,
	.exit = kept_test_exit,
	.test_cases = kept_test_cases,
};

kunit_test_suite(kept_test_suite);

MODULE_DESCRIPTION("KUnit tests for pages that a driver keeps offline");
MODULE_LICENSE("GPL");
