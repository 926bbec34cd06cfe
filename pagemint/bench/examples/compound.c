// SPDX-License-Identifier: GPL-2.0-only
/* How long does prep_compound_page() take for a huge page of 2 MiB? */
#include "workload.h"

NATIVE_OBJECTS("mm/page_alloc.o");

#define ORDER	9
#define TIMES	512

/* mm/internal.h */
void prep_compound_page(struct page *page, unsigned int order);

static void setup(unsigned long pfn)
{
	memset(pfn_to_page(pfn), 0, (TIMES << ORDER) * sizeof(struct page));
	native_evict(pfn_to_page(pfn), (TIMES << ORDER) * sizeof(struct page));
}

static void run(unsigned long pfn)
{
	for (unsigned long i = 0; i < TIMES; i++)
		prep_compound_page(pfn_to_page(pfn + (i << ORDER)), ORDER);
}

static bool check(unsigned long pfn)
{
	struct page *page = pfn_to_page(pfn);
	unsigned long i;

	for (i = 0; i < TIMES << ORDER; i++)
		if (compound_head(page + i) != page + round_down(i, 1UL << ORDER))
			return false;
	return true;
}

NATIVE_WORKLOAD(compound_2m) = {
	.pages = TIMES << ORDER,
	.times = TIMES,
	.moved = sizeof(struct page) << ORDER,
	.setup = setup,
	.run = run,
	.check = check,
};
