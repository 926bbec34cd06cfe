// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests for <linux/memcpy_streaming.h>.
 *
 * Whatever the architecture streams and whatever it leaves to memcpy(), the
 * bytes are the same. So these tests run over both sides of each condition,
 * with sizes that the compiler knows and sizes that it does not, and expect
 * what a loop over bytes or words gives.
 */
#include <kunit/test.h>
#include <linux/compiler.h>
#include <linux/memcpy_streaming.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#define STREAMING_SEED		0x73747265616dULL
#define STREAMING_GUARD		128
#define STREAMING_MAX_COPY	256
#define STREAMING_MAX_IMAGE	96
#define STREAMING_MAX_WORDS	(STREAMING_MAX_IMAGE / sizeof(u64))
#define STREAMING_MAX_NR	1000
#define STREAMING_AREA		PAGE_ALIGN(STREAMING_MAX_IMAGE * STREAMING_MAX_NR + \
					   4 * STREAMING_GUARD)

/**
 * struct streaming_buffers - what a test case writes to
 * @dst: STREAMING_AREA bytes, with unmapped addresses before and after them
 * @expected: what @dst must hold
 * @background: what @dst holds where nothing is written to
 * @src: what is copied, or the image
 * @src_kept: the same once more
 * @rnd: for the data of the test case
 */
struct streaming_buffers {
	u8 *dst;
	u8 *expected;
	u8 *background;
	u8 src[512] __aligned(64);
	u8 src_kept[512];
	struct rnd_state rnd;
};

/**
 * struct streaming_size - copies and fills of one size
 * @name: the size, and whether the compiler knows it
 * @size: the size
 * @copy: memcpy_streaming()
 * @fill: memfill_streaming()
 * @fill_cached: memfill_cached()
 */
struct streaming_size {
	const char *name;
	size_t size;
	void (*copy)(void *dst, const void *src, size_t size);
	void (*fill)(void *dst, const void *image, size_t size, size_t nr);
	void (*fill_cached)(void *dst, const void *image, size_t size,
			    size_t nr);
};

/**
 * struct streaming_step_size - fills with a step, of one size
 * @name: the size, and whether the compiler knows it
 * @size: the size, a multiple of 8
 * @fill: memfill_streaming_step()
 * @fill_cached: memfill_cached_step()
 */
struct streaming_step_size {
	const char *name;
	size_t size;
	void (*fill)(void *dst, u64 *image, const u64 *step, size_t size,
		     size_t nr);
	void (*fill_cached)(void *dst, u64 *image, const u64 *step, size_t size,
			    size_t nr);
};

#define DEFINE_COPY(n)							\
static noinline void streaming_copy_##n(void *dst, const void *src,	\
					size_t size)			\
{									\
	memcpy_streaming(dst, src, n);					\
}									\
static_assert(true)

#define DEFINE_FILL(n)							\
static noinline void streaming_fill_##n(void *dst, const void *image,	\
					size_t size, size_t nr)		\
{									\
	memfill_streaming(dst, image, n, nr);				\
}									\
static_assert(true)

#define DEFINE_FILL_CACHED(n)						\
static noinline void streaming_fill_cached_##n(void *dst,		\
					       const void *image,	\
					       size_t size, size_t nr)	\
{									\
	memfill_cached(dst, image, n, nr);				\
}									\
static_assert(true)

#define DEFINE_FILL_STEP(n)						\
static noinline void streaming_fill_step_##n(void *dst, u64 *image,	\
					     const u64 *step,		\
					     size_t size, size_t nr)	\
{									\
	memfill_streaming_step(dst, image, step, n, nr);		\
}									\
static_assert(true)

#define DEFINE_CACHED_FILL_STEP(n)					\
static noinline void cached_fill_step_##n(void *dst, u64 *image,	\
					  const u64 *step,		\
					  size_t size, size_t nr)	\
{									\
	memfill_cached_step(dst, image, step, n, nr);			\
}									\
static_assert(true)

DEFINE_COPY(56);
DEFINE_COPY(64);
DEFINE_COPY(72);
DEFINE_COPY(80);
DEFINE_COPY(88);
DEFINE_COPY(96);
DEFINE_COPY(8);
DEFINE_COPY(16);
DEFINE_COPY(48);
DEFINE_COPY(1);
DEFINE_COPY(4);
DEFINE_COPY(7);
DEFINE_COPY(63);
DEFINE_COPY(65);

