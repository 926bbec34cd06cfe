// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests for <linux/memfill_streaming.h>.
 *
 * Cached and streaming fills must leave the bytes that a loop over words
 * leaves, for sizes that are streamed and for others, whether the compiler
 * knows the size or not.
 */
#include <kunit/test.h>
#include <linux/array_size.h>
#include <linux/compiler.h>
#include <linux/memfill_streaming.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#define MEMFILL_SEED		0x6d656d66696c6cULL
/* Bytes on both sides of a fill that must stay as they are. */
#define MEMFILL_GUARD		128
#define MEMFILL_MAX_SIZE	96
#define MEMFILL_MAX_WORDS	(MEMFILL_MAX_SIZE / sizeof(u64))
#define MEMFILL_MAX_NR		1000
#define MEMFILL_AREA		PAGE_ALIGN(MEMFILL_MAX_SIZE * MEMFILL_MAX_NR + \
					   4 * MEMFILL_GUARD)

typedef void (*memfill_fn)(void *dst, u64 *image, const u64 *step, size_t size,
			   size_t nr);

/**
 * struct memfill_case - a fill with images of one size
 * @name: for the name of the test
 * @size: bytes in the image
 * @fill: the function under test
 */
struct memfill_case {
	const char *name;
	size_t size;
	memfill_fn fill;
};

/* Which words of the image advance. */
enum memfill_step {
	STEP_NULL,
	STEP_ZERO,
	STEP_POINTERS,
	STEP_NEGATIVE,
	STEP_OVERFLOW,
	STEP_RANDOM,
	STEP_NR
};

/**
 * struct memfill_area - what a test writes to
 * @dst: MEMFILL_AREA bytes, with unmapped addresses before and after them
 * @expected: what @dst must hold
 * @rnd: for images, steps and what @dst holds before a fill
 */
struct memfill_area {
	u8 *dst;
	u8 *expected;
	struct rnd_state rnd;
};

#define DEFINE_MEMFILL(kind, n)						\
static noinline void kind##_##n(void *dst, u64 *image, const u64 *step,	\
				size_t size, size_t nr)			\
{									\
	memfill_##kind(dst, image, step, n, nr);			\
}									\
static_assert(true)

DEFINE_MEMFILL(cached, 64);
DEFINE_MEMFILL(cached, 80);
DEFINE_MEMFILL(streaming, 64);
DEFINE_MEMFILL(streaming, 80);

static noinline void cached_any(void *dst, u64 *image, const u64 *step,
				size_t size, size_t nr)
{
	OPTIMIZER_HIDE_VAR(size);
	memfill_cached(dst, image, step, size, nr);
}

static noinline void streaming_any(void *dst, u64 *image, const u64 *step,
				   size_t size, size_t nr)
{
	OPTIMIZER_HIDE_VAR(size);
	memfill_streaming(dst, image, step, size, nr);
}

static const struct memfill_case memfill_cases[] = {
	{ "cached, constant 64", 64, cached_64 },
	{ "cached, constant 80", 80, cached_80 },
	{ "cached, 8", 8, cached_any },
	{ "cached, 56", 56, cached_any },
	{ "cached, 64", 64, cached_any },
	{ "cached, 72", 72, cached_any },
	{ "cached, 96", 96, cached_any },
	{ "streaming, constant 64", 64, streaming_64 },
	{ "streaming, constant 80", 80, streaming_80 },
	{ "streaming, 8", 8, streaming_any },
	{ "streaming, 56", 56, streaming_any },
	{ "streaming, 64", 64, streaming_any },
	{ "streaming, 72", 72, streaming_any },
	{ "streaming, 96", 96, streaming_any },
};

KUNIT_ARRAY_PARAM_DESC(memfill, memfill_cases, name);

static void memfill_make_step(struct rnd_state *rnd, enum memfill_step kind,
			      u64 *image, u64 *step, size_t words)
{
	prandom_bytes_state(rnd, image, words * sizeof(*image));
	memset(step, 0, words * sizeof(*step));
	switch (kind) {
	case STEP_POINTERS:
		/* A list head in each copy that points to itself. */
		step[1 % words] = words * sizeof(*step);
		step[2 % words] = words * sizeof(*step);
		break;
	case STEP_NEGATIVE:
		image[words / 2] = 5;
		step[words / 2] = -3ULL;
		step[0] = -1ULL;
		break;
	case STEP_OVERFLOW:
		image[0] = U64_MAX - 1;
		step[0] = 1;
		image[words - 1] = U64_MAX;
		step[words - 1] = BIT_ULL(63) + 1;
		break;
	case STEP_RANDOM:
		prandom_bytes_state(rnd, step, words * sizeof(*step));
		break;
	default:
		break;
	}
}

