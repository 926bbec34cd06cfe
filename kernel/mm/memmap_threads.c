// SPDX-License-Identifier: GPL-2.0-only
/*
 * Initialise a large range of the memmap with several threads.
 *
 * A CPU can have only so many stores on their way to memory. Where the memory
 * takes more than that, a few CPUs are faster than one.
 */
#include <linux/align.h>
#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/mmzone.h>
#include <linux/padata.h>
#include <linux/sizes.h>

#include "memmap_template.h"
#include "memmap_threads.h"

/*
 * Two threads were twice as fast as one where memory takes more stores than
 * one CPU makes. More than two were not measured; the limit of four leaves
 * CPUs for other work.
 */
#define MEMMAP_THREADS_MAX		4

/* Struct pages that justify one more thread: about half a millisecond of work. */
#define MEMMAP_THREADS_MIN_PAGES	(SZ_16M / sizeof(struct page))

static unsigned int memmap_threads_max(void)
{
	/* As without this file. */
	if (memmap_init_mode_get() == MEMMAP_INIT_SLOW)
		return 1;
	return min(num_online_cpus(), MEMMAP_THREADS_MAX);
}

/**
 * memmap_threads_run() - initialise a range, with several threads if it is large
 * @range: the range
 *
 * The calling thread is one of them. There are never more threads than online
 * CPUs. If the range is too small for two threads, the function is called once.
 *
 * The parts of a range begin where both a section and a compound begin, so no
 * two threads write to one. Ranges whose compounds are not aligned are not
 * shared out; no driver has such a range.
 *
 * Return: the most threads that took part; there are fewer if other jobs use
 * padata's helpers at the same time.
 */
unsigned int memmap_threads_run(const struct memmap_range *range)
{
	struct padata_mt_job job = {
		.thread_fn = range->fn,
		.fn_arg = range->arg,
		.start = range->start_pfn,
		.size = range->end_pfn - range->start_pfn,
		.align = max(PAGES_PER_SECTION, range->compound),
		.min_chunk = max(MEMMAP_THREADS_MIN_PAGES / range->written, 1) *
			     range->compound,
		.max_threads = 1,
	};

	if (IS_ALIGNED(range->start_pfn, range->compound))
		job.max_threads = clamp(job.size / job.min_chunk, 1,
					memmap_threads_max());
	if (job.max_threads == 1)
		range->fn(range->start_pfn, range->end_pfn, range->arg);
	else
		padata_do_multithreaded(&job);
	return job.max_threads;
}