DEFINE_FILL(56);
DEFINE_FILL(64);
DEFINE_FILL(72);
DEFINE_FILL(80);
DEFINE_FILL(88);
DEFINE_FILL(96);
DEFINE_FILL(8);
DEFINE_FILL(16);
DEFINE_FILL(48);
DEFINE_FILL(1);
DEFINE_FILL(4);
DEFINE_FILL(7);
DEFINE_FILL(63);
DEFINE_FILL(65);

DEFINE_FILL_CACHED(56);
DEFINE_FILL_CACHED(64);
DEFINE_FILL_CACHED(72);
DEFINE_FILL_CACHED(80);
DEFINE_FILL_CACHED(88);
DEFINE_FILL_CACHED(96);
DEFINE_FILL_CACHED(8);
DEFINE_FILL_CACHED(16);
DEFINE_FILL_CACHED(48);
DEFINE_FILL_CACHED(1);
DEFINE_FILL_CACHED(4);
DEFINE_FILL_CACHED(7);
DEFINE_FILL_CACHED(63);
DEFINE_FILL_CACHED(65);

DEFINE_FILL_STEP(56);
DEFINE_FILL_STEP(64);
DEFINE_FILL_STEP(72);
DEFINE_FILL_STEP(80);
DEFINE_FILL_STEP(88);
DEFINE_FILL_STEP(96);
DEFINE_FILL_STEP(8);
DEFINE_FILL_STEP(16);
DEFINE_FILL_STEP(48);

DEFINE_CACHED_FILL_STEP(56);
DEFINE_CACHED_FILL_STEP(64);
DEFINE_CACHED_FILL_STEP(72);
DEFINE_CACHED_FILL_STEP(80);
DEFINE_CACHED_FILL_STEP(88);
DEFINE_CACHED_FILL_STEP(96);
DEFINE_CACHED_FILL_STEP(8);
DEFINE_CACHED_FILL_STEP(16);
DEFINE_CACHED_FILL_STEP(48);

static noinline void streaming_copy_any(void *dst, const void *src, size_t size)
{
	OPTIMIZER_HIDE_VAR(size);
	memcpy_streaming(dst, src, size);
}

static noinline void streaming_fill_any(void *dst, const void *image,
					size_t size, size_t nr)
{
	OPTIMIZER_HIDE_VAR(size);
	memfill_streaming(dst, image, size, nr);
}

static noinline void streaming_fill_cached_any(void *dst, const void *image,
					       size_t size, size_t nr)
{
	OPTIMIZER_HIDE_VAR(size);
	memfill_cached(dst, image, size, nr);
}

static noinline void streaming_fill_step_any(void *dst, u64 *image,
					     const u64 *step, size_t size,
					     size_t nr)
{
	OPTIMIZER_HIDE_VAR(size);
	memfill_streaming_step(dst, image, step, size, nr);
}

static noinline void cached_fill_step_any(void *dst, u64 *image,
					  const u64 *step, size_t size,
					  size_t nr)
{
	OPTIMIZER_HIDE_VAR(size);
	memfill_cached_step(dst, image, step, size, nr);
}

