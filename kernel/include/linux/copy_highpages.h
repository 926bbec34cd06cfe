/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _LINUX_COPY_HIGHPAGES_H
#define _LINUX_COPY_HIGHPAGES_H

#include <linux/errno.h>
#include <linux/highmem.h>
#include <linux/kmsan.h>
#include <linux/math.h>
#include <linux/sizes.h>

/*
 * Where the architecture copies a run of pages faster than page after page,
 * and the kernel's own mapping has them one after the other.
 */
#if defined(copy_pages) && !defined(CONFIG_HIGHMEM) && !defined(__HAVE_ARCH_COPY_HIGHPAGE)
#define COPY_HIGHPAGES_BULK
#endif

/*
 * The most pages to copy without a cond_resched() in a kernel that does not
 * preempt: 0.4 ms at 5 GB/s, and slower memory is rare.
 */
#ifdef COPY_HIGHPAGES_BULK
#define COPY_HIGHPAGES_BATCH	(SZ_2M >> PAGE_SHIFT)
#else
#define COPY_HIGHPAGES_BATCH	1
#endif

/**
 * copy_highpages() - copy a run of pages
 * @to: the first page to copy to
 * @from: the first page to copy from
 * @npages: how many; COPY_HIGHPAGES_BATCH at most in a kernel that does not preempt
 *
 * Both runs are contiguous in memory, as the pages of a folio are, and do not
 * overlap. Can be called in atomic context.
 */
static inline void copy_highpages(struct page *to, struct page *from, unsigned int npages)
{
	unsigned int i;

#ifdef COPY_HIGHPAGES_BULK
	copy_pages(page_address(to), page_address(from), npages);
	for (i = 0; i < npages; i++)
		kmsan_copy_page_meta(to + i, from + i);
#else
	for (i = 0; i < npages; i++)
		copy_highpage(to + i, from + i);
#endif
}

/**
 * copy_mc_highpages() - copy a run of pages of which some may be poisoned
 * @to: the first page to copy to
 * @from: the first page to copy from
 * @npages: how many, as for copy_highpages()
 *
 * A machine check in the source ends the copy, and memory_failure_queue() is
 * told the first page that cannot be read. Fast string instructions may stop
 * short of the poison, in the page before it. So what the run left is copied
 * page by page, which finds the page.
 *
 * Return: 0, or -EHWPOISON if a page cannot be read.
 */
static inline int copy_mc_highpages(struct page *to, struct page *from, unsigned int npages)
{
	unsigned int i = 0;

#if defined(COPY_HIGHPAGES_BULK) && defined(copy_mc_pages)
	unsigned long left = copy_mc_pages(page_address(to), page_address(from), npages);

	for (; i < npages - DIV_ROUND_UP(left, PAGE_SIZE); i++)
		kmsan_copy_page_meta(to + i, from + i);
#endif
	for (; i < npages; i++)
		if (copy_mc_highpage(to + i, from + i))
			return -EHWPOISON;
	return 0;
}

#endif /* _LINUX_COPY_HIGHPAGES_H */
