// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests for memcpy_flushcache().
 *
 * Its callers write to persistent memory: superblocks and log entries whose
 * size the compiler knows, and data whose size it does not. They rely on every
 * byte being copied, on no byte beside them being touched, and on reading back
 * what they wrote. Where an architecture has inline copies for some sizes,
 * these must do the same as the function they stand for.
 *
 * The tests cannot see whether the data has left the cache.
 */
#include <kunit/test.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#define FLUSHCACHE_SEED		0x666c757368ULL
#define FLUSHCACHE_GUARD	64
#define FLUSHCACHE_MAX_SIZE	256
#define FLUSHCACHE_ALIGNMENTS	16

/**
 * struct flushcache_buffers - what a test case copies from and to
 * @dst: one page, with unmapped addresses before and after it
 * @src: another one
 * @background: what @dst holds where nothing is copied to
 * @expected_dst: what @dst must hold after the copy
 * @expected_src: what @src holds, before and after
 */
struct flushcache_buffers {
	u8 *dst;
	u8 *src;
	u8 *background;
	u8 *expected_dst;
	u8 *expected_src;
};

/**
 * struct flushcache_constant - a copy whose size the compiler knows
 * @name: the size, for the log
 * @size: the size
 * @copy: copies that many bytes
 * @digest: copies them to the stack and returns flushcache_digest() of that
 */
struct flushcache_constant {
	const char *name;
	size_t size;
	void (*copy)(void *dst, const void *src);
	u32 (*digest)(const void *src);
};

static __always_inline u32 flushcache_digest(const u8 *data, size_t size)
{
	u32 digest = 0;
	size_t i;

	for (i = 0; i < size; i++)
		digest = digest * 31 + data[i];
	return digest;
}

/*
 * The compiler knows what the buffer holds before the copy. If the copy does not
 * say that it changes memory, the compiler may take the digest of the old
 * contents.
 */
#define DEFINE_DIGEST(n)						\
static noinline u32 flushcache_digest_##n(const void *src)		\
{									\
	u8 data[n] __aligned(8) = {};					\
									\
	memcpy_flushcache(data, src, sizeof(data));			\
	return flushcache_digest(data, sizeof(data));			\
}									\
static_assert(true)

#define DEFINE_COPY(n)							\
static noinline void flushcache_copy_##n(void *dst, const void *src)	\
{									\
	memcpy_flushcache(dst, src, n);					\
}									\
static_assert(true)

