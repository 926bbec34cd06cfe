// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory map of device memory, written as what it is: one image, many
 * times.
 *
 * The slow path initialises the first two pages of a run in place. Their bytes
 * are the template: the second is the image, and what it differs from the
 * first by is the step, by which each further page differs from the one before
 * (page->virtual has one; most configurations have none). So nothing about
 * struct page is known twice. Only the section number, where page->flags holds
 * it, does not advance by pages and is set for each section.
 *
 * See Documentation/mm/memmap_template.rst.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/page_ref.h>
#include <linux/string.h>

#include "memmap_template.h"

#define CREATE_TRACE_POINTS
#include <trace/events/memmap_init.h>

static const char * const memmap_init_mode_names[] = {
	[MEMMAP_INIT_SLOW]	= "slow",
	[MEMMAP_INIT_TEMPLATE]	= "template",
	[MEMMAP_INIT_STREAMING]	= "streaming",
	[MEMMAP_INIT_FILL]	= "fill",
	[MEMMAP_INIT_AUTO]	= "auto",
};

static enum memmap_init_mode memmap_init_mode = MEMMAP_INIT_AUTO;

/**
 * memmap_init_mode_set - choose the mode for the ranges to come
 * @name: slow, template, streaming, fill or auto; a newline at the end is
 *	ignored
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
 * memmap_init_mode_name - what a mode is called
 * @mode: the mode
 *
 * Return: its name, as memmap_init_mode_set() takes it.
 */
const char *memmap_init_mode_name(enum memmap_init_mode mode)
{
	return memmap_init_mode_names[mode];
}

static int memmap_init_param_set(const char *val, const struct kernel_param *kp)
{
	return memmap_init_mode_set(val);
}

static int memmap_init_param_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n",
			  memmap_init_mode_name(READ_ONCE(memmap_init_mode)));
}

static const struct kernel_param_ops param_ops_memmap_init_mode = {
	.set = memmap_init_param_set,
	.get = memmap_init_param_get,
};

#define param_check_memmap_init_mode(name, p) \
	__param_check(name, p, enum memmap_init_mode)

core_param(memmap_init, memmap_init_mode, memmap_init_mode, 0644);

/* How the chunk that comes next in the race is written. */
static void memmap_template_next_chunk(struct memmap_template *t)
{
	t->mode = t->race.lane == MEMMAP_RACE_STREAMED ? MEMMAP_INIT_FILL :
							 MEMMAP_INIT_TEMPLATE;
	t->chunk_left = MEMMAP_RACE_CHUNK / sizeof(struct page);
}

/**
 * memmap_template_begin - choose how a range is going to be initialised
 * @t: the template that will be used for it
 * @nr_pages: how many struct pages will be written
 *
 * Sets the mode. MEMMAP_INIT_AUTO becomes one of the others: of a large range
 * the first pages are a race that decides which. A copied page raises no event:
 * while the page_ref_set tracepoint is active the mode is MEMMAP_INIT_SLOW, so
 * that the trace shows every page.
 */
void memmap_template_begin(struct memmap_template *t, unsigned long nr_pages)
{
	t->mode = READ_ONCE(memmap_init_mode);
	if (page_ref_tracepoint_active(page_ref_set))
		t->mode = MEMMAP_INIT_SLOW;
	t->chosen = t->mode == MEMMAP_INIT_AUTO;
	t->race.over = true;
	t->race.ratio = 0;
	if (!t->chosen)
		return;

	t->mode = MEMMAP_INIT_TEMPLATE;
	if (nr_pages >= MEMMAP_RACE_MIN / sizeof(struct page)) {
		memmap_race_start(&t->race);
		memmap_template_next_chunk(t);
	}
}

/* If the race is still open the cached lane has won the last heat. */
static const char *memmap_template_mode_name(const struct memmap_template *t)
{
	return memmap_init_mode_name(t->race.over ? t->mode :
						    MEMMAP_INIT_TEMPLATE);
}

/**
 * memmap_template_how - say in which mode a range was initialised
 * @t: its template
 * @buf: MEMMAP_TEMPLATE_HOW bytes for it
 *
 * Return: @buf, with the mode. If it was chosen here that is said as well, and
 * by which ratio a race was won.
 */
const char *memmap_template_how(const struct memmap_template *t, char *buf)
{
	const char *name = memmap_template_mode_name(t);

	if (t->race.ratio)
		scnprintf(buf, MEMMAP_TEMPLATE_HOW, "auto: %s, %u.%02ux", name,
			  t->race.ratio / 100, t->race.ratio % 100);
	else
		scnprintf(buf, MEMMAP_TEMPLATE_HOW, "%s%s",
			  t->chosen ? "auto: " : "", name);
	return buf;
}

