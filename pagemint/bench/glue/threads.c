// SPDX-License-Identifier: GPL-2.0-only
/* The CPUs that the kernel's own padata sees, and the workqueue that runs its helpers. */
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/padata.h>
#include <linux/workqueue.h>

#include "native.h"

unsigned int nr_cpu_ids = NATIVE_MAX_THREADS;
unsigned int __num_possible_cpus = NATIVE_MAX_THREADS;
struct workqueue_struct *system_dfl_wq;

/* The same on 6.12. */
struct cpumask __cpu_possible_mask = { .bits = { GENMASK(NATIVE_MAX_THREADS - 1, 0) } };
struct workqueue_struct *system_unbound_wq;

atomic_t __num_online_cpus = ATOMIC_INIT(1);

static void native_run(void *work)
{
	struct work_struct *w = work;

	w->func(w);
}

bool queue_work_on(int cpu, struct workqueue_struct *wq, struct work_struct *work)
{
	native_queue(work, native_run);
	return true;
}

/* padata calls this for jobs that are spread over nodes. */
bool queue_work_node(int node, struct workqueue_struct *wq, struct work_struct *work)
{
	return queue_work_on(0, wq, work);
}

bool cancel_work_sync(struct work_struct *work)
{
	native_cancel(work);
	return true;
}

/* CPU hotplug never happens here. */
int __cpuhp_setup_state(enum cpuhp_state state, const char *name, bool invoke,
			int (*startup)(unsigned int cpu),
			int (*teardown)(unsigned int cpu), bool multi_instance)
{
	return 1;
}

/* For the command parts: the calls that padata makes, their pages, and the largest one's. */
static struct {
	atomic_long_t calls, pages, largest;
} parts;

static void native_part(unsigned long start, unsigned long end, void *arg)
{
	long largest = atomic_long_read(&parts.largest);

	atomic_long_inc(&parts.calls);
	atomic_long_add(end - start, &parts.pages);
	while (largest < end - start &&
	       !atomic_long_try_cmpxchg(&parts.largest, &largest, end - start))
		;
}

/*
 * parts tree= start= pages= align= least= nr=: shares out PAGES among NR threads, in
 * parts of at least LEAST that begin at multiples of ALIGN. Touches no memory.
 * Answers calls=, pages= and largest=, the pages of the largest part.
 */
NATIVE_COMMAND(parts)
{
	struct padata_mt_job job = {
		.thread_fn = native_part,
		.start = native_number(r, "start"),
		.size = native_number(r, "pages"),
		.align = native_number(r, "align"),
		.min_chunk = native_number(r, "least"),
		.max_threads = native_number(r, "nr"),
	};

	atomic_long_set(&parts.calls, 0);
	atomic_long_set(&parts.pages, 0);
	atomic_long_set(&parts.largest, 0);
	padata_do_multithreaded(&job);
	native_answer(r, "calls", atomic_long_read(&parts.calls));
	native_answer(r, "pages", atomic_long_read(&parts.pages));
	native_answer(r, "largest", atomic_long_read(&parts.largest));
}

/* threads tree= nr=: gives padata NR CPUs, instead of one. */
NATIVE_COMMAND(threads)
{
	unsigned long nr = native_number(r, "nr");
	static bool up;

	if (!nr || nr > NATIVE_MAX_THREADS)
		native_refuse(r, "wants 1 to 64 threads");
	native_have_threads(nr);
	if (!up)
		padata_init();
	up = true;
	atomic_set(&__num_online_cpus, nr);
}
