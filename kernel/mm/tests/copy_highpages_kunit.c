// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests for copies of runs of pages.
 *
 * All words of the source and around the destination differ from each other. So
 * the tests see each word that is lost, moved, or written beside the run.
 */
#include <kunit/test.h>
#include <linux/array_size.h>
#include <linux/bits.h>
#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/mm.h>

#include "../internal.h"

/* 4 MiB with pages of 4 KiB. */
#define COPY_ORDER	10
#define COPY_PAGES	BIT(COPY_ORDER)
#define COPY_PAGE_WORDS	(PAGE_SIZE / sizeof(u64))
#define COPY_WORDS	(COPY_PAGES * COPY_PAGE_WORDS)

/* Runs begin at different places, and never at the edge. */
#define COPY_FROM	1
#define COPY_TO		2

#define COPY_SOURCE	BIT_ULL(32)
#define COPY_AROUND	BIT_ULL(33)

static const unsigned int copy_lengths[] = {
	1, 2, 15, 16, 17, 100, 511, 512, 513, COPY_PAGES - 3,
};

struct copy_pair {
	struct page *to;
	struct page *from;
};

static int copy_init(struct kunit *test)
{
	struct copy_pair *pair = kunit_kzalloc(test, sizeof(*pair), GFP_KERNEL);
	unsigned long i;
	u64 *from;

	KUNIT_ASSERT_NOT_NULL(test, pair);
	test->priv = pair;
	pair->to = alloc_pages(GFP_KERNEL | __GFP_NOWARN, COPY_ORDER);
	pair->from = alloc_pages(GFP_KERNEL | __GFP_NOWARN, COPY_ORDER);
	if (!pair->to || !pair->from)
		kunit_skip(test, "no contiguous memory");
	from = page_address(pair->from);
	for (i = 0; i < COPY_WORDS; i++)
		from[i] = COPY_SOURCE + i;
	return 0;
}

static void copy_exit(struct kunit *test)
{
	struct copy_pair *pair = test->priv;

	if (!pair)
		return;
	if (pair->to)
		__free_pages(pair->to, COPY_ORDER);
	if (pair->from)
		__free_pages(pair->from, COPY_ORDER);
}

/* Count the words that are wrong after a copy of @npages. */
static unsigned long copy_wrong(const struct copy_pair *pair, unsigned int npages)
{
	const u64 *to = page_address(pair->to);
	unsigned long first = COPY_TO * COPY_PAGE_WORDS;
	unsigned long end = first + npages * COPY_PAGE_WORDS;
	unsigned long i, wrong = 0;
	u64 want;

	for (i = 0; i < COPY_WORDS; i++) {
		want = COPY_AROUND + i;
		if (i >= first && i < end)
			want = COPY_SOURCE + i - first + COPY_FROM * COPY_PAGE_WORDS;
		wrong += to[i] != want;
	}
	return wrong;
}

static void copy_each_length(struct kunit *test,
			     int (*copy)(struct page *to, struct page *from,
					 unsigned int npages))
{
	struct copy_pair *pair = test->priv;
	u64 *to = page_address(pair->to);
	unsigned int i, npages;
	unsigned long word;

	for (i = 0; i < ARRAY_SIZE(copy_lengths); i++) {
		npages = copy_lengths[i];
		for (word = 0; word < COPY_WORDS; word++)
			to[word] = COPY_AROUND + word;
		KUNIT_EXPECT_EQ(test, copy(pair->to + COPY_TO, pair->from + COPY_FROM,
					   npages), 0);
		KUNIT_EXPECT_EQ_MSG(test, copy_wrong(pair, npages), 0UL,
				    "%u pages", npages);
	}
}

static int copy_plain(struct page *to, struct page *from, unsigned int npages)
{
	copy_highpages(to, from, npages);
	return 0;
}

static int copy_atomic(struct page *to, struct page *from, unsigned int npages)
{
	unsigned long flags;

	local_irq_save(flags);
	copy_highpages(to, from, npages);
	local_irq_restore(flags);
	return 0;
}

static void copy_highpages_test(struct kunit *test)
{
	copy_each_length(test, copy_plain);
}

static void copy_highpages_atomic_test(struct kunit *test)
{
	copy_each_length(test, copy_atomic);
}

static void copy_mc_highpages_test(struct kunit *test)
{
	copy_each_length(test, copy_mc_highpages);
}

static struct kunit_case copy_highpages_cases[] = {
	KUNIT_CASE(copy_highpages_test),
	KUNIT_CASE(copy_highpages_atomic_test),
	KUNIT_CASE(copy_mc_highpages_test),
	{}
};

static struct kunit_suite copy_highpages_suite = {
	.name = "copy_highpages",
	.init = copy_init,
	.exit = copy_exit,
	.test_cases = copy_highpages_cases,
};

kunit_test_suite(copy_highpages_suite);

MODULE_DESCRIPTION("KUnit tests for copies of runs of pages");
MODULE_LICENSE("GPL");
