// SPDX-License-Identifier: GPL-2.0-only
/*
 * Initialise struct pages that are nearly identical as copies of an image.
 *
 * The images are pages that the slow path has initialised, so the layout of
 * struct page is known in one place only. Pages that follow each other differ
 * in a few words if at all, and there by a constant: a pointer to the page
 * itself, to its head, or to its memory. Two pages show that constant.
 *
 * See Documentation/mm/memmap_init.rst.
 */
#include <linux/align.h>
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/moduleparam.h>
#include <linux/page_ref.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "memmap_template.h"

#ifdef SECTION_IN_PAGE_FLAGS
#error "an image does not know the section number in page->flags"
#endif

static const char * const memmap_init_mode_names[] = {
	[MEMMAP_INIT_SLOW]	= "slow",
	[MEMMAP_INIT_CACHED]	= "cached",
	[MEMMAP_INIT_STREAMING]	= "streaming",
};

/* Streaming stores have been measured on x86-64 only. */
static enum memmap_init_mode memmap_init_mode =
	IS_ENABLED(CONFIG_X86_64) ? MEMMAP_INIT_STREAMING : MEMMAP_INIT_CACHED;

/**
 * memmap_init_mode_set() - choose the mode for the ranges to come
 * @name: slow, cached or streaming; a newline at the end is ignored
 *
 * Return: 0, or -EINVAL if no mode has that name.
 */
int memmap_init_mode_set(const char *name)
{
	int mode = sysfs_match_string(memmap_init_mode_names, name);

	if (mode < 0)
		return mode;
	WRITE_ONCE(memmap_init_mode, mode);
	return 0;
}

/**
 * memmap_init_mode_get() - the mode for a range that is initialised now
 *
 * A copied page raises no event. While the page_ref_set tracepoint is active
 * the mode is MEMMAP_INIT_SLOW, so that a trace has every page.
 *
 * Return: the mode.
 */
enum memmap_init_mode memmap_init_mode_get(void)
{
	if (page_ref_tracepoint_active(page_ref_set))
		return MEMMAP_INIT_SLOW;
	return READ_ONCE(memmap_init_mode);
}

static int memmap_init_param_set(const char *val, const struct kernel_param *kp)
{
	return memmap_init_mode_set(val);
}

static int memmap_init_param_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n",
			  memmap_init_mode_names[READ_ONCE(memmap_init_mode)]);
}

static const struct kernel_param_ops param_ops_memmap_init_mode = {
	.set = memmap_init_param_set,
	.get = memmap_init_param_get,
};

#define param_check_memmap_init_mode(name, p) \
	__param_check(name, p, enum memmap_init_mode)

core_param(memmap_init, memmap_init_mode, memmap_init_mode, 0644);

/* Write copies of @image, which @step advances unless it is NULL. */
static void memmap_template_copy(const struct memmap_template *t,
				 struct page *page, u64 *image,
				 const u64 *step, unsigned long nr_pages)
{
	if (t->mode == MEMMAP_INIT_STREAMING)
		memfill_streaming(page, image, step, sizeof(*page), nr_pages);
	else
		memfill_cached(page, image, step, sizeof(*page), nr_pages);
}

/* Take images from the first @nr pages of a unit, and steps from two units. */
static void memmap_template_take(struct memmap_template *t,
				 const struct page *page, unsigned int nr)
{
	const u64 *words = (const u64 *)page;
	u64 *image = t->image[0];
	u64 *step = t->step[0];
	unsigned int i;

	for (i = 0; i < nr * MEMMAP_PAGE_WORDS; i++) {
		step[i] = t->nr_units ? words[i] - image[i] : 0;
		/* The second unit's images advance to the third's. */
		image[i] = words[i] + step[i];
	}
	t->nr_units++;
}

/*
 * Continue the run of pages that ends with @last. The difference between @last
 * and the page before is what each page of the run advances by.
 */
static void memmap_template_continue(const struct memmap_template *t,
				     const u64 *last, struct page *page,
				     unsigned long pfn, unsigned long nr_pages)
{
	const unsigned long end_pfn = pfn + nr_pages;
	u64 image[MEMMAP_PAGE_WORDS], step[MEMMAP_PAGE_WORDS];
	unsigned long nr;
	unsigned int i;
	u64 diff = 0;

	for (i = 0; i < MEMMAP_PAGE_WORDS; i++) {
		step[i] = last[i] - (last - MEMMAP_PAGE_WORDS)[i];
		image[i] = last[i] + step[i];
		diff |= step[i];
	}

	for (;;) {
		nr = min(end_pfn, ALIGN(pfn + 1, PAGES_PER_SECTION)) - pfn;
		memmap_template_copy(t, page, image, diff ? step : NULL, nr);
		page += nr;
		pfn += nr;
		if (pfn >= end_pfn)
			break;
		memmap_template_resched(t);
	}
}

/**
 * memmap_template_write() - write the pages of a unit that have an image
 * @t: the template
 * @page: first page of the unit
 * @pfn: its PFN
 * @nr_pages: pages in the unit
 *
 * The slow path has initialised memmap_template_nr_slow() pages of it. Pages
 * that this function writes are not read: the third unit and those behind it
 * are written from the images alone.
 *
 * Drains between sections, and may sleep there; a unit within one section does
 * neither. The caller drains once more before anything reads the pages.
 */
void memmap_template_write(struct memmap_template *t, struct page *page,
			   unsigned long pfn, unsigned long nr_pages)
{
	const unsigned int nr = min(nr_pages, t->nr_images);
	const bool taken = t->nr_units == 2;
	unsigned int i;

	BUILD_BUG_ON(sizeof(struct page) % sizeof(u64));

	if (t->mode == MEMMAP_INIT_SLOW)
		return;

	/* Comes first, as the images advance below. */
	if (nr_pages > nr)
		memmap_template_continue(t, taken ? t->image[nr - 1] :
					 (const u64 *)(page + nr - 1),
					 page + nr, pfn + nr, nr_pages - nr);

	if (!taken) {
		memmap_template_take(t, page, nr);
		return;
	}
	for (i = 0; i < nr; i++)
		memmap_template_copy(t, page + i, t->image[i], t->step[i], 1);
}
