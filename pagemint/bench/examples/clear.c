// SPDX-License-Identifier: GPL-2.0-only
/* How fast does clear_pages() clear a huge page of 2 MiB? */
#include "workload.h"

NATIVE_OBJECTS("arch/x86/lib/clear_page_64.o", "lib/string.o");

#define PAGES	(SZ_2M / PAGE_SIZE)
#define TIMES	32

static void setup(unsigned long pfn)
{
	memset(pfn_to_kaddr(pfn), 0xff, TIMES * SZ_2M);
	native_evict(pfn_to_kaddr(pfn), TIMES * SZ_2M);
}

static void run(unsigned long pfn)
{
	for (unsigned int i = 0; i < TIMES; i++)
		clear_pages(pfn_to_kaddr(pfn + i * PAGES), PAGES);
}

static bool check(unsigned long pfn)
{
	return !memchr_inv(pfn_to_kaddr(pfn), 0, TIMES * SZ_2M);
}

NATIVE_WORKLOAD(clear_2m) = {
	.pages = TIMES * PAGES,
	.times = TIMES,
	.moved = SZ_2M,
	.setup = setup,
	.run = run,
	.check = check,
};
