// SPDX-License-Identifier: GPL-2.0-only
/*
 * The blocks of memory that hold the memmap of a device, as the page allocator hands
 * them out. With init_on_alloc it zeroes each one, unless the caller passes ALLOC_NO_INIT.
 */
#include <linux/mm.h>
#include <linux/version.h>

#include "glue.h"

NATIVE_OBJECTS("mm/page_alloc.o", "mm/mm_init.o", "arch/x86/lib/clear_page_64.o");

/* On older kernels no caller can pass ALLOC_ flags. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)
#include <../mm/page_alloc.h>

#ifndef ALLOC_NO_INIT
#define ALLOC_NO_INIT	0
#endif

/* No header that modules can include declares it. */
void post_alloc_hook(struct page *page, unsigned int order, gfp_t gfp_flags,
		     unsigned int alloc_flags);

/*
 * vmemmap tree= first= blocks= page=: allocates BLOCKS blocks of 2 MiB that hold the
 * memmap from PFN FIRST on. These blocks consist of the pages from PFN PAGE on, whose
 * own struct pages are written, too. The free lists, the page tables and
 * vmemmap_populate_hugepages(), which passes the flag, are left out. Answers ns=.
 */
NATIVE_COMMAND(vmemmap)
{
	unsigned long first = native_number(r, "first"), page = native_number(r, "page");
	unsigned long i, nr = native_number(r, "blocks"), direct = page_offset_base;
	long begun;

	native_need_memmap(r, first, (nr * PMD_SIZE) / sizeof(struct page));
	native_need_memmap(r, page, nr << PMD_ORDER);
	/* Move the direct map, so that the memory of the pages from PFN PAGE on is the memmap. */
	page_offset_base = (unsigned long)pfn_to_page(first) - (page << PAGE_SHIFT);
	begun = native_now();
	for (i = 0; i < nr; i++)
		post_alloc_hook(pfn_to_page(page + (i << PMD_ORDER)), PMD_ORDER,
				GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN, ALLOC_NO_INIT);
	native_answer(r, "ns", native_now() - begun);
	page_offset_base = direct;
}
#endif
