// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests for the threads that share a range of the memmap.
 *
 * No memmap is written. The tests record the parts of a range that are handed
 * to the threads.
 */
#include <kunit/test.h>
#include <linux/align.h>
#include <linux/array_size.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mmzone.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/sort.h>
#include <linux/spinlock.h>
#include <linux/topology.h>

#include "../memmap_template.h"
#include "../memmap_threads.h"

/* padata makes four parts for each thread, and alignment adds some. */
#define THREADS_MAX_PARTS	64
#define THREADS_JOBS		4
#define THREADS_TIMEOUT		(20 * HZ)

#define THREADS_GIB		(SZ_1G >> PAGE_SHIFT)
/* A PFN where the largest compounds start; any will do. */
#define THREADS_PFN		(4UL * THREADS_GIB)
/* Pages enough for 16 threads, whatever the size of a page. */
#define THREADS_ENOUGH		(16 * SZ_16M / sizeof(struct page))

struct threads_part {
	unsigned long start;
	unsigned long end;
	struct task_struct *task;
};

/**
 * struct threads_record - what a function was called with
 * @lock: protects what follows
 * @nr: number of calls, of which no more than THREADS_MAX_PARTS are kept
 * @parts: the calls
 * @meet: whether the first two calls wait for each other
 * @met: for that
 * @timeouts: calls that waited in vain
 */
struct threads_record {
	spinlock_t lock; /* protects what follows */
	unsigned int nr;
	struct threads_part parts[THREADS_MAX_PARTS];
	bool meet;
	struct completion met;
	unsigned int timeouts;
};

static void threads_record_init(struct threads_record *r, bool meet)
{
	memset(r, 0, sizeof(*r));
	spin_lock_init(&r->lock);
	init_completion(&r->met);
	r->meet = meet;
}

static void threads_fn(unsigned long start_pfn, unsigned long end_pfn, void *arg)
{
	struct threads_record *r = arg;
	unsigned int nr;

	spin_lock(&r->lock);
	nr = r->nr++;
	if (nr < THREADS_MAX_PARTS)
		r->parts[nr] = (struct threads_part){ start_pfn, end_pfn, current };
	spin_unlock(&r->lock);

	if (!r->meet || nr > 1)
		return;
	if (nr) {
		complete(&r->met);
	} else if (!wait_for_completion_timeout(&r->met, THREADS_TIMEOUT)) {
		spin_lock(&r->lock);
		r->timeouts++;
		spin_unlock(&r->lock);
	}
}

static int threads_compare(const void *a, const void *b)
{
	const struct threads_part *one = a, *other = b;

	return one->start < other->start ? -1 : one->start > other->start;
}

/* Return how the calls in @r fail to cover @range in @threads threads, or NULL. */
static const char *threads_wrong(struct threads_record *r,
				 const struct memmap_range *range,
				 unsigned int threads)
{
	const unsigned long align = max(PAGES_PER_SECTION, range->compound);
	unsigned long pfn = range->start_pfn;
	unsigned int i, j, tasks = 0;

	if (r->nr > THREADS_MAX_PARTS)
		return "too many parts";
	for (i = 0; i < r->nr; i++) {
		for (j = 0; j < i && r->parts[j].task != r->parts[i].task; j++)
			;
		tasks += i == j;
	}
	if (!threads || tasks > threads)
		return "more threads than returned";
	if (threads == 1 && (r->nr != 1 || r->parts[0].task != current))
		return "one thread, but not a single call in it";

	sort(r->parts, r->nr, sizeof(*r->parts), threads_compare, NULL);
	for (i = 0; i < r->nr; pfn = r->parts[i++].end) {
		if (r->parts[i].start != pfn || r->parts[i].end <= pfn)
			return "a part is missing, repeated or empty";
		if (i && !IS_ALIGNED(pfn, align))
			return "a part starts inside a section or compound";
	}
	return pfn == range->end_pfn ? NULL : "the parts do not end with the range";
}

/* The most threads that a range can have; in slow mode that is one. */
static unsigned int threads_most(void)
{
	if (memmap_init_mode_get() == MEMMAP_INIT_SLOW)
		return 1;
	return min(num_online_cpus(), 4);
}

