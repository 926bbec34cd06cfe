// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel half of threads, compiled as kernel code: the CPUs that the
 * kernel's own padata sees, and the workqueue that its helpers are put on.
 */
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/nodemask.h>
#include <linux/padata.h>
#include <linux/workqueue.h>

#include "native.h"

void native_threads(unsigned int threads);
void native_queue(void *work, void (*fn)(void *work));
void native_cancel(void *work);

unsigned int nr_cpu_ids = NATIVE_MAX_THREADS;
unsigned int __num_possible_cpus = NATIVE_MAX_THREADS;
struct workqueue_struct *system_dfl_wq;

/* The same, of 6.12. */
struct cpumask __cpu_possible_mask = { .bits = { GENMASK(NATIVE_MAX_THREADS - 1, 0) } };
struct workqueue_struct *system_unbound_wq;

/* The CPUs that are online, all of them on every node. */
static struct cpumask native_cpus = { .bits = { 1 } };
cpumask_var_t node_to_cpumask_map[MAX_NUMNODES] = {
	[0 ... MAX_NUMNODES - 1] = &native_cpus,
};

static void native_run(void *work)
{
	struct work_struct *w = work;

	w->func(w);
}

bool queue_work_node(int node, struct workqueue_struct *wq, struct work_struct *work)
{
	native_queue(work, native_run);
	return true;
}

bool cancel_work_sync(struct work_struct *work)
{
	native_cancel(work);
	return true;
}

/* No CPU comes or goes. */
int __cpuhp_setup_state(enum cpuhp_state state, const char *name, bool invoke,
			int (*startup)(unsigned int cpu),
			int (*teardown)(unsigned int cpu), bool multi_instance)
{
	return 1;
}

/* Have @threads CPUs; first it is one. */
void native_threads(unsigned int threads)
{
	static bool up;

	if (!up)
		padata_init();
	up = true;

	cpumask_bits(&native_cpus)[0] = GENMASK(threads - 1, 0);
}
