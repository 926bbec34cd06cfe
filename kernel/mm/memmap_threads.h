/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MEMMAP_THREADS_H
#define _MM_MEMMAP_THREADS_H

#include <linux/types.h>

/**
 * struct memmap_range - a part of the memmap, and the function to initialise it
 * @fn: initialises a part of the range and drains its streaming stores;
 *	called with the first PFN of the part, the one after its last, and @arg,
 *	by several threads at a time
 * @arg: for @fn
 * @start_pfn: start of the range
 * @end_pfn: end of the range, after @start_pfn
 * @compound: pages in each compound, a power of two; 1 if there are none
 * @written: struct pages of each compound that @fn writes, fewer than @compound
 *	if the memmap is deduplicated; decides how many threads are worth it
 */
struct memmap_range {
	void (*fn)(unsigned long start_pfn, unsigned long end_pfn, void *arg);
	void *arg;
	unsigned long start_pfn;
	unsigned long end_pfn;
	unsigned long compound;
	unsigned long written;
};

#ifdef CONFIG_MEMMAP_THREADS
unsigned int memmap_threads_run(const struct memmap_range *range);
#else
static inline unsigned int memmap_threads_run(const struct memmap_range *range)
{
	range->fn(range->start_pfn, range->end_pfn, range->arg);
	return 1;
}
#endif /* CONFIG_MEMMAP_THREADS */

#endif /* _MM_MEMMAP_THREADS_H */