/* Ranges of all lengths, wherever they start. */
static void threads_parts_test(struct kunit *test)
{
	static const unsigned long compounds[] = {
		1, 2, 512, PAGES_PER_SECTION, THREADS_GIB,
	};
	static const unsigned long lengths[] = {
		1, 2, PAGES_PER_SECTION - 1, PAGES_PER_SECTION, THREADS_GIB,
		2 * THREADS_GIB - 1, 2 * THREADS_GIB, 2 * THREADS_GIB + 1,
		7 * THREADS_GIB + 5 * PAGES_PER_SECTION + 3, 100 * THREADS_GIB,
	};
	static const unsigned long starts[] = {
		0, 1, 2, 512, PAGES_PER_SECTION - 1, PAGES_PER_SECTION,
		PAGES_PER_SECTION + 512,
	};
	struct threads_record *r;
	unsigned int i, j, k;

	r = kunit_kmalloc(test, sizeof(*r), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r);
	for (i = 0; i < ARRAY_SIZE(compounds); i++) {
		for (j = 0; j < ARRAY_SIZE(lengths); j++) {
			for (k = 0; k < ARRAY_SIZE(starts); k++) {
				const struct memmap_range range = {
					.fn = threads_fn,
					.arg = r,
					.start_pfn = THREADS_PFN + starts[k],
					.end_pfn = THREADS_PFN + starts[k] + lengths[j],
					.compound = compounds[i],
					.written = compounds[i],
				};
				unsigned int threads;
				const char *wrong;

				threads_record_init(r, false);
				threads = memmap_threads_run(&range);
				wrong = threads_wrong(r, &range, threads);
				if (wrong || threads > threads_most())
					KUNIT_FAIL(test,
						   "PFN %#lx, nr %lu, compounds of %lu, %u threads: %s",
						   range.start_pfn, lengths[j],
						   compounds[i], threads,
						   wrong ?: "too many");
			}
		}
	}
}

/* Pages that share their memory with others are not written, and do not count. */
static void threads_deduplicated_test(struct kunit *test)
{
	struct memmap_range range = {
		.fn = threads_fn,
		.start_pfn = THREADS_PFN,
		.end_pfn = THREADS_PFN + 100 * THREADS_GIB,
		.compound = THREADS_GIB,
		.written = 128,
	};
	struct threads_record *r;

	r = kunit_kmalloc(test, sizeof(*r), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r);
	range.arg = r;
	threads_record_init(r, false);
	KUNIT_EXPECT_EQ(test, memmap_threads_run(&range), 1);
	KUNIT_EXPECT_EQ(test, r->nr, 1);
}

static struct memmap_range threads_meeting(struct threads_record *r)
{
	return (struct memmap_range){
		.fn = threads_fn,
		.arg = r,
		.start_pfn = THREADS_PFN,
		.end_pfn = THREADS_PFN + THREADS_ENOUGH,
		.compound = 1,
		.written = 1,
	};
}

/* Two threads are at work at the same time. */
static void threads_meet_test(struct kunit *test)
{
	struct memmap_range range;
	struct threads_record *r;
	unsigned int threads;
	const char *wrong;

	r = kunit_kmalloc(test, sizeof(*r), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r);
	range = threads_meeting(r);
	/* One thread has none to meet. */
	threads_record_init(r, threads_most() > 1);
	threads = memmap_threads_run(&range);
	KUNIT_EXPECT_EQ(test, threads, threads_most());
	KUNIT_EXPECT_EQ(test, r->timeouts, 0);
	wrong = threads_wrong(r, &range, threads);
	KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
}

struct threads_job {
	struct threads_record record;
	struct completion done;
	const char *wrong;
};

static int threads_job_fn(void *arg)
{
	struct threads_job *job = arg;
	struct memmap_range range = threads_meeting(&job->record);
	unsigned int i, threads;

	for (i = 0; i < 100 && !job->wrong; i++) {
		threads_record_init(&job->record, false);
		threads = memmap_threads_run(&range);
		job->wrong = threads_wrong(&job->record, &range, threads);
	}
	complete(&job->done);
	return 0;
}

/* Devices can be bound at the same time, and share the helpers. */
static void threads_jobs_test(struct kunit *test)
{
	struct task_struct *tasks[THREADS_JOBS];
	struct threads_job *jobs;
	unsigned int i;

	jobs = kunit_kcalloc(test, THREADS_JOBS, sizeof(*jobs), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, jobs);

	for (i = 0; i < THREADS_JOBS; i++) {
		init_completion(&jobs[i].done);
		tasks[i] = kthread_run(threads_job_fn, &jobs[i], "memmap_job/%u", i);
	}
	for (i = 0; i < THREADS_JOBS; i++) {
		KUNIT_EXPECT_NOT_ERR_OR_NULL(test, tasks[i]);
		if (IS_ERR(tasks[i]))
			continue;
		wait_for_completion(&jobs[i].done);
		KUNIT_EXPECT_NULL_MSG(test, jobs[i].wrong, "job %u: %s", i,
				      jobs[i].wrong);
	}
}

static struct kunit_case threads_test_cases[] = {
	KUNIT_CASE(threads_parts_test),
	KUNIT_CASE(threads_deduplicated_test),
	KUNIT_CASE(threads_meet_test),
	KUNIT_CASE(threads_jobs_test),
	{}
};

static struct kunit_suite threads_test_suite = {
	.name = "memmap_threads",
	.test_cases = threads_test_cases,
};

kunit_test_suite(threads_test_suite);