static void memfill_check(struct kunit *test, enum memfill_step kind, size_t nr,
			  size_t at)
{
	const struct memfill_case *c = test->param_value;
	const size_t words = c->size / sizeof(u64);
	const size_t end = min(at + nr * c->size + MEMFILL_GUARD, MEMFILL_AREA);
	const size_t start = at - min(at, MEMFILL_GUARD);
	struct memfill_area *a = test->priv;
	/* One word more than an image has: it must stay as it is. */
	u64 image[MEMFILL_MAX_WORDS + 1], step[MEMFILL_MAX_WORDS];
	u64 first[MEMFILL_MAX_WORDS], *expected;
	size_t copy, w, i;

	memfill_make_step(&a->rnd, kind, image, step, words);
	memcpy(first, image, c->size);
	image[words] = MEMFILL_SEED;

	prandom_bytes_state(&a->rnd, a->dst + start, end - start);
	memcpy(a->expected + start, a->dst + start, end - start);
	expected = (u64 *)(a->expected + at);
	for (copy = 0; copy < nr; copy++)
		for (w = 0; w < words; w++)
			*expected++ = first[w] + copy * step[w];

	c->fill(a->dst + at, image, kind == STEP_NULL ? NULL : step, c->size, nr);
	memfill_streaming_drain();

	for (i = start; i < end && a->dst[i] == a->expected[i]; i++)
		;
	KUNIT_ASSERT_EQ_MSG(test, i, end,
			    "step %d, nr %zu, to +%zu: wrong at byte %zd", kind,
			    nr, at, (ssize_t)(i - at));
	for (w = 0; w < words; w++)
		KUNIT_ASSERT_EQ_MSG(test, image[w], first[w] + nr * step[w],
				    "step %d, nr %zu: word %zu of the image is left wrong",
				    kind, nr, w);
	KUNIT_ASSERT_EQ_MSG(test, image[words], MEMFILL_SEED,
			    "step %d, nr %zu: written behind the image", kind,
			    nr);
}

static void memfill_test(struct kunit *test)
{
	static const size_t nrs[] = { 0, 1, 2, 3, 64, MEMFILL_MAX_NR };
	const struct memfill_case *c = test->param_value;
	enum memfill_step kind;
	size_t i, at;

	for (kind = 0; kind < STEP_NR; kind++) {
		for (i = 0; i < ARRAY_SIZE(nrs); i++) {
			for (at = 0; at < 64; at += 8)
				memfill_check(test, kind, nrs[i],
					      MEMFILL_GUARD + at);
			memfill_check(test, kind, nrs[i], 0);
			memfill_check(test, kind, nrs[i],
				      MEMFILL_AREA - c->size * nrs[i]);
		}
	}
}

/* A CPU sees its own stores without a drain. */
static void memfill_read_back_test(struct kunit *test)
{
	u64 image[8], filled[16] = {};
	struct memfill_area *a = test->priv;
	unsigned int i;

	prandom_bytes_state(&a->rnd, image, sizeof(image));
	memfill_streaming(filled, image, NULL, sizeof(image), 2);
	for (i = 0; i < ARRAY_SIZE(filled); i++)
		KUNIT_EXPECT_EQ_MSG(test, filled[i], image[i % 8], "word %u", i);
}

KUNIT_DEFINE_ACTION_WRAPPER(memfill_vfree, vfree, const void *);

static u8 *memfill_alloc(struct kunit *test)
{
	u8 *p = vmalloc(MEMFILL_AREA);

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, memfill_vfree, p));
	return p;
}

static int memfill_test_init(struct kunit *test)
{
	struct memfill_area *a;

	a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, a);
	a->dst = memfill_alloc(test);
	a->expected = memfill_alloc(test);
	prandom_seed_state(&a->rnd, MEMFILL_SEED);
	test->priv = a;
	return 0;
}

static struct kunit_case memfill_test_cases[] = {
	KUNIT_CASE_PARAM(memfill_test, memfill_gen_params),
	KUNIT_CASE(memfill_read_back_test),
	{}
};

static struct kunit_suite memfill_test_suite = {
	.name = "memfill_streaming",
	.init = memfill_test_init,
	.test_cases = memfill_test_cases,
};

kunit_test_suite(memfill_test_suite);

MODULE_DESCRIPTION("KUnit tests for cached and streaming fills");
MODULE_LICENSE("GPL");
