// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests for the template of the memmap.
 *
 * The pages are an array of struct page with contents that no real page has:
 * the template must not care. A formula gives each word of each page. It stands
 * in for the slow path, and the result is compared with it.
 */
#include <kunit/test.h>
#include <linux/array_size.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/prandom.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include <trace/events/page_ref.h>

#include "../memmap_template.h"

#define TEMPLATE_SEED	0x6d656d6d6170ULL
/* Pages on both sides of a range that must stay as they are. */
#define TEMPLATE_GUARD	4
#define TEMPLATE_MAX_NR	(2UL << 18)
/* A PFN where a section and the largest compound start; any will do. */
#define TEMPLATE_PFN	(40UL << 18)

/**
 * struct template_range - units of pages, and what they must hold
 * @name: for the name of the test
 * @order: of the compounds; 0 is a run of single pages
 * @before: pages from the start of the range to TEMPLATE_PFN
 * @nr_pages: length of the range
 * @dedup: TEMPLATE_DEDUP pages are written of each unit that it divides; 0: none
 */
struct template_range {
	const char *name;
	unsigned int order;
	unsigned long before;
	unsigned long nr_pages;
	unsigned int dedup;
};

#define TEMPLATE_DEDUP	128UL

static const struct template_range template_ranges[] = {
	{ "one page", 0, 0, 1 },
	{ "two pages", 0, 1, 2 },
	{ "three pages", 0, 2, 3 },
	{ "pages, section boundary", 0, 500, 1000 },
	{ "pages, three sections", 0, 500, PAGES_PER_SECTION + 1000 },
	{ "order 1, one", 1, 0, 1 << 1 },
	{ "order 1, two", 1, 2, 2 << 1 },
	{ "order 1, many", 1, 100, 100 << 1 },
	{ "order 2, three", 2, 4, 3 << 2 },
	{ "order 3, one", 3, 0, 1 << 3 },
	{ "order 3, two", 3, 0, 2 << 3 },
	{ "order 3, three", 3, 8, 3 << 3 },
	{ "order 4, many", 4, 16, 50 << 4 },
	{ "order 9, one", 9, 0, 1 << 9 },
	{ "order 9, two", 9, 512, 2 << 9 },
	{ "order 9, three", 9, 512, 3 << 9 },
	{ "order 9, two sections", 9, PAGES_PER_SECTION, 2 * PAGES_PER_SECTION },
	{ "order 9, unaligned", 9, 300, 5 << 9 },
	{ "order 9, deduplicated", 9, 512, 5 << 9, 1 },
	{ "order 9, every other deduplicated", 9, 512, 6 << 9, 2 },
	{ "order 9, every third deduplicated", 9, 512, 9 << 9, 3 },
	{ "order 16, three", 16, 0, 3 << 16 },
	{ "order 18, one", 18, 0, 1 << 18 },
	{ "order 18, two", 18, 0, 2 << 18 },
	{ "order 18, two deduplicated", 18, 0, 2 << 18, 1 },
};

KUNIT_ARRAY_PARAM_DESC(template_range, template_ranges, name);

/**
 * struct template_memmap - what a test writes to
 * @pages: guard pages, a range of up to TEMPLATE_MAX_NR pages, guard pages
 * @image: contents of the pages at the start of the first unit
 * @unit_step: what they advance by from unit to unit
 * @page_step: what pages behind them advance by from page to page
 * @rnd: where these come from
 */
struct template_memmap {
	struct page *pages;
	u64 image[MEMMAP_COMPOUND_IMAGES][MEMMAP_PAGE_WORDS];
	u64 unit_step[MEMMAP_COMPOUND_IMAGES][MEMMAP_PAGE_WORDS];
	u64 page_step[MEMMAP_PAGE_WORDS];
	struct rnd_state rnd;
};

enum template_step {
	STEP_NONE,
	STEP_TWO_WORDS,
	STEP_NEGATIVE,
	STEP_LAST_WORD,
	STEP_ALL_WORDS,
	STEP_NR
};

static void template_make_step(struct rnd_state *rnd, enum template_step kind,
			       u64 *step)
{
	memset(step, 0, sizeof(struct page));
	switch (kind) {
	case STEP_TWO_WORDS:
		step[1] = sizeof(struct page);
		step[2] = sizeof(struct page);
		break;
	case STEP_NEGATIVE:
		step[2] = -3ULL;
		step[5] = -BIT_ULL(40);
		break;
	case STEP_LAST_WORD:
		step[MEMMAP_PAGE_WORDS - 1] = BIT_ULL(63) + 1;
		break;
	case STEP_ALL_WORDS:
		prandom_bytes_state(rnd, step, sizeof(struct page));
		break;
	default:
		break;
	}
}

/*
 * The formula: word @w of page @i of unit @unit. The last images of a unit and
 * the pages behind them are a run.
 */
