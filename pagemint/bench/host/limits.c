// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limits of a machine: plain loops of non-temporal stores that fill memory, and
 * plain loops that copy a folio through the cache, for each width. Fills write
 * non-zero data, since some CPUs write zeros twice as fast.
 */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "host.h"

#define PATTERN 0x5af05af05af05af0L

static void fill_movnti(void *dst, size_t bytes)
{
	long long *p = dst, *end = p + bytes / 8;
	long long v = PATTERN;

	for (; p < end; p += 8)
		asm volatile("movnti %1, (%0)\n movnti %1, 8(%0)\n"
			     "movnti %1, 16(%0)\n movnti %1, 24(%0)\n"
			     "movnti %1, 32(%0)\n movnti %1, 40(%0)\n"
			     "movnti %1, 48(%0)\n movnti %1, 56(%0)"
			     : : "r" (p), "r" (v) : "memory");
	_mm_sfence();
}

/* Define a loop that fills 64 bytes at a time with vectors of @type. */
#define DEFINE_FILL(name, isa, type, set, stream)				\
__attribute__((target(isa)))							\
static void fill_##name(void *dst, size_t bytes)				\
{										\
	type *p = dst, *end = dst + bytes, v = set(PATTERN);			\
										\
	for (; p < end; p += 64 / sizeof(v))					\
		_Pragma("GCC unroll 4")						\
		for (size_t i = 0; i < 64 / sizeof(v); i++)			\
			stream(p + i, v);					\
	_mm_sfence();								\
}

DEFINE_FILL(sse2, "sse2", __m128i, _mm_set1_epi64x, _mm_stream_si128)
DEFINE_FILL(avx, "avx", __m256i, _mm256_set1_epi64x, _mm256_stream_si256)
DEFINE_FILL(avx512, "avx512f", __m512i, _mm512_set1_epi64, _mm512_stream_si512)

static void copy_movsb(void *dst, const void *src, size_t bytes)
{
	asm volatile("rep movsb" : "+D" (dst), "+S" (src), "+c" (bytes) : : "memory");
}

static void copy_movsq(void *dst, const void *src, size_t bytes)
{
	bytes /= 8;
	asm volatile("rep movsq" : "+D" (dst), "+S" (src), "+c" (bytes) : : "memory");
}

/* Define a loop that copies four vectors of @type at a time, with @load and @store. */
#define DEFINE_COPY(name, isa, type, load, store)				\
__attribute__((target(isa)))							\
static void copy_##name(void *dst, const void *src, size_t bytes)		\
{										\
	const type *s = src, *stop = src + bytes;				\
	type *d = dst;								\
										\
	for (; s < stop; s += 4, d += 4) {					\
		type a = load(s), b = load(s + 1), c = load(s + 2), e = load(s + 3); \
										\
		store(d, a);							\
		store(d + 1, b);						\
		store(d + 2, c);						\
		store(d + 3, e);						\
	}									\
}

DEFINE_COPY(sse2, "sse2", __m128i, _mm_load_si128, _mm_store_si128)
DEFINE_COPY(avx, "avx", __m256i, _mm256_load_si256, _mm256_store_si256)
DEFINE_COPY(avx512, "avx512f", __m512i, _mm512_load_si512, _mm512_store_si512)

static const struct loop {
	const char *name;
	void (*fill)(void *dst, size_t bytes);
	void (*copy)(void *dst, const void *src, size_t bytes);
} loops[] = {
	{ "movnti", fill_movnti, NULL },
	{ "movsb", NULL, copy_movsb },
	{ "movsq", NULL, copy_movsq },
	{ "sse2", fill_sse2, copy_sse2 },
	{ "avx", fill_avx, copy_avx },
	{ "avx512", fill_avx512, copy_avx512 },
};

enum { LOOPS = sizeof(loops) / sizeof(*loops) };

static int does(const struct loop *loop, int fills)
{
	return fills ? !!loop->fill : !!loop->copy;
}

/* __builtin_cpu_supports() takes only literals. */
static int runs(const struct loop *loop)
{
	return !strcmp(loop->name, "avx512") ? __builtin_cpu_supports("avx512f") :
	       !strcmp(loop->name, "avx") ? __builtin_cpu_supports("avx") : 1;
}

/* loops fills=: answers loop= for each loop that this CPU can run: of fills, or of copies. */
NATIVE_COMMAND(loops)
{
	int fills = native_number(r, "fills");

	for (size_t i = 0; i < LOOPS; i++)
		if (does(&loops[i], fills) && runs(&loops[i]))
			answer_word(r, "loop", loops[i].name);
}

static const struct loop *chosen(struct native_request *r, int fills)
{
	const char *name = native_word(r, "loop");

	for (size_t i = 0; i < LOOPS; i++)
		if (does(&loops[i], fills) && !strcmp(loops[i].name, name))
			return &loops[i];
	native_refuse(r, "does not know this loop");
}

/*
 * fill loop= first= pages= threads=: fills the memmap of PAGES pages from PFN FIRST
 * with a loop, in THREADS threads. Answers ns=.
 */
NATIVE_COMMAND(fill)
{
	unsigned long first = native_number(r, "first"), pages = native_number(r, "pages");
	unsigned int threads = native_number(r, "threads");
	const struct loop *loop = chosen(r, 1);
	long begun;

	native_need_memmap(r, first, pages);
	native_have_threads(threads);
	begun = native_now();
	threads_share(loop->fill, window_page(first), pages * tree_at(0)->page_size, threads);
	native_answer(r, "ns", native_now() - begun);
}

/*
 * copy_loop loop= order= folios= to= from=: copies folios with a plain loop, in the
 * order of the command copy of workloads/folio.c. Answers ns=.
 */
NATIVE_COMMAND(copy_loop)
{
	unsigned long order = native_number(r, "order"), nr = native_number(r, "folios");
	unsigned long to = native_number(r, "to"), from = native_number(r, "from");
	const struct loop *loop = chosen(r, 0);
	long begun;

	native_need_memory(r, to, nr << order);
	native_need_memory(r, from, nr << order);
	begun = native_now();
	for (unsigned long i = 0; i < nr; i++)
		loop->copy(memory_page(to + (native_target(i, nr) << order)),
			   memory_page(from + (native_source(i, nr) << order)), PAGE << order);
	native_answer(r, "ns", native_now() - begun);
}
