// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests memfill_cached() and memfill_streaming() against byte
 * loops: every size from 0 to 256 at every alignment from 0 to 63, at both ends
 * of memory between two guard pages. Compiled with the headers of the kernel on
 * those of pagemint/bench/host/shim.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <linux/memfill_streaming.h>

enum { MAX_SIZE = 256, MAX_NR = 17, PAGES = 3, PAGE = 4096, LINE = 64, CANARY = 0xc5 };

typedef void memfill_fn(void *dst, u64 *image, const u64 *step, size_t size, size_t nr);

struct arena {
	unsigned char *start, *end;
};

static unsigned char expected[PAGES * PAGE];
static unsigned long checks;

/* As in the kernel's engine, the size of struct page is a compile-time constant. */
static void fill_cached(void *dst, u64 *image, const u64 *step, size_t size, size_t nr)
{
	if (size == 64)
		memfill_cached(dst, image, step, 64, nr);
	else
		memfill_cached(dst, image, step, size, nr);
}

static void fill_streaming(void *dst, u64 *image, const u64 *step, size_t size, size_t nr)
{
	if (size == 64)
		memfill_streaming(dst, image, step, 64, nr);
	else
		memfill_streaming(dst, image, step, size, nr);
}

static struct arena make_arena(void)
{
	unsigned char *p = mmap(NULL, (PAGES + 2) * PAGE, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED ||
	    mprotect(p + PAGE, PAGES * PAGE, PROT_READ | PROT_WRITE))
		return (struct arena){ };
	return (struct arena){ p + PAGE, p + (PAGES + 1) * PAGE };
}

/* Fill with bytes in which no run of 8 occurs twice. */
static void scribble(unsigned char *p, size_t n, u32 seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = seed >> 24;
	}
}

/* The first or the last address in the arena for n bytes at that alignment. */
static unsigned char *place(const struct arena *a, size_t n, size_t align, int last)
{
	unsigned char *p = a->start + align;

	if (last)
		p += (a->end - p - n) / LINE * LINE;
	return p;
}

/* Whether the arena has the expected bytes, and all others are unchanged. */
static int compare(const struct arena *a, const char *what, size_t size, size_t nr,
		   size_t align, int last)
{
	const size_t n = a->end - a->start;

	checks++;
	if (!memcmp(a->start, expected, n))
		return 1;
	for (size_t i = 0; i < n; i++) {
		if (a->start[i] == expected[i])
			continue;
		fprintf(stderr, "%s size %zu nr %zu alignment %zu %s: byte %zu is %#x, not %#x\n",
		       what, size, nr, align, last ? "at the end" : "at the start",
		       i, a->start[i], expected[i]);
		break;
	}
	return 0;
}

static unsigned char *expect(const struct arena *a, unsigned char *dst)
{
	memset(a->start, CANARY, a->end - a->start);
	memset(expected, CANARY, sizeof(expected));
	return expected + (dst - a->start);
}

/* The steps of the words in turn: none, forward, back, wrapping; all 0 unless @with. */
static u64 step_of(size_t word, int with)
{
	return with ? (u64[]){ 0, 64, -64, 1UL << 63 }[word % 4] : 0;
}

static int test_fill(const char *what, memfill_fn *fill, const struct arena *to, size_t size,
		     size_t nr, size_t align, int last, int with)
{
	unsigned char *dst = place(to, size * nr, align, last);
	unsigned char *e = expect(to, dst);
	u64 image[MAX_SIZE / 8], step[MAX_SIZE / 8], word[MAX_SIZE / 8];

	scribble((unsigned char *)image, size, size + align);
	for (size_t i = 0; i < size / 8; i++)
		step[i] = step_of(i, with);
	memcpy(word, image, size);
	for (size_t k = 0; k < nr; k++)
		for (size_t i = 0; i < size / 8; i++) {
			for (size_t b = 0; b < 8; b++)
				*e++ = word[i] >> (8 * b);
			word[i] += step[i];
		}
	fill(dst, image, with ? step : NULL, size, nr);
	memfill_streaming_drain();
	checks++;
	if (memcmp(word, image, size)) {
		fprintf(stderr, "%s size %zu nr %zu: the image it left is wrong\n", what, size,
		       nr);
		return 0;
	}
	return compare(to, what, size, nr, align, last);
}

static int test_fills(const struct arena *to, size_t size, size_t align, int last)
{
	static const size_t nrs[] = { 0, 1, 2, 3, MAX_NR };

	for (size_t i = 0; i < sizeof(nrs) / sizeof(*nrs); i++)
		for (int with = 0; with < 2; with++)
			if (!test_fill("memfill_cached", fill_cached, to, size, nrs[i], align, last,
				       with) ||
			    !test_fill("memfill_streaming", fill_streaming, to, size, nrs[i], align,
				       last, with))
				return 0;
	return 1;
}

int main(void)
{
	const struct arena to = make_arena();

	if (!to.start) {
		fprintf(stderr, "no memory for the test\n");
		return 1;
	}
	/* Images are whole words at aligned addresses. */
	for (size_t size = 8; size <= MAX_SIZE; size += 8)
		for (size_t align = 0; align < LINE; align += 8)
			for (int last = 0; last < 2; last++)
				if (!test_fills(&to, size, align, last))
					return 1;
	printf("%lu\n", checks);
	return 0;
}
