// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies of runs of pages.
 *
 * copy_page() has for each CPU what suits a page. Over a run, something else
 * can be faster: Zen 3 copies 2 MiB that are not in its cache faster with a
 * loop than with the string instruction, and what is in the cache more slowly.
 * Neither the model of the CPU nor the length tells. So the first pages of a
 * run are copied in both ways, and the rest in the faster one.
 *
 * The loop moves 16 bytes at a time, which takes an FPU section. With 8, it is
 * slower there.
 */
#include <linux/cpufeature.h>
#include <linux/instrumented.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include <asm/fpu/api.h>
#include <asm/page.h>
#include <asm/tsc.h>

/* Pages that are copied and timed at once, and how often each way gets to. */
#define COPY_PAGES_LAP		8
#define COPY_PAGES_LAPS		2

/* Pages that are copied in one FPU section, in which nothing preempts the task. */
#define COPY_PAGES_SECTION	(SZ_64K >> PAGE_SHIFT)

/*
 * The shortest run that is worth a race, twice its length; shorter ones gain
 * nothing by one long string instruction. And the longest: on some CPUs those
 * that are longer than the cache pass it by, which no loop does.
 */
#define COPY_PAGES_RACE_MIN	(SZ_256K >> PAGE_SHIFT)
#define COPY_PAGES_RACE_MAX	(SZ_2M >> PAGE_SHIFT)

enum copy_pages_way {
	COPY_PAGES_STRING,
	COPY_PAGES_LOOP,
	COPY_PAGES_WAYS
};

/* Return the bytes that were not copied; not 0 only if @mc. */
static __always_inline unsigned long
copy_pages_by_loop(void *to, const void *from, unsigned int npages, bool mc)
{
	unsigned long size, left = 0;
	unsigned int n;

	for (; npages && !left; npages -= n, to += size, from += size) {
		n = min(npages, COPY_PAGES_SECTION);
		size = n * PAGE_SIZE;
		kernel_fpu_begin();
		if (mc)
			left = copy_mc_pages_loop(to, from, n);
		else
			copy_pages_loop(to, from, n);
		kernel_fpu_end();
	}
	return left + npages * PAGE_SIZE;
}

/* The same. */
static __always_inline unsigned long
copy_pages_by(enum copy_pages_way way, void *to, const void *from,
	      unsigned int npages, bool mc)
{
	unsigned long size = npages * PAGE_SIZE;
	unsigned long words = size / sizeof(u64);
	unsigned long left;

	if (way == COPY_PAGES_STRING && mc)
		return copy_mc_to_kernel(to, from, size);
	if (way == COPY_PAGES_STRING) {
		asm volatile("rep movsq" : "+D" (to), "+S" (from), "+c" (words)
			     : : "memory");
		return 0;
	}
	if (mc)
		instrument_memcpy_before(to, from, size);
	left = copy_pages_by_loop(to, from, npages, mc);
	if (mc)
		instrument_memcpy_after(to, from, size, left);
	return left;
}

static __always_inline unsigned long
copy_pages_race(void *to, const void *from, unsigned int npages, bool mc)
{
	enum copy_pages_way way = COPY_PAGES_STRING;
	u64 best[COPY_PAGES_WAYS] = { U64_MAX, U64_MAX };
	unsigned long left, lap = COPY_PAGES_LAP * PAGE_SIZE;
	u64 now, then;
	unsigned int i;

	/* PREEMPT_RT rather preempts at any time. */
	if (npages > COPY_PAGES_RACE_MAX || IS_ENABLED(CONFIG_PREEMPT_RT) ||
	    !irq_fpu_usable())
		return copy_pages_by(way, to, from, npages, mc);

	/* The first section saves the task's registers, which is not to be timed. */
	kernel_fpu_begin();
	kernel_fpu_end();
	then = rdtsc_ordered();
	for (i = 0; i < COPY_PAGES_LAPS * COPY_PAGES_WAYS; i++) {
		/* Who goes first changes: string, loop, loop, string, ... */
		way = (i + 1) / 2 % 2 ? COPY_PAGES_LOOP : COPY_PAGES_STRING;
		npages -= COPY_PAGES_LAP;
		left = copy_pages_by(way, to, from, COPY_PAGES_LAP, mc);
		if (left)
			return left + npages * PAGE_SIZE;
		now = rdtsc_ordered();
		best[way] = min(best[way], now - then);
		then = now;
		to += lap;
		from += lap;
	}
	way = best[COPY_PAGES_LOOP] < best[COPY_PAGES_STRING] ?
	      COPY_PAGES_LOOP : COPY_PAGES_STRING;
	return copy_pages_by(way, to, from, npages, mc);
}

/**
 * copy_pages() - copy a run of pages
 * @to: address to copy to
 * @from: address to copy from
 * @npages: how many pages; at least 1
 *
 * The two runs do not overlap. Where copy_page() is no string instruction, and
 * where the run is short, it copies page after page.
 */
void copy_pages(void *to, const void *from, unsigned int npages)
{
	if (cpu_feature_enabled(X86_FEATURE_REP_GOOD) &&
	    npages >= COPY_PAGES_RACE_MIN) {
		copy_pages_race(to, from, npages, false);
		return;
	}
	for (; npages; npages--, to += PAGE_SIZE, from += PAGE_SIZE)
		copy_page(to, (void *)from);
}

/**
 * copy_mc_pages() - copy a run of pages that may be poisoned
 * @to: address to copy to
 * @from: address to copy from
 * @npages: how many pages; at least 1
 *
 * Copies nothing where copy_mc_to_kernel() is no string instruction: what it is
 * instead gains nothing by a run, and platforms may need just that. Nor if the
 * run is short.
 *
 * Return: the bytes at the end that were not copied. After a machine check, the
 * poison may lie somewhat behind the first of them.
 */
unsigned long copy_mc_pages(void *to, const void *from, unsigned int npages)
{
	if (npages < COPY_PAGES_RACE_MIN || !copy_mc_by_string())
		return npages * PAGE_SIZE;
	return copy_pages_race(to, from, npages, true);
}
