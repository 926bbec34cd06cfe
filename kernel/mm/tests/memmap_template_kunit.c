// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests for the template of the memory map.
 *
 * The pages are an array of struct page that stands for nothing, with bytes
 * that no real page has: the template must not care. What it writes is expected
 * from a formula, page by page and word by word, and not from a second template.
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

#define TEMPLATE_SEED		0x6d656d6d6170ULL
/* Pages on both sides of a run that nobody may write to. */
#define TEMPLATE_GUARD		4
#define TEMPLATE_MAX_NR		(PAGES_PER_SECTION + 1000)

/* A PFN where a section starts; any will do. */
#define TEMPLATE_SECTION_PFN	(40 * PAGES_PER_SECTION)

/**
 * struct template_memmap - what a test case writes to
 * @pages: guard pages, a run of up to TEMPLATE_MAX_NR pages, guard pages
 * @rnd: for the bytes of the first two pages of a run
 */
struct template_memmap {
	struct page *pages;
	struct rnd_state rnd;
};

/* Which words of the second page differ from those of the first. */
enum template_step {
	STEP_NONE,
	STEP_ONE_WORD,
	STEP_NEGATIVE,
	STEP_TWO_WORDS,
	STEP_HIGH_BITS,
	STEP_LAST_WORD,
	STEP_ALL_WORDS,
	STEP_NR
};

static const char * const template_step_names[] = {
	[STEP_NONE]		= "no step",
	[STEP_ONE_WORD]		= "step in a word",
	[STEP_NEGATIVE]		= "negative step",
	[STEP_TWO_WORDS]	= "step in two words",
	[STEP_HIGH_BITS]	= "step in the high bits of a word",
	[STEP_LAST_WORD]	= "step in the last word",
	[STEP_ALL_WORDS]	= "step in each word",
};

static const enum memmap_init_mode template_modes[] = {
	MEMMAP_INIT_TEMPLATE,
	MEMMAP_INIT_STREAMING,
	MEMMAP_INIT_FILL,
};

