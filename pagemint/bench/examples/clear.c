// SPDX-License-Identifier: GPL-2.0-only
/* How fast does clear_pages() clear a huge page of 2 MiB, and one of 1 GiB? */
#include "workload.h"

NATIVE_OBJECTS("arch/x86/lib/clear_page_64.o", "lib/string.o");

#define PAGES_2M	(SZ_2M / PAGE_SIZE)
#define PAGES_1G	(SZ_1G / PAGE_SIZE)
#define TIMES_2M	32

static void spoil(unsigned long pfn, unsigned long pages)
{
	memset(pfn_to_kaddr(pfn), 0xff, pages * PAGE_SIZE);
	native_evict(pfn_to_kaddr(pfn), pages * PAGE_SIZE);
}

static bool is_clear(unsigned long pfn, unsigned long pages)
{
	return !memchr_inv(pfn_to_kaddr(pfn), 0, pages * PAGE_SIZE);
}

static void setup_2m(unsigned long pfn)
{
	spoil(pfn, TIMES_2M * PAGES_2M);
}

static void run_2m(unsigned long pfn)
{
	for (unsigned int i = 0; i < TIMES_2M; i++)
		clear_pages(pfn_to_kaddr(pfn + i * PAGES_2M), PAGES_2M);
}

static bool check_2m(unsigned long pfn)
{
	return is_clear(pfn, TIMES_2M * PAGES_2M);
}

NATIVE_WORKLOAD(clear_2m) = {
	.pages = TIMES_2M * PAGES_2M,
	.times = TIMES_2M,
	.moved = SZ_2M,
	.setup = setup_2m,
	.run = run_2m,
	.check = check_2m,
};

static void setup_1g(unsigned long pfn)
{
	spoil(pfn, PAGES_1G);
}

static void run_1g(unsigned long pfn)
{
	clear_pages(pfn_to_kaddr(pfn), PAGES_1G);
}

static bool check_1g(unsigned long pfn)
{
	return is_clear(pfn, PAGES_1G);
}

NATIVE_WORKLOAD(clear_1g) = {
	.pages = PAGES_1G,
	.times = 1,
	.moved = SZ_1G,
	.setup = setup_1g,
	.run = run_1g,
	.check = check_1g,
};
