// SPDX-License-Identifier: GPL-2.0-only
/*
 * The copy limit of a machine: plain loops that copy a folio through the cache,
 * and others, for comparison, whose stores go past it.
 */
#include <immintrin.h>

#include "host.h"

static void copy_movsb(void *dst, const void *src, size_t bytes)
{
	asm volatile("rep movsb" : "+D" (dst), "+S" (src), "+c" (bytes) : : "memory");
}

static void copy_movsq(void *dst, const void *src, size_t bytes)
{
	bytes /= 8;
	asm volatile("rep movsq" : "+D" (dst), "+S" (src), "+c" (bytes) : : "memory");
}

/* A loop over four vectors at a time, of type @type, which @load and @store move. */
#define DEFINE_COPY(name, isa, type, load, store, end)				\
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
	end;									\
}

#define NOTHING do { } while (0)

DEFINE_COPY(sse2, "sse2", __m128i, _mm_load_si128, _mm_store_si128, NOTHING)
DEFINE_COPY(avx, "avx", __m256i, _mm256_load_si256, _mm256_store_si256, NOTHING)
DEFINE_COPY(avx512, "avx512f", __m512i, _mm512_load_si512, _mm512_store_si512, NOTHING)
DEFINE_COPY(sse2_nt, "sse2", __m128i, _mm_load_si128, _mm_stream_si128, _mm_sfence())
DEFINE_COPY(avx_nt, "avx", __m256i, _mm256_load_si256, _mm256_stream_si256, _mm_sfence())

const struct copy_loop copy_loops[] = {
	{ "movsb", "sse2", 0, copy_movsb },
	{ "movsq", "sse2", 0, copy_movsq },
	{ "sse2", "sse2", 0, copy_sse2 },
	{ "avx", "avx", 0, copy_avx },
	{ "avx512", "avx512f", 0, copy_avx512 },
	{ "sse2-nt", "sse2", 1, copy_sse2_nt },
	{ "avx-nt", "avx", 1, copy_avx_nt },
	{ }
};