#define CONSTANT(n) \
	{ #n " constant", n, streaming_copy_##n, streaming_fill_##n,	\
	  streaming_fill_cached_##n }

#define RUN_TIME(n) \
	{ #n " run-time", n, streaming_copy_any, streaming_fill_any,	\
	  streaming_fill_cached_any }

static const struct streaming_size streaming_sizes[] = {
	/* What struct page can be in size. */
	CONSTANT(56), RUN_TIME(56),
	CONSTANT(64), RUN_TIME(64),
	CONSTANT(72), RUN_TIME(72),
	CONSTANT(80), RUN_TIME(80),
	CONSTANT(88), RUN_TIME(88),
	CONSTANT(96), RUN_TIME(96),
	/* More that streams. */
	CONSTANT(8), RUN_TIME(8),
	CONSTANT(16), RUN_TIME(16),
	CONSTANT(48), RUN_TIME(48),
	/* What never does. */
	CONSTANT(1), RUN_TIME(1),
	CONSTANT(4), RUN_TIME(4),
	CONSTANT(7), RUN_TIME(7),
	CONSTANT(63), RUN_TIME(63),
	CONSTANT(65), RUN_TIME(65),
};

KUNIT_ARRAY_PARAM_DESC(streaming_size, streaming_sizes, name);

#define CONSTANT_STEP(n) \
	{ #n " constant", n, streaming_fill_step_##n, cached_fill_step_##n }

#define RUN_TIME_STEP(n) \
	{ #n " run-time", n, streaming_fill_step_any, cached_fill_step_any }

static const struct streaming_step_size streaming_step_sizes[] = {
	CONSTANT_STEP(56), RUN_TIME_STEP(56),
	CONSTANT_STEP(64), RUN_TIME_STEP(64),
	CONSTANT_STEP(72), RUN_TIME_STEP(72),
	CONSTANT_STEP(80), RUN_TIME_STEP(80),
	CONSTANT_STEP(88), RUN_TIME_STEP(88),
	CONSTANT_STEP(96), RUN_TIME_STEP(96),
	CONSTANT_STEP(8), RUN_TIME_STEP(8),
	CONSTANT_STEP(16), RUN_TIME_STEP(16),
	CONSTANT_STEP(48), RUN_TIME_STEP(48),
};

KUNIT_ARRAY_PARAM_DESC(streaming_step_size, streaming_step_sizes, name);

static const size_t streaming_nr[] = { 0, 1, 2, 3, 64, STREAMING_MAX_NR };

/* Added to an address aligned to a page. */
static const size_t streaming_alignments[] = {
	0, 8, 16, 24, 32, 40, 48, 56, 1, 2, 4, 7, 9, 12, 33, 63,
};

/* Fill @len bytes at @at, and what guards them, with the background. */
static void streaming_prepare(const struct streaming_buffers *b, size_t at,
			      size_t len)
{
	const size_t start = at - min(at, STREAMING_GUARD);
	const size_t end = min(at + len + STREAMING_GUARD, STREAMING_AREA);

	memcpy(b->dst + start, b->background + start, end - start);
	memcpy(b->expected + start, b->background + start, end - start);
}

static void streaming_check(struct kunit *test,
			    const struct streaming_buffers *b, const char *what,
			    size_t size, size_t nr, size_t at, size_t len)
{
	const size_t end = min(at + len + STREAMING_GUARD, STREAMING_AREA);
	size_t i = at - min(at, STREAMING_GUARD);

	while (i < end && b->dst[i] == b->expected[i])
		i++;
	KUNIT_ASSERT_EQ_MSG(test, i, end,
			    "%s, size %zu, nr %zu, to +%zu: wrong at byte %zd",
			    what, size, nr, at, (ssize_t)(i - at));

	for (i = 0; i < sizeof(b->src) && b->src[i] == b->src_kept[i]; i++)
		;
	KUNIT_ASSERT_EQ_MSG(test, i, sizeof(b->src),
			    "%s, size %zu, nr %zu, to +%zu: byte %zu of the source changed",
			    what, size, nr, at, i);
}

static void streaming_copy_check(struct kunit *test,
				 void (*copy)(void *, const void *, size_t),
				 size_t size, size_t at, size_t src_at)
{
	const struct streaming_buffers *b = test->priv;
	size_t i;

	streaming_prepare(b, at, size);
	for (i = 0; i < size; i++)
		b->expected[at + i] = b->src_kept[src_at + i];
	copy(b->dst + at, b->src + src_at, size);
	memcpy_streaming_drain();
	streaming_check(test, b, src_at ? "copy, odd source" : "copy", size, 1,
			at, size);
}

static void streaming_copy_test(struct kunit *test)
{
	size_t size, at;

	for (size = 0; size <= STREAMING_MAX_COPY; size++) {
		for (at = 0; at < 64; at++)
			streaming_copy_check(test, streaming_copy_any, size,
					     STREAMING_GUARD + at, 0);
		for (at = 0; at < 8; at++)
			streaming_copy_check(test, streaming_copy_any, size,
					     STREAMING_GUARD + at, 3);
		streaming_copy_check(test, streaming_copy_any, size, 0, 0);
		streaming_copy_check(test, streaming_copy_any, size,
				     STREAMING_AREA - size, 0);
	}
}

static void streaming_copy_size_test(struct kunit *test)
{
	const struct streaming_size *s = test->param_value;
	size_t at;

	for (at = 0; at < 64; at++) {
		streaming_copy_check(test, s->copy, s->size,
				     STREAMING_GUARD + at, 0);
		streaming_copy_check(test, s->copy, s->size,
				     STREAMING_GUARD + at, 3);
	}
	streaming_copy_check(test, s->copy, s->size, 0, 0);
	streaming_copy_check(test, s->copy, s->size, STREAMING_AREA - s->size, 0);
}

static void streaming_fill_check(struct kunit *test,
				 const struct streaming_size *s, size_t nr,
				 size_t at)
{
	const struct streaming_buffers *b = test->priv;
	const size_t len = s->size * nr;
	size_t i;

	streaming_prepare(b, at, len);
	for (i = 0; i < len; i++)
		b->expected[at + i] = b->src_kept[i % s->size];
	s->fill(b->dst + at, b->src, s->size, nr);
	memcpy_streaming_drain();
	streaming_check(test, b, "fill", s->size, nr, at, len);

	streaming_prepare(b, at, len);
	for (i = 0; i < len; i++)
		b->expected[at + i] = b->src_kept[i % s->size];
	s->fill_cached(b->dst + at, b->src, s->size, nr);
	streaming_check(test, b, "cached fill", s->size, nr, at, len);
}

static void streaming_fill_test(struct kunit *test)
{
	const struct streaming_size *s = test->param_value;
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(streaming_nr); i++) {
		const size_t nr = streaming_nr[i];

		for (j = 0; j < ARRAY_SIZE(streaming_alignments); j++)
			streaming_fill_check(test, s, nr, STREAMING_GUARD +
					     streaming_alignments[j]);
		streaming_fill_check(test, s, nr, 0);
		streaming_fill_check(test, s, nr, STREAMING_AREA - s->size * nr);
	}
}

/* What a test case of memfill_streaming_step() adds to the words. */
enum streaming_step {
	STEP_ZERO,
	STEP_POINTERS,
	STEP_NEGATIVE,
	STEP_OVERFLOW,
	STEP_RANDOM,
	STEP_NR
};

static const char * const streaming_step_names[] = {
	[STEP_ZERO]	= "fill, step zero",
	[STEP_POINTERS]	= "fill, step of two pointers",
	[STEP_NEGATIVE]	= "fill, negative step",
	[STEP_OVERFLOW]	= "fill, step that overflows",
	[STEP_RANDOM]	= "fill, step in each word",
};

static void streaming_step_make(struct rnd_state *rnd, enum streaming_step kind,
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

static void streaming_step_check_one(struct kunit *test,
				     const struct streaming_step_size *s,
				     size_t nr, size_t at,
				     enum streaming_step kind, bool cached)
{
	struct streaming_buffers *b = test->priv;
	const size_t words = s->size / sizeof(u64);
	const char *name = streaming_step_names[kind];
	/* One word more than there can be: it must stay what it is. */
	u64 image[STREAMING_MAX_WORDS + 1], first[STREAMING_MAX_WORDS];
	u64 step[STREAMING_MAX_WORDS + 1], step_kept[STREAMING_MAX_WORDS];
	size_t copy, w;

	streaming_step_make(&b->rnd, kind, image, step, words);
	memcpy(first, image, s->size);
	memcpy(step_kept, step, s->size);
	image[words] = STREAMING_SEED;
	step[words] = 1;

	streaming_prepare(b, at, s->size * nr);
	for (copy = 0; copy < nr; copy++) {
		for (w = 0; w < words; w++) {
			const u64 word = first[w] + copy * step_kept[w];

			memcpy(b->expected + at + copy * s->size + w * sizeof(word),
			       &word, sizeof(word));
		}
	}

	if (cached)
		s->fill_cached(b->dst + at, image, step, s->size, nr);
	else
		s->fill(b->dst + at, image, step, s->size, nr);
	memcpy_streaming_drain();
	streaming_check(test, b, name, s->size, nr, at, s->size * nr);

	for (w = 0; w < words; w++) {
		KUNIT_ASSERT_EQ_MSG(test, image[w], first[w] + nr * step_kept[w],
				    "%s, size %zu, nr %zu, to +%zu: word %zu of the image left",
				    name, s->size, nr, at, w);
		KUNIT_ASSERT_EQ_MSG(test, step[w], step_kept[w],
				    "%s, size %zu, nr %zu, to +%zu: word %zu of the step changed",
				    name, s->size, nr, at, w);
	}
	KUNIT_ASSERT_EQ_MSG(test, image[words], STREAMING_SEED,
			    "%s, size %zu, nr %zu, to +%zu: written behind the image",
			    name, s->size, nr, at);
}

static void streaming_step_check(struct kunit *test,
				 const struct streaming_step_size *s,
				 size_t nr, size_t at, enum streaming_step kind)
{
	streaming_step_check_one(test, s, nr, at, kind, false);
	streaming_step_check_one(test, s, nr, at, kind, true);
}

static void streaming_fill_step_test(struct kunit *test)
{
	const struct streaming_step_size *s = test->param_value;
	enum streaming_step kind;
	size_t i, j;

	for (kind = 0; kind < STEP_NR; kind++) {
		for (i = 0; i < ARRAY_SIZE(streaming_nr); i++) {
			const size_t nr = streaming_nr[i];

			for (j = 0; j < ARRAY_SIZE(streaming_alignments); j++)
				streaming_step_check(test, s, nr,
						     STREAMING_GUARD +
						     streaming_alignments[j],
						     kind);
			streaming_step_check(test, s, nr, 0, kind);
			streaming_step_check(test, s, nr,
					     STREAMING_AREA - s->size * nr, kind);
		}
	}
}

/* With nothing streamed, and twice in a row. */
static void streaming_drain_test(struct kunit *test)
{
	memcpy_streaming_drain();
	memcpy_streaming_drain();
}

/*
 * Known to the compiler before the copy, and read after it without a drain: a
 * CPU sees its own stores.
 */
static void streaming_read_back_test(struct kunit *test)
{
	const struct streaming_buffers *b = test->priv;
	u64 copied[8] = {}, filled[16] = {}, source[8];
	size_t i;

	memcpy(source, b->src_kept, sizeof(source));
	memcpy_streaming(copied, source, sizeof(copied));
	memfill_streaming(filled, source, sizeof(source), 2);
	for (i = 0; i < ARRAY_SIZE(filled); i++) {
		KUNIT_EXPECT_EQ_MSG(test, copied[i % 8], source[i % 8],
				    "word %zu of the copy", i % 8);
		KUNIT_EXPECT_EQ_MSG(test, filled[i], source[i % 8],
				    "word %zu of the fill", i);
	}
}

KUNIT_DEFINE_ACTION_WRAPPER(streaming_vfree, vfree, const void *);

static u8 *streaming_alloc(struct kunit *test, size_t size)
{
	u8 *p = vmalloc(size);

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, streaming_vfree, p));
	return p;
}

static int streaming_test_init(struct kunit *test)
{
	struct streaming_buffers *b;

	b = (void *)streaming_alloc(test, sizeof(*b));
	b->dst = streaming_alloc(test, STREAMING_AREA);
	b->expected = streaming_alloc(test, STREAMING_AREA);
	b->background = streaming_alloc(test, STREAMING_AREA);

	prandom_seed_state(&b->rnd, STREAMING_SEED);
	prandom_bytes_state(&b->rnd, b->background, STREAMING_AREA);
	prandom_bytes_state(&b->rnd, b->src_kept, sizeof(b->src_kept));
	memcpy(b->src, b->src_kept, sizeof(b->src));
	test->priv = b;
	return 0;
}

static struct kunit_case streaming_test_cases[] = {
	KUNIT_CASE(streaming_copy_test),
	KUNIT_CASE_PARAM(streaming_copy_size_test, streaming_size_gen_params),
	KUNIT_CASE_PARAM(streaming_fill_test, streaming_size_gen_params),
	KUNIT_CASE_PARAM(streaming_fill_step_test,
			 streaming_step_size_gen_params),
	KUNIT_CASE(streaming_read_back_test),
	KUNIT_CASE(streaming_drain_test),
	{}
};

static struct kunit_suite streaming_test_suite = {
	.name = "memcpy_streaming",
	.init = streaming_test_init,
	.test_cases = streaming_test_cases,
};

kunit_test_suite(streaming_test_suite);

MODULE_DESCRIPTION("KUnit tests for memcpy_streaming() and its fills");
MODULE_LICENSE("GPL");
