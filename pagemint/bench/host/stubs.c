// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stand-ins for the rest of the kernel, sorted by how much they differ from it.
 * k_NAME is the stand-in for NAME in each tree. A symbol without a stand-in is a
 * trap: touching it ends the program, which prints the symbol's name.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

/* Define a stand-in that does nothing, and returns 0 to those who read what it returns. */
#define NOTHING(name)	long name(void) { return 0; }

/* Functions that do nothing in the kernel, either. */

asm(".globl k___fentry__\n k___fentry__: ret\n"
    ".globl k___SCT__might_resched\n k___SCT__might_resched: xor %eax, %eax\n ret\n");

/* There is only one task: locks need not be taken, and no interrupt comes. */

NOTHING(k__raw_spin_lock_irqsave)
NOTHING(k__raw_spin_unlock_irqrestore)
NOTHING(k__raw_spin_lock_irq)
NOTHING(k__raw_spin_unlock_irq)
NOTHING(k_mutex_lock)
NOTHING(k_mutex_unlock)
NOTHING(k___rcu_read_lock)
NOTHING(k___rcu_read_unlock)
NOTHING(k_touch_softlockup_watchdog)

int k___SCT__cond_resched(void)
{
	late_switch();
	return 0;
}

PER_CPU unsigned long k___ref_stack_chk_guard = 0x5bd1e995;

/* For 6.12: a struct static_key that is off, as without hugetlb_free_vmemmap=. */
unsigned long k_hugetlb_optimize_vmemmap_key[2];

/* Functions that do the same, from the C library. */

void *k_memmove(void *dst, const void *src, size_t n)
{
	return memmove(dst, src, n);
}

void *k_memset(void *dst, int c, size_t n)
{
	return memset(dst, c, n);
}

int k_memcmp(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n);
}

unsigned int k___bitmap_weight(const unsigned long *bits, unsigned int nr)
{
	unsigned int i, weight = 0;

	for (i = 0; i < nr; i++)
		weight += bits[i / 64] >> (i % 64) & 1;
	return weight;
}

int k___sysfs_match_string(const char *const *array, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(array[i], s))
			return i;
	return -22;	/* -EINVAL */
}

void *native_alloc(unsigned long size)
{
	void *p = calloc(1, size);

	if (!p)
		host_die("memory: out of memory");
	return p;
}

/* Only padata_init() allocates memory; GFP flags and further arguments are ignored. */
void *k___kmalloc_noprof(size_t size)
{
	return native_alloc(size);
}

/* Stand-ins that do less than the kernel's functions, or something else. */

/* jiffies stand still: callers of commands read the time themselves. */
unsigned long k_jiffies;

unsigned int k_jiffies_to_msecs(unsigned long j)
{
	return j;
}

/* Kernel code writes to these, and nobody reads them. */
unsigned long k_highest_memmap_pfn, k__totalram_pages, k_totalreserve_pages;

/* Features that are off unless the kernel's command line turns them on. */
struct key {
	int enabled;
	void *entries;
} k_page_alloc_shuffle_key, k_memcg_kmem_online_key, k_page_reporting_enabled,
	k__page_poisoning_enabled;

/* Control groups are on, but no folio is charged to one, and nobody waits for one. */
struct key k_memory_cgrp_subsys_enabled_key = { .enabled = 1 };

NOTHING(k___mem_cgroup_uncharge)
NOTHING(k___wake_up)
NOTHING(k_irq_work_queue)

/* online_pages() calls the notifiers between initialising and freeing the pages. */

static long going_online;

long *native_going_online(void)
{
	return &going_online;
}

int k_memory_notify(unsigned long what, void *arg)
{
	if (!going_online)
		going_online = native_now();
	return 0;
}

NOTHING(k_node_notify)

/* online_pages() does not do this here: sections stay offline, and pageblocks isolated. */
NOTHING(k_online_mem_sections)
NOTHING(k_undo_isolate_page_range)
NOTHING(k_native_nothing)
NOTHING(k_kswapd_run)
NOTHING(k_kcompactd_run)
NOTHING(k_writeback_set_ratelimit)

/* A task that compacts nothing. */
static char task[1 << 16];
PER_CPU void *k_const_current_task = task;

/* The same for 6.12, with __preempt_count. */
PER_CPU struct hot {
	void *current_task;
	int preempt_count;
	char rest[48];
} k_pcpu_hot = { .current_task = task, .preempt_count = (int)0x80000000 };
extern struct hot k_const_pcpu_hot __attribute__((alias("k_pcpu_hot")));

/* Kernel code counts here, but nothing preempts it. */
PER_CPU unsigned long k___preempt_count = 0x80000000;

/* Memory that a guest has yet to accept. */

static int unaccepted_memory;

int *native_unaccepted(void)
{
	return &unaccepted_memory;
}

int k_range_contains_unaccepted_memory(uint64_t start, unsigned long size)
{
	return unaccepted_memory;
}

NOTHING(k_accept_memory)

/* The preemption model of Debian's kernel: PREEMPT_LAZY, and PREEMPT_VOLUNTARY on 6.12. */
static int preempt_lazy = 1;

NOTHING(k_preempt_model_full)

int k_preempt_model_lazy(void)
{
	return preempt_lazy;
}

/* preempt lazy=: whether the kernel is preemptible (1, the default), on 7.3. */
NATIVE_COMMAND(preempt)
{
	preempt_lazy = native_number(r, "lazy");
}

static struct native_poisoned poisoned;

struct native_poisoned *native_poisoned(void)
{
	return &poisoned;
}

/* Only record the call; no page is taken out of use. */
void k_memory_failure_queue(unsigned long pfn, int flags)
{
	if (!poisoned.nr++)
		poisoned.first_pfn = pfn;
}
