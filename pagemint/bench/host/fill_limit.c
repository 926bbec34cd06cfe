// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fill limit of a machine: plain loops of non-temporal stores, one for each
 * width. They write non-zero data, since some CPUs write zeros twice as fast.
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

static void fill_sse2(void *dst, size_t bytes)
{
	__m128i *p = dst, *end = p + bytes / 16;
	__m128i v = _mm_set1_epi64x(PATTERN);

	for (; p < end; p += 4) {
		_mm_stream_si128(p, v);
		_mm_stream_si128(p + 1, v);
		_mm_stream_si128(p + 2, v);
		_mm_stream_si128(p + 3, v);
	}
	_mm_sfence();
}

__attribute__((target("avx")))
static void fill_avx(void *dst, size_t bytes)
{
	__m256i *p = dst, *end = p + bytes / 32;
	__m256i v = _mm256_set1_epi64x(PATTERN);

	for (; p < end; p += 2) {
		_mm256_stream_si256(p, v);
		_mm256_stream_si256(p + 1, v);
	}
	_mm_sfence();
}

__attribute__((target("avx512f")))
static void fill_avx512(void *dst, size_t bytes)
{
	__m512i *p = dst, *end = p + bytes / 64;
	__m512i v = _mm512_set1_epi64(PATTERN);

	for (; p < end; p++)
		_mm512_stream_si512(p, v);
	_mm_sfence();
}

static const struct {
	const char *name, *feature;
	void (*fill)(void *dst, size_t bytes);
} loops[] = {
	{ "movnti", "sse2", fill_movnti },
	{ "sse2", "sse2", fill_sse2 },
	{ "avx", "avx", fill_avx },
	{ "avx512", "avx512f", fill_avx512 },
};

enum { LOOPS = sizeof(loops) / sizeof(*loops) };

/* fill_loops: answers loop= for each loop that this CPU can run. */
NATIVE_COMMAND(fill_loops)
{
	for (size_t i = 0; i < LOOPS; i++)
		if (cpu_has(loops[i].feature))
			answer_word(r, "loop", loops[i].name);
}

/*
 * fill loop= first= pages= threads=: fills the memmap of PAGES pages from PFN FIRST
 * with a loop, in THREADS threads. Answers ns=.
 */
NATIVE_COMMAND(fill)
{
	unsigned long first = native_number(r, "first"), pages = native_number(r, "pages");
	unsigned int threads = native_number(r, "threads");
	const char *name = native_word(r, "loop");
	long begun;
	size_t i;

	native_need_memmap(r, first, pages);
	for (i = 0; i < LOOPS && strcmp(loops[i].name, name); i++)
		;
	if (i == LOOPS)
		native_refuse(r, "does not know this loop");
	native_have_threads(threads);
	begun = native_now();
	threads_share(loops[i].fill, window_page(first), pages * tree_at(0)->page_size, threads);
	native_answer(r, "ns", native_now() - begun);
}