#define CONSTANT_SIZE(n) \
	{ #n, n, flushcache_copy_##n, flushcache_digest_##n }

DEFINE_COPY(4);
DEFINE_COPY(8);
DEFINE_COPY(16);
DEFINE_COPY(32);
DEFINE_COPY(48);
DEFINE_COPY(64);
DEFINE_COPY(80);
DEFINE_COPY(96);
DEFINE_COPY(1);
DEFINE_COPY(12);
DEFINE_COPY(24);
DEFINE_COPY(40);
DEFINE_COPY(56);
DEFINE_COPY(72);
DEFINE_COPY(88);
DEFINE_COPY(104);
DEFINE_COPY(128);

DEFINE_DIGEST(4);
DEFINE_DIGEST(8);
DEFINE_DIGEST(16);
DEFINE_DIGEST(32);
DEFINE_DIGEST(48);
DEFINE_DIGEST(64);
DEFINE_DIGEST(80);
DEFINE_DIGEST(96);
DEFINE_DIGEST(1);
DEFINE_DIGEST(12);
DEFINE_DIGEST(24);
DEFINE_DIGEST(40);
DEFINE_DIGEST(56);
DEFINE_DIGEST(72);
DEFINE_DIGEST(88);
DEFINE_DIGEST(104);
DEFINE_DIGEST(128);

static const struct flushcache_constant flushcache_constants[] = {
	/* The sizes that x86 copies inline. */
	CONSTANT_SIZE(4), CONSTANT_SIZE(8), CONSTANT_SIZE(16),
	CONSTANT_SIZE(32), CONSTANT_SIZE(48), CONSTANT_SIZE(64),
	CONSTANT_SIZE(80), CONSTANT_SIZE(96),
	/* Some around them. */
	CONSTANT_SIZE(1), CONSTANT_SIZE(12), CONSTANT_SIZE(24),
	CONSTANT_SIZE(40), CONSTANT_SIZE(56), CONSTANT_SIZE(72),
	CONSTANT_SIZE(88), CONSTANT_SIZE(104), CONSTANT_SIZE(128),
};

KUNIT_ARRAY_PARAM_DESC(flushcache_constant, flushcache_constants, name);

static noinline void flushcache_copy_any(void *dst, const void *src,
					 size_t size)
{
	OPTIMIZER_HIDE_VAR(size);
	memcpy_flushcache(dst, src, size);
}

/* Offset of the first byte in [@from, @to) that differs, or @to. */
static size_t flushcache_mismatch(const u8 *a, const u8 *b, size_t from,
				  size_t to)
{
	while (from < to && a[from] == b[from])
		from++;
	return from;
}

/* Copy with @constant, or if that is NULL with a size known at run time. */
static void flushcache_check(struct kunit *test,
			     const struct flushcache_constant *constant,
			     size_t size, size_t dst_at, size_t src_at)
{
	const struct flushcache_buffers *b = test->priv;
	const size_t start = dst_at - min(dst_at, FLUSHCACHE_GUARD);
	const size_t end = min(dst_at + size + FLUSHCACHE_GUARD, PAGE_SIZE);
	const size_t src_end = min(src_at + size + FLUSHCACHE_GUARD, PAGE_SIZE);
	size_t i;

	for (i = start; i < end; i++) {
		b->dst[i] = b->background[i];
		b->expected_dst[i] = b->background[i];
	}
	for (i = 0; i < size; i++)
		b->expected_dst[dst_at + i] = b->expected_src[src_at + i];

	if (constant)
		constant->copy(b->dst + dst_at, b->src + src_at);
	else
		flushcache_copy_any(b->dst + dst_at, b->src + src_at, size);

	i = flushcache_mismatch(b->dst, b->expected_dst, start, end);
	KUNIT_ASSERT_EQ_MSG(test, i, end,
			    "size %zu from +%zu to +%zu: wrong at byte %zd of the destination",
			    size, src_at, dst_at, (ssize_t)(i - dst_at));
	i = flushcache_mismatch(b->src, b->expected_src, 0, src_end);
	KUNIT_ASSERT_EQ_MSG(test, i, src_end,
			    "size %zu from +%zu to +%zu: byte %zd of the source changed",
			    size, src_at, dst_at, (ssize_t)(i - src_at));
}

/* One byte too many, on either side, would fault. */
static void flushcache_check_edges(struct kunit *test,
				   const struct flushcache_constant *constant,
				   size_t size)
{
	const size_t last = PAGE_SIZE - size;

	flushcache_check(test, constant, size, 0, 0);
	flushcache_check(test, constant, size, 0, last);
	flushcache_check(test, constant, size, last, 0);
	flushcache_check(test, constant, size, last, last);
}

static void flushcache_constant_size_test(struct kunit *test)
{
	const struct flushcache_constant *constant = test->param_value;
	const size_t size = constant->size;
	size_t dst_at, src_at;

	for (dst_at = 0; dst_at < FLUSHCACHE_ALIGNMENTS; dst_at++)
		for (src_at = 0; src_at < FLUSHCACHE_ALIGNMENTS; src_at++)
			flushcache_check(test, constant, size,
					 FLUSHCACHE_GUARD + dst_at, src_at);
	flushcache_check_edges(test, constant, size);
}

static void flushcache_read_back_test(struct kunit *test)
{
	const struct flushcache_constant *constant = test->param_value;
	const struct flushcache_buffers *b = test->priv;
	const size_t size = constant->size;
	size_t at;

	for (at = 0; at < FLUSHCACHE_ALIGNMENTS; at++)
		KUNIT_ASSERT_EQ_MSG(test, constant->digest(b->src + at),
				    flushcache_digest(b->expected_src + at, size),
				    "size %zu from +%zu: a read after the copy does not see it",
				    size, at);
}

static void flushcache_runtime_size_test(struct kunit *test)
{
	size_t size, dst_at, src_at;

	for (size = 0; size <= FLUSHCACHE_MAX_SIZE; size++)
		for (dst_at = 0; dst_at < FLUSHCACHE_ALIGNMENTS; dst_at++)
			for (src_at = 0; src_at < FLUSHCACHE_ALIGNMENTS; src_at++)
				flushcache_check(test, NULL, size,
						 FLUSHCACHE_GUARD + dst_at,
						 src_at);
}

static void flushcache_runtime_size_edge_test(struct kunit *test)
{
	size_t size;

	for (size = 1; size <= FLUSHCACHE_MAX_SIZE; size++)
		flushcache_check_edges(test, NULL, size);
	flushcache_check_edges(test, NULL, PAGE_SIZE);
}

KUNIT_DEFINE_ACTION_WRAPPER(flushcache_vfree, vfree, const void *);

static u8 *flushcache_alloc_page(struct kunit *test)
{
	u8 *page = vmalloc(PAGE_SIZE);

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, flushcache_vfree, page));
	return page;
}

static int flushcache_test_init(struct kunit *test)
{
	struct flushcache_buffers *b;
	struct rnd_state rnd;

	b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, b);
	b->dst = flushcache_alloc_page(test);
	b->src = flushcache_alloc_page(test);
	b->background = flushcache_alloc_page(test);
	b->expected_dst = flushcache_alloc_page(test);
	b->expected_src = flushcache_alloc_page(test);

	prandom_seed_state(&rnd, FLUSHCACHE_SEED);
	prandom_bytes_state(&rnd, b->background, PAGE_SIZE);
	prandom_bytes_state(&rnd, b->expected_src, PAGE_SIZE);
	memcpy(b->src, b->expected_src, PAGE_SIZE);
	test->priv = b;
	return 0;
}

static struct kunit_case flushcache_test_cases[] = {
	KUNIT_CASE_PARAM(flushcache_constant_size_test,
			 flushcache_constant_gen_params),
	KUNIT_CASE_PARAM(flushcache_read_back_test,
			 flushcache_constant_gen_params),
	KUNIT_CASE(flushcache_runtime_size_test),
	KUNIT_CASE(flushcache_runtime_size_edge_test),
	{}
};

static struct kunit_suite flushcache_test_suite = {
	.name = "memcpy_flushcache",
	.init = flushcache_test_init,
	.test_cases = flushcache_test_cases,
};

kunit_test_suite(flushcache_test_suite);

MODULE_DESCRIPTION("KUnit tests for memcpy_flushcache()");
MODULE_LICENSE("GPL");