static u64 template_word(const struct template_memmap *m, unsigned int nr_images,
			 unsigned long unit, unsigned long i, unsigned int w)
{
	const unsigned long first = nr_images - MEMMAP_RUN_IMAGES;

	if (i < first)
		return m->image[i][w] + unit * m->unit_step[i][w];
	return m->image[first][w] + unit * m->unit_step[first][w] +
	       (i - first) * m->page_step[w];
}

static u64 template_guard_word(unsigned long index, unsigned int w)
{
	return TEMPLATE_SEED * (index * MEMMAP_PAGE_WORDS + w + 1);
}

static unsigned long template_nr(const struct template_range *r, unsigned long unit)
{
	unsigned long nr = r->order ? 1UL << r->order : r->nr_pages;

	return r->dedup && unit % r->dedup == 0 ? TEMPLATE_DEDUP : nr;
}

static void template_check(struct kunit *test, enum memmap_init_mode mode,
			   enum template_step in_unit, enum template_step in_page)
{
	const struct template_range *r = test->param_value;
	const unsigned int nr_images = r->order ? MEMMAP_COMPOUND_IMAGES :
						  MEMMAP_RUN_IMAGES;
	const unsigned long unit_pages = r->order ? 1UL << r->order : r->nr_pages;
	struct template_memmap *m = test->priv;
	struct page *start = m->pages + TEMPLATE_GUARD;
	unsigned long i, unit, pfn = TEMPLATE_PFN - r->before;
	struct memmap_template t;
	unsigned int w;

	prandom_bytes_state(&m->rnd, m->image, sizeof(m->image));
	for (i = 0; i < nr_images; i++)
		template_make_step(&m->rnd, in_unit, m->unit_step[i]);
	template_make_step(&m->rnd, in_page, m->page_step);
	for (i = 0; i < r->nr_pages + 2 * TEMPLATE_GUARD; i++)
		for (w = 0; w < MEMMAP_PAGE_WORDS; w++)
			((u64 *)(m->pages + i))[w] = template_guard_word(i, w);

	memset(&t, 0xa5, sizeof(t));
	memmap_template_begin(&t, nr_images);
	t.mode = mode;
	for (unit = 0; unit * unit_pages < r->nr_pages; unit++) {
		struct page *page = start + unit * unit_pages;
		unsigned long nr = template_nr(r, unit);
		unsigned long nr_slow = memmap_template_nr_slow(&t, nr);

		KUNIT_ASSERT_EQ(test, nr_slow, unit < 2 ? min(nr, nr_images) : 0);
		for (i = 0; i < nr_slow; i++)
			for (w = 0; w < MEMMAP_PAGE_WORDS; w++)
				((u64 *)(page + i))[w] =
					template_word(m, nr_images, unit, i, w);
		memmap_template_write(&t, page, pfn + unit * unit_pages, nr);
	}
	memmap_template_drain(&t);

	for (i = 0; i < r->nr_pages + 2 * TEMPLATE_GUARD; i++) {
		const u64 *words = (const u64 *)(m->pages + i);
		const unsigned long k = i - TEMPLATE_GUARD;
		bool written = i >= TEMPLATE_GUARD && k < r->nr_pages &&
			       k % unit_pages < template_nr(r, k / unit_pages);

		for (w = 0; w < MEMMAP_PAGE_WORDS; w++) {
			u64 expected = written ?
				template_word(m, nr_images, k / unit_pages,
					      k % unit_pages, w) :
				template_guard_word(i, w);

			if (words[w] == expected)
				continue;
			KUNIT_FAIL_AND_ABORT(test,
					     "mode %d, steps %d and %d: page %ld, word %u is %#llx, should be %#llx",
					     mode, in_unit, in_page, (long)k, w,
					     words[w], expected);
		}
	}
}

static void template_range_test(struct kunit *test)
{
	const struct template_range *r = test->param_value;
	/* In all variants, half a million pages would take a minute. */
	const bool large = r->nr_pages > PAGES_PER_SECTION;
	enum template_step in_unit, in_page;

	for (in_unit = large ? STEP_ALL_WORDS : 0; in_unit < STEP_NR; in_unit++) {
		for (in_page = 0; in_page < STEP_NR; in_page += large ? STEP_ALL_WORDS : 1) {
			template_check(test, MEMMAP_INIT_CACHED, in_unit, in_page);
			template_check(test, MEMMAP_INIT_STREAMING, in_unit, in_page);
		}
	}
}

