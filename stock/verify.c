// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "verify.h"

unsigned long verify_memmap(struct fill *fill, unsigned long *differences)
{
	const unsigned long unit = fill->order ? 1UL << fill->order : pageblock_nr_pages;
	unsigned long pfn, next, i, nr_written;
	struct page *copy;

	copy = kvmalloc_array(unit, sizeof(*copy), GFP_KERNEL);
	if (!copy)
		return 0;
	for (pfn = fill->begin; pfn < fill->stop; pfn = next) {
		const struct page *page = pfn_to_page(pfn);

		next = fill->order ? pfn + unit : min(fill->stop, ALIGN(pfn + 1, unit));
		nr_written = min(next - pfn, fill->nr_written);
		memcpy(copy, page, nr_written * sizeof(*copy));
		write_as_kernel(fill, pfn, next - pfn, fill->order, nr_written);
		for (i = 0; i < nr_written; i++)
			*differences += !!memcmp(page + i, copy + i, sizeof(*copy));
		cond_resched();
	}
	kvfree(copy);
	return fill->stop - fill->begin;
}
