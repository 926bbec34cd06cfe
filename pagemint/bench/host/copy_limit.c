// SPDX-License-Identifier: GPL-2.0-only
/* The copy limit of a machine: plain loops that copy a folio through the cache. */
#include <immintrin.h>
#include <string.h>

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

static const struct {
	const char *name, *feature;
	void (*copy)(void *dst, const void *src, size_t bytes);
} loops[] = {
	{ "movsb", "sse2", copy_movsb },
	{ "movsq", "sse2", copy_movsq },
	{ "sse2", "sse2", copy_sse2 },
	{ "avx", "avx", copy_avx },
	{ "avx512", "avx512f", copy_avx512 },
};

enum { LOOPS = sizeof(loops) / sizeof(*loops) };

/* copy_loops: answers loop= for each loop that this CPU can run. */
NATIVE_COMMAND(copy_loops)
{
	for (size_t i = 0; i < LOOPS; i++)
		if (cpu_has(loops[i].feature))
			answer_word(r, "loop", loops[i].name);
}

/*
 * copy_loop loop= order= folios= to= from=: copies folios with a plain loop, in the
 * order of the command copy of workloads/folio.c. Answers ns=.
 */
NATIVE_COMMAND(copy_loop)
{
	unsigned long order = native_number(r, "order"), nr = native_number(r, "folios");
	unsigned long to = native_number(r, "to"), from = native_number(r, "from");
	const char *name = native_word(r, "loop");
	long begun;
	size_t l;

	native_need_memory(r, to, nr << order);
	native_need_memory(r, from, nr << order);
	for (l = 0; l < LOOPS && strcmp(loops[l].name, name); l++)
		;
	if (l == LOOPS)
		native_refuse(r, "does not know this loop");
	begun = native_now();
	for (unsigned long i = 0; i < nr; i++)
		loops[l].copy(memory_page(to + (native_target(i, nr) << order)),
			      memory_page(from + (native_source(i, nr) << order)),
			      PAGE << order);
	native_answer(r, "ns", native_now() - begun);
}