/* In slow mode the caller initialises each page, and nothing is written here. */
static void template_slow_test(struct kunit *test)
{
	struct template_memmap *m = test->priv;
	struct memmap_template t;

	memmap_template_begin(&t, MEMMAP_COMPOUND_IMAGES);
	t.mode = MEMMAP_INIT_SLOW;
	memset(m->pages, 0x5a, 1000 * sizeof(*m->pages));
	KUNIT_EXPECT_EQ(test, memmap_template_nr_slow(&t, 1000), 1000);
	memmap_template_write(&t, m->pages, TEMPLATE_PFN, 1000);
	KUNIT_EXPECT_NULL(test, memchr_inv(m->pages, 0x5a,
					   1000 * sizeof(*m->pages)));
	KUNIT_EXPECT_EQ(test, memmap_template_nr_slow(&t, 1000), 1000);
}

static const char * const template_modes[] = {
	[MEMMAP_INIT_SLOW]	= "slow",
	[MEMMAP_INIT_CACHED]	= "cached",
	[MEMMAP_INIT_STREAMING]	= "streaming",
};

static void template_mode_restore(void *name)
{
	memmap_init_mode_set(name);
}

/* Have the mode that is set now restored at the end of the test. */
static void template_mode_save(struct kunit *test)
{
	if (page_ref_tracepoint_active(page_ref_set))
		kunit_skip(test, "the page_ref_set tracepoint hides the mode");
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action(test, template_mode_restore,
					 (void *)template_modes[memmap_init_mode_get()]));
}

static void template_mode_test(struct kunit *test)
{
	static const char * const wrong[] = {
		"", "\n", " ", "0", "3", "auto", "Cached", "cache", "cachedd",
		" cached", "cached ", "cached\n\n", "cached,slow", "slow\ncached",
	};
	unsigned int i, j;
	char line[16];

	template_mode_save(test);
	for (i = 0; i < ARRAY_SIZE(template_modes); i++) {
		KUNIT_EXPECT_EQ(test, 0, memmap_init_mode_set(template_modes[i]));
		KUNIT_EXPECT_EQ(test, memmap_init_mode_get(), i);
		for (j = 0; j < ARRAY_SIZE(wrong); j++)
			KUNIT_EXPECT_EQ_MSG(test, memmap_init_mode_set(wrong[j]),
					    -EINVAL, "\"%s\"", wrong[j]);
		KUNIT_EXPECT_EQ(test, memmap_init_mode_get(), i);

		/* As echo writes it. */
		KUNIT_EXPECT_EQ(test, 0,
				memmap_init_mode_set(template_modes[!i]));
		snprintf(line, sizeof(line), "%s\n", template_modes[i]);
		KUNIT_EXPECT_EQ(test, 0, memmap_init_mode_set(line));
		KUNIT_EXPECT_EQ(test, memmap_init_mode_get(), i);
	}
}

#ifdef CONFIG_DEBUG_PAGE_REF
static void template_ignore_event(void *data, struct page *page, int v)
{
}

static void template_unregister(void *unused)
{
	unregister_trace_page_ref_set(template_ignore_event, NULL);
	tracepoint_synchronize_unregister();
}

/* While the tracepoint is active, every page must raise its event. */
static void template_tracepoint_test(struct kunit *test)
{
	enum memmap_init_mode before = memmap_init_mode_get();

	template_mode_save(test);
	KUNIT_ASSERT_EQ(test, 0,
			register_trace_page_ref_set(template_ignore_event, NULL));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, template_unregister, NULL));
	KUNIT_EXPECT_EQ(test, 0, memmap_init_mode_set("streaming"));
	KUNIT_EXPECT_EQ(test, memmap_init_mode_get(), MEMMAP_INIT_SLOW);
	kunit_release_action(test, template_unregister, NULL);
	KUNIT_EXPECT_EQ(test, memmap_init_mode_get(), MEMMAP_INIT_STREAMING);
	KUNIT_EXPECT_EQ(test, 0, memmap_init_mode_set(template_modes[before]));
}
#else
static void template_tracepoint_test(struct kunit *test)
{
	kunit_skip(test, "no page_ref_set tracepoint without DEBUG_PAGE_REF");
}
#endif

KUNIT_DEFINE_ACTION_WRAPPER(template_vfree, vfree, const void *);

static int template_test_init(struct kunit *test)
{
	struct template_memmap *m;

	m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m);
	m->pages = vmalloc_array(TEMPLATE_MAX_NR + 2 * TEMPLATE_GUARD,
				 sizeof(*m->pages));
	KUNIT_ASSERT_NOT_NULL(test, m->pages);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, template_vfree,
						  m->pages));
	prandom_seed_state(&m->rnd, TEMPLATE_SEED);
	test->priv = m;
	return 0;
}

static struct kunit_case template_test_cases[] = {
	KUNIT_CASE_PARAM(template_range_test, template_range_gen_params),
	KUNIT_CASE(template_slow_test),
	KUNIT_CASE(template_mode_test),
	KUNIT_CASE(template_tracepoint_test),
	{}
};

static struct kunit_suite template_test_suite = {
	.name = "memmap_template",
	.init = template_test_init,
	.test_cases = template_test_cases,
};

kunit_test_suite(template_test_suite);
