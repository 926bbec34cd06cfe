// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests for pages that a driver keeps offline while their memory block
 * goes online.
 *
 * The pages come from the allocator. Without their reference they are as an
 * online_page_callback gets them.
 */
#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/stop_machine.h>
#include <linux/string.h>

#define KEPT_ORDER	4
#define KEPT_NR_PAGES	BIT(KEPT_ORDER)

struct kept_test {
	struct page *pages;
	struct page before[KEPT_NR_PAGES];
	struct page after[KEPT_NR_PAGES];
};

static int kept_test_init(struct kunit *test)
{
	struct kept_test *kt = kunit_kzalloc(test, sizeof(*kt), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, kt);
	test->priv = kt;
	kt->pages = alloc_pages(GFP_KERNEL, KEPT_ORDER);
	KUNIT_ASSERT_NOT_NULL(test, kt->pages);
	set_page_count(kt->pages, 0);
	memcpy(kt->before, kt->pages, sizeof(kt->before));
	return 0;
}

static void kept_test_exit(struct kunit *test)
{
	struct kept_test *kt = test->priv;

	if (!kt || !kt->pages)
		return;
	set_page_count(kt->pages, 1);
	__free_pages(kt->pages, KEPT_ORDER);
}

static void kept_pages_are_offline_test(struct kunit *test)
{
	struct kept_test *kt = test->priv;
	unsigned int i;

	/* All but the first and the last page. */
	keep_pages_offline(kt->pages + 1, KEPT_NR_PAGES - 2);
	for (i = 0; i < KEPT_NR_PAGES; i++) {
		struct page *page = kt->pages + i;
		bool kept = i && i != KEPT_NR_PAGES - 1;

		KUNIT_EXPECT_EQ_MSG(test, page_count(page), kept, "page %u", i);
		KUNIT_EXPECT_EQ_MSG(test, !!PageOffline(page), kept, "page %u", i);
		if (kept)
			__ClearPageOffline(page);
		set_page_count(page, 0);
	}
	/* Nothing else has changed. */
	KUNIT_EXPECT_MEMEQ(test, kt->pages, kt->before, sizeof(kt->before));
}

static int kept_online(void *data)
{
	struct kept_test *kt = data;

	online_kept_page(kt->pages, KEPT_ORDER);
	memcpy(kt->after, kt->pages, sizeof(kt->after));
	return 0;
}

static void kept_pages_go_online_test(struct kunit *test)
{
	struct kept_test *kt = test->priv;
	struct zone *zone = page_zone(kt->pages);
	unsigned long managed = zone_managed_pages(zone);
	unsigned int i;

	keep_pages_offline(kt->pages, KEPT_NR_PAGES);
	/* Nobody else may allocate the pages before they are looked at. */
	KUNIT_ASSERT_EQ(test, 0, stop_machine(kept_online, kt, NULL));
	KUNIT_EXPECT_EQ(test, zone_managed_pages(zone), managed + KEPT_NR_PAGES);
	adjust_managed_page_count(kt->pages, -(long)KEPT_NR_PAGES);
	/* They are the allocator's now. */
	kt->pages = NULL;

	for (i = 0; i < KEPT_NR_PAGES; i++) {
		KUNIT_EXPECT_EQ_MSG(test, page_ref_count(&kt->after[i]), 0, "page %u", i);
		KUNIT_EXPECT_FALSE_MSG(test, PageOffline(&kt->after[i]), "page %u", i);
	}
}

static struct kunit_case kept_test_cases[] = {
	KUNIT_CASE(kept_pages_are_offline_test),
	KUNIT_CASE(kept_pages_go_online_test),
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