/**
 * memmap_template_end - tell those who trace that a range is initialised
 * @t: its template
 * @pfn: its first PFN
 * @nr_pages: its length
 * @us: microseconds that it took
 */
void memmap_template_end(const struct memmap_template *t, unsigned long pfn,
			 unsigned long nr_pages, s64 us)
{
	trace_memmap_init_zone_device(pfn, nr_pages, us,
				      memmap_template_mode_name(t),
				      t->chosen, t->race.ratio);
}

/* Take the template from @page and the page after it; it is for the next. */
static void memmap_template_take(struct memmap_template *t,
				 const struct page *page, unsigned long pfn)
{
	const u64 *first = (const u64 *)page;
	u64 *image = t->image.words;
	u64 *step = t->step;
	u64 diff = 0;
	unsigned int i;

	t->image.page = page[1];
	/* The two may lie astride a section boundary. */
	set_page_section_from_pfn(&t->image.page, pfn);
	for (i = 0; i < MEMMAP_PAGE_WORDS; i++)
		diff |= image[i] ^ first[i];

	t->has_step = diff;
	if (!t->has_step)
		return;
	for (i = 0; i < MEMMAP_PAGE_WORDS; i++)
		step[i] = image[i] - first[i];
	memfill_advance(image, step, sizeof(t->image));
}

/* Write pages that lie in one section. */
static void memmap_template_write(struct memmap_template *t, struct page *page,
				  unsigned long nr_pages)
{
	const struct page *end = page + nr_pages;

	switch (t->mode) {
	case MEMMAP_INIT_FILL:
		if (t->has_step)
			memfill_streaming_step(page, t->image.words, t->step,
					       sizeof(*page), nr_pages);
		else
			memfill_streaming(page, t->image.words, sizeof(*page),
					  nr_pages);
		break;
	case MEMMAP_INIT_STREAMING:
		for (; page < end; page++) {
			if (t->has_step)
				memfill_streaming_step(page, t->image.words,
						       t->step, sizeof(*page), 1);
			else
				memcpy_streaming(page, t->image.words,
						 sizeof(*page));
		}
		break;
	default:
		if (t->has_step)
			memfill_cached_step(page, t->image.words, t->step,
					    sizeof(*page), nr_pages);
		else
			memfill_cached(page, t->image.words, sizeof(*page),
				       nr_pages);
	}
}

/* The same, chunk by chunk as long as it is open which mode is faster. */
static void memmap_template_write_timed(struct memmap_template *t,
					struct page *page,
					unsigned long nr_pages)
{
	while (!t->race.over && nr_pages) {
		unsigned long nr = min(nr_pages, t->chunk_left);

		if (t->chunk_left == MEMMAP_RACE_CHUNK / sizeof(*page))
			t->chunk_start = ktime_get();
		memmap_template_write(t, page, nr);
		page += nr;
		nr_pages -= nr;
		t->chunk_left -= nr;
		if (t->chunk_left)
			break;

		/*
		 * On x86 streamed stores are not done before they are drained.
		 * Elsewhere the last few of a chunk may count for the next.
		 */
		if (t->mode == MEMMAP_INIT_FILL)
			memmap_template_drain(t);
		memmap_race_lap(&t->race, ktime_get() - t->chunk_start);
		memmap_template_next_chunk(t);
	}
	memmap_template_write(t, page, nr_pages);
}

/**
 * memmap_template_repeat - write a run of pages from its first two
 * @t: the template, its mode any but MEMMAP_INIT_SLOW
 * @page: start of the run; this page and the next are initialised
 * @pfn: PFN of @page
 * @nr_pages: length of the run, with those two
 *
 * Drains between sections, and may sleep there: not in a range of one section.
 * The caller drains once more before anything reads the pages.
 */
void memmap_template_repeat(struct memmap_template *t, struct page *page,
			    unsigned long pfn, unsigned long nr_pages)
{
	const unsigned long end_pfn = pfn + nr_pages;

	BUILD_BUG_ON(sizeof(struct page) % sizeof(u64));

	memmap_template_take(t, page, pfn);
	page += MEMMAP_TEMPLATE_NR;
	pfn += MEMMAP_TEMPLATE_NR;

	while (pfn < end_pfn) {
		unsigned long next = min(end_pfn, ALIGN(pfn + 1, PAGES_PER_SECTION));

		set_page_section_from_pfn(&t->image.page, pfn);
		memmap_template_write_timed(t, page, next - pfn);
		page += next - pfn;
		pfn = next;
		if (pfn < end_pfn)
			memmap_template_resched(t);
	}
}