static void template_mode_desc(const enum memmap_init_mode *mode, char *desc)
{
	strscpy(desc, memmap_init_mode_name(*mode), KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(template_mode, template_modes, template_mode_desc);

/* Of a page that is not written to; differs from word to word and page to page. */
static u64 template_guard_word(unsigned long index, unsigned int w)
{
	return TEMPLATE_SEED * (index * MEMMAP_PAGE_WORDS + w + 1);
}

static void template_make_step(struct rnd_state *rnd, enum template_step kind,
			       const u64 *first, u64 *second)
{
	memcpy(second, first, sizeof(struct page));
	switch (kind) {
	case STEP_ONE_WORD:
		second[4] += PAGE_SIZE;
		break;
	case STEP_NEGATIVE:
		second[2] -= 3;
		second[5] -= BIT_ULL(40);
		break;
	case STEP_TWO_WORDS:
		second[1] += sizeof(struct page);
		second[2] += sizeof(struct page);
		break;
	case STEP_HIGH_BITS:
		second[3] += BIT_ULL(63);
		break;
	case STEP_LAST_WORD:
		second[MEMMAP_PAGE_WORDS - 1] += BIT_ULL(63) + 1;
		break;
	case STEP_ALL_WORDS:
		prandom_bytes_state(rnd, second, sizeof(struct page));
		break;
	default:
		break;
	}
}

/* Write a run with @t, whose mode is set, and check every word of it. */
static void template_check(struct kunit *test, struct memmap_template *t,
			   unsigned long pfn, unsigned long nr_pages,
			   enum template_step kind)
{
	const unsigned long total = nr_pages + 2 * TEMPLATE_GUARD;
	struct template_memmap *m = test->priv;
	u64 first[MEMMAP_PAGE_WORDS], second[MEMMAP_PAGE_WORDS];
	struct page *page = m->pages + TEMPLATE_GUARD;
	unsigned long i;
	unsigned int w;

	prandom_bytes_state(&m->rnd, first, sizeof(first));
	template_make_step(&m->rnd, kind, first, second);

	for (i = 0; i < total; i++) {
		u64 *words = (u64 *)(m->pages + i);

		for (w = 0; w < MEMMAP_PAGE_WORDS; w++)
			words[w] = template_guard_word(i, w);
	}
	memcpy(page, first, sizeof(*page));
	memcpy(page + 1, second, sizeof(*page));

	memmap_template_repeat(t, page, pfn, nr_pages);
	memmap_template_drain(t);

	for (i = 0; i < total; i++) {
		const u64 *words = (const u64 *)(m->pages + i);
		const unsigned long k = i - TEMPLATE_GUARD;

		for (w = 0; w < MEMMAP_PAGE_WORDS; w++) {
			u64 expected;

			if (i >= TEMPLATE_GUARD && k < nr_pages)
				expected = first[w] + k * (second[w] - first[w]);
			else
				expected = template_guard_word(i, w);
			if (words[w] == expected)
				continue;
			KUNIT_FAIL_AND_ABORT(test,
					     "%s, %s, PFN %#lx, nr %lu: page %ld, word %u is %#llx, should be %#llx",
					     memmap_init_mode_name(t->mode),
					     template_step_names[kind], pfn,
					     nr_pages, (long)k, w, words[w],
					     expected);
		}
	}
}

/* A template with nothing left in it that a run may rely on. */
static void template_init(struct kunit *test, struct memmap_template *t)
{
	const enum memmap_init_mode *mode = test->param_value;

	memset(t, 0xa5, sizeof(*t));
	t->mode = *mode;
	t->race.over = true;
}

/* Runs of all lengths, wherever they can lie about the start of a section. */
static void template_run_test(struct kunit *test)
{
	static const unsigned long nrs[] = { 2, 3, 4, 5, 64, 1000 };
	unsigned int i, j;
	enum template_step kind;

	for (i = 0; i < ARRAY_SIZE(nrs); i++) {
		const unsigned long nr = nrs[i];
		const unsigned long before[] = {
			0, 1, 2, 3, nr / 2, nr - 1, nr, nr + 1,
		};

		for (j = 0; j < ARRAY_SIZE(before); j++) {
			for (kind = 0; kind < STEP_NR; kind++) {
				struct memmap_template t;

				template_init(test, &t);
				template_check(test, &t,
					       TEMPLATE_SECTION_PFN - before[j],
					       nr, kind);
			}
		}
	}
}

/* The end of one section, the whole of the next, the start of a third. */
static void template_sections_test(struct kunit *test)
{
	enum template_step kind;

	for (kind = 0; kind < STEP_NR; kind++) {
		struct memmap_template t;

		template_init(test, &t);
		template_check(test, &t, TEMPLATE_SECTION_PFN - 500,
			       TEMPLATE_MAX_NR, kind);
	}
}

/* As for the compounds of a range: one template, taken anew for each run. */
static void template_reuse_test(struct kunit *test)
{
	static const enum template_step kinds[] = {
		STEP_ALL_WORDS, STEP_NONE, STEP_ONE_WORD, STEP_TWO_WORDS,
		STEP_NONE, STEP_NONE, STEP_LAST_WORD,
	};
	struct memmap_template t;
	unsigned int i;

	template_init(test, &t);
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		template_check(test, &t, TEMPLATE_SECTION_PFN + i * 512 + 4,
			       512 - 4, kinds[i]);
}

/* The mode that is set, or MEMMAP_INIT_SLOW if it is hidden. */
static enum memmap_init_mode template_begin_mode(void)
{
	struct memmap_template t;

	memmap_template_begin(&t, TEMPLATE_MAX_NR);
	return t.chosen ? MEMMAP_INIT_AUTO : t.mode;
}

static void template_mode_restore(void *name)
{
	memmap_init_mode_set(name);
}

/* Have the mode that is set now restored at the end of the test case. */
static void template_mode_save(struct kunit *test)
{
	const char *name;

	if (page_ref_tracepoint_active(page_ref_set))
		kunit_skip(test, "the page_ref_set tracepoint hides the mode");

	name = memmap_init_mode_name(template_begin_mode());
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action(test, template_mode_restore,
					 (void *)name));
}

static const struct {
	const char *name;
	enum memmap_init_mode mode;
} template_mode_names[] = {
	{ "slow",	MEMMAP_INIT_SLOW },
	{ "template",	MEMMAP_INIT_TEMPLATE },
	{ "streaming",	MEMMAP_INIT_STREAMING },
	{ "fill",	MEMMAP_INIT_FILL },
	{ "auto",	MEMMAP_INIT_AUTO },
};

static void template_mode_set_test(struct kunit *test)
{
	unsigned int i;

	template_mode_save(test);
	for (i = 0; i < ARRAY_SIZE(template_mode_names); i++) {
		const char *name = template_mode_names[i].name;
		const enum memmap_init_mode mode = template_mode_names[i].mode;
		char line[16];

		KUNIT_EXPECT_STREQ(test, memmap_init_mode_name(mode), name);
		KUNIT_EXPECT_EQ_MSG(test, memmap_init_mode_set(name), 0,
				    "%s", name);
		KUNIT_EXPECT_EQ_MSG(test, template_begin_mode(), mode,
				    "%s", name);

		/* As echo writes it, from another mode. */
		KUNIT_EXPECT_EQ(test, 0, memmap_init_mode_set(i ? "slow" : "fill"));
		snprintf(line, sizeof(line), "%s\n", name);
		KUNIT_EXPECT_EQ_MSG(test, memmap_init_mode_set(line), 0,
				    "%s with a newline", name);
		KUNIT_EXPECT_EQ_MSG(test, template_begin_mode(), mode,
				    "%s with a newline", name);
	}
}

static void template_mode_refuse_test(struct kunit *test)
{
	static const char * const names[] = {
		"", "\n", " ", "0", "3", "none", "Fill", "fil", "fills",
		" fill", "fill ", "fill\n\n", "fill,slow", "slow\nfill",
	};
	unsigned int i, j;

	template_mode_save(test);
	for (i = 0; i < ARRAY_SIZE(template_mode_names); i++) {
		KUNIT_ASSERT_EQ(test, 0,
				memmap_init_mode_set(template_mode_names[i].name));
		for (j = 0; j < ARRAY_SIZE(names); j++) {
			KUNIT_EXPECT_EQ_MSG(test, memmap_init_mode_set(names[j]),
					    -EINVAL, "\"%s\"", names[j]);
			KUNIT_EXPECT_EQ_MSG(test, template_begin_mode(),
					    template_mode_names[i].mode,
					    "after \"%s\"", names[j]);
		}
	}
}

static void template_mode_round_trip_test(struct kunit *test)
{
	enum memmap_init_mode mode;

	template_mode_save(test);
	for (mode = MEMMAP_INIT_SLOW; mode <= MEMMAP_INIT_AUTO; mode++) {
		KUNIT_EXPECT_EQ(test, 0,
				memmap_init_mode_set(memmap_init_mode_name(mode)));
		KUNIT_EXPECT_EQ(test, template_begin_mode(), mode);
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

/* While somebody traces it, every page must raise its event. */
static void template_tracepoint_test(struct kunit *test)
{
	unsigned int i;

	template_mode_save(test);
	KUNIT_ASSERT_EQ(test, 0,
			register_trace_page_ref_set(template_ignore_event, NULL));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, template_unregister, NULL));

	for (i = 0; i < ARRAY_SIZE(template_mode_names); i++) {
		KUNIT_EXPECT_EQ(test, 0,
				memmap_init_mode_set(template_mode_names[i].name));
		KUNIT_EXPECT_EQ(test, template_begin_mode(), MEMMAP_INIT_SLOW);
	}

	kunit_release_action(test, template_unregister, NULL);
	KUNIT_EXPECT_EQ(test, template_begin_mode(), MEMMAP_INIT_AUTO);
}
#else
static void template_tracepoint_test(struct kunit *test)
{
	kunit_skip(test, "no page_ref_set tracepoint without DEBUG_PAGE_REF");
}
#endif

/* Nanoseconds of a chunk in a made-up machine. */
struct template_machine {
	const char *name;
	u64 hidden;		/* cached, until the cache is full */
	u64 cached;		/* cached, after that */
	u64 streamed;
	unsigned int cache;	/* chunks that the cache holds */
	enum memmap_race_lane winner;
};

static const struct template_machine template_machines[] = {
	{ "streaming is faster", 13000, 13000, 10000, 0, MEMMAP_RACE_STREAMED },
	{ "streaming is far faster", 80000, 80000, 10000, 0, MEMMAP_RACE_STREAMED },
	{ "streaming is slow", 13000, 13000, 20000, 0, MEMMAP_RACE_CACHED },
	{ "streaming is very slow", 10000, 10000, 800000, 0, MEMMAP_RACE_CACHED },
	{ "a tie", 10000, 10000, 10000, 0, MEMMAP_RACE_STREAMED },
	{ "a lead within the margin", 10000, 10000, 10100, 0, MEMMAP_RACE_STREAMED },
	{ "a lead beyond the margin", 10000, 10000, 10200, 0, MEMMAP_RACE_CACHED },
	{ "a small cache hides it", 5000, 13000, 10000, 5, MEMMAP_RACE_STREAMED },
	{ "a cache hides it", 5000, 13000, 10000, 128, MEMMAP_RACE_STREAMED },
	{ "a huge cache hides it", 9000, 11000, 10000, 2000, MEMMAP_RACE_STREAMED },
	{ "a cache hides a part", 5000, 9000, 10000, 128, MEMMAP_RACE_CACHED },
	{ "a clock that stands", 0, 0, 0, 0, MEMMAP_RACE_STREAMED },
};

static void template_machine_desc(const struct template_machine *m, char *desc)
{
	strscpy(desc, m->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(template_machine, template_machines, template_machine_desc);

/* Run a race to its end; a chunk in which @late is a multiple takes longer. */
static void template_run_race(struct kunit *test, struct memmap_race *race,
			      unsigned int late)
{
	const struct template_machine *m = test->param_value;
	unsigned int written[MEMMAP_RACE_LANES] = { };
	unsigned int i;

	memmap_race_start(race);
	for (i = 1; !race->over; i++) {
		u64 ns = race->lane == MEMMAP_RACE_STREAMED ? m->streamed :
			 written[MEMMAP_RACE_CACHED] < m->cache ? m->hidden :
								  m->cached;

		written[race->lane]++;
		memmap_race_lap(race, i % late ? ns : ns + 4000000);
		KUNIT_ASSERT_LE(test, race->laps,
				2 * MEMMAP_RACE_LENGTH / MEMMAP_RACE_CHUNK);
	}
	KUNIT_EXPECT_EQ(test, race->lane, m->winner);

	/* What the loser was given, the cached lane's time in the cache aside. */
	if (race->lane == MEMMAP_RACE_CACHED)
		KUNIT_EXPECT_LE(test, written[MEMMAP_RACE_STREAMED],
				MEMMAP_RACE_ROUNDS);
	else
		KUNIT_EXPECT_LE(test, written[MEMMAP_RACE_CACHED],
				m->cache + 4 * MEMMAP_RACE_ROUNDS);
}

static void template_race_test(struct kunit *test)
{
	const struct template_machine *m = test->param_value;
	struct memmap_race race;
	u64 ratio;

	template_run_race(test, &race, UINT_MAX);
	if (!m->streamed)
		return;
	/* Of the last heat, in which the cache has an interest as long as it hides. */
	ratio = race.lane == MEMMAP_RACE_STREAMED ?
		m->cached * 100 / m->streamed : m->streamed * 100 / m->hidden;
	KUNIT_EXPECT_EQ(test, race.ratio, ratio);
}

/* An interrupt, or a host that takes the CPU away, must not decide. */
static void template_race_noise_test(struct kunit *test)
{
	struct memmap_race race;
	unsigned int late;

	for (late = 2; late < 8; late++)
		template_run_race(test, &race, late);
}

/* The loser's share is bounded even if the speed changes after each heat. */
static void template_race_restless_test(struct kunit *test)
{
	unsigned int streamed = 0;
	struct memmap_race race;

	memmap_race_start(&race);
	while (!race.over) {
		streamed += race.lane == MEMMAP_RACE_STREAMED;
		KUNIT_ASSERT_LE(test, streamed,
				MEMMAP_RACE_HEATS * MEMMAP_RACE_ROUNDS);
		memmap_race_lap(&race, race.lane == MEMMAP_RACE_STREAMED ? 15000 :
				       race.heat ? 10000 : 20000);
	}
	KUNIT_EXPECT_EQ(test, race.lane, MEMMAP_RACE_CACHED);
	KUNIT_EXPECT_EQ(test, streamed, MEMMAP_RACE_HEATS * MEMMAP_RACE_ROUNDS);
}

KUNIT_DEFINE_ACTION_WRAPPER(template_vfree, vfree, const void *);

static int template_test_init(struct kunit *test)
{
	struct template_memmap *m;

#ifdef SECTION_IN_PAGE_FLAGS
	kunit_skip(test, "page->flags holds the section, which no formula here knows");
#endif
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
	KUNIT_CASE_PARAM(template_run_test, template_mode_gen_params),
	KUNIT_CASE_PARAM(template_sections_test, template_mode_gen_params),
	KUNIT_CASE_PARAM(template_reuse_test, template_mode_gen_params),
	KUNIT_CASE_PARAM(template_race_test, template_machine_gen_params),
	KUNIT_CASE_PARAM(template_race_noise_test, template_machine_gen_params),
	KUNIT_CASE(template_race_restless_test),
	KUNIT_CASE(template_mode_set_test),
	KUNIT_CASE(template_mode_refuse_test),
	KUNIT_CASE(template_mode_round_trip_test),
	KUNIT_CASE(template_tracepoint_test),
	{}
};

static struct kunit_suite template_test_suite = {
	.name = "memmap_template",
	.init = template_test_init,
	.test_cases = template_test_cases,
};

kunit_test_suite(template_test_suite);
