// SPDX-License-Identifier: GPL-2.0-only
/*
 * A range of the memory map, shared out among threads.
 *
 * One CPU has only so many stores on their way to memory at a time, and most
 * memory takes more than that. A few CPUs fill it; more gain nothing.
 *
 * See Documentation/mm/memmap_threads.rst.
 */
#include <linux/align.h>
#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/mmzone.h>
#include <linux/moduleparam.h>
#include <linux/nodemask.h>
#include <linux/numa.h>
#include <linux/padata.h>
#include <linux/sizes.h>
#include <linux/topology.h>

#include "memmap_threads.h"

/* At most, whatever CPUs there are. */
unsigned int memmap_init_threads = 4;

core_param(memmap_init_threads, memmap_init_threads, uint, 0644);

/*
 * What a thread has to write at the least, in pages of the memory map: for less
 * it is not worth waking.
 */
#define MEMMAP_THREADS_MIN_PAGES	(SZ_1G >> PAGE_SHIFT)

static unsigned int memmap_threads_max(int nid)
{
	/* The last of them may have gone offline just now. */
	unsigned int cpus = max(cpumask_weight(cpumask_of_node(nid)), 1);

	return clamp(READ_ONCE(memmap_init_threads), 1, cpus);
}

/**
 * memmap_threads_run - initialise a range with as many threads as it is worth
 * @range: the range
 *
 * There are at most as many threads as memmap_init_threads= says, and as the
 * node has CPUs, or if it has none the nearest node that has. The calling
 * thread is one of them. If it is the only one, it calls the function once, for
 * the whole range.
 *
 * Parts begin where both a section and a compound do, so that no two threads
 * write to one. A range whose compounds are not aligned, which no driver has,
 * is not shared out.
 *
 * Return: the number of threads; jobs that run at the same time share them.
 */
unsigned int memmap_threads_run(const struct memmap_range *range)
{
	const int nid = numa_nearest_node(range->nid, N_CPU);
	struct padata_mt_job job = {
		.thread_fn = range->fn,
		.fn_arg = range->arg,
		.start = range->start_pfn,
		.size = range->end_pfn - range->start_pfn,
		.align = max(PAGES_PER_SECTION, range->compound),
		.min_chunk = max(MEMMAP_THREADS_MIN_PAGES / range->written, 1) *
			     range->compound,
		.max_threads = 1,
		.near_node = true,
		.nid = nid,
	};

	if (IS_ALIGNED(range->start_pfn, range->compound))
		job.max_threads = clamp(job.size / job.min_chunk, 1,
					memmap_threads_max(nid));
	if (job.max_threads == 1)
		range->fn(range->start_pfn, range->end_pfn, range->arg);
	else
		padata_do_multithreaded(&job);
	return job.max_threads;
}
