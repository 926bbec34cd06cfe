// SPDX-License-Identifier: GPL-2.0-only
/* Is one string instruction over 2 MiB faster than copy_page() for each page? */
#include "workload.h"

NATIVE_OBJECTS("arch/x86/lib/copy_page_64.o");

#define PAGES	(SZ_2M / PAGE_SIZE)
#define TIMES	16

/* The second half of the memory is copied to the first half. */
static void setup(unsigned long pfn)
{
	memset(pfn_to_kaddr(pfn), 0, TIMES * SZ_2M);
	memset(pfn_to_kaddr(pfn + TIMES * PAGES), 0x5a, TIMES * SZ_2M);
	native_evict(pfn_to_kaddr(pfn), 2 * TIMES * SZ_2M);
}

static bool check(unsigned long pfn)
{
	return !memcmp(pfn_to_kaddr(pfn), pfn_to_kaddr(pfn + TIMES * PAGES), TIMES * SZ_2M);
}

static void run_pages(unsigned long pfn)
{
	for (unsigned long i = 0; i < TIMES * PAGES; i++)
		copy_page(pfn_to_kaddr(pfn + i), pfn_to_kaddr(pfn + TIMES * PAGES + i));
}

static void run_whole(unsigned long pfn)
{
	for (unsigned long i = 0; i < TIMES; i++) {
		void *to = pfn_to_kaddr(pfn + i * PAGES);
		void *from = pfn_to_kaddr(pfn + (TIMES + i) * PAGES);
		unsigned long words = SZ_2M / sizeof(long);

		asm volatile("rep movsq" : "+c" (words), "+D" (to), "+S" (from) : : "memory");
	}
}

NATIVE_WORKLOAD(copy_pages) = {
	.pages = 2 * TIMES * PAGES,
	.times = TIMES,
	.moved = SZ_2M,
	.setup = setup,
	.run = run_pages,
	.check = check,
};

NATIVE_WORKLOAD(copy_whole) = {
	.pages = 2 * TIMES * PAGES,
	.times = TIMES,
	.moved = SZ_2M,
	.setup = setup,
	.run = run_whole,
	.check = check,
};
