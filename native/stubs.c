// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stand-ins for the rest of the kernel, by how far they are from it; k_NAME is
 * the one for NAME in each tree. What has none is a trap that says its name.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

/* Nothing to do, here as there. */

asm(".globl k___fentry__\n k___fentry__: ret\n"
    ".globl k___SCT__cond_resched\n k___SCT__cond_resched: xor %eax, %eax\n ret\n");

unsigned long k___ref_stack_chk_guard = 0x5bd1e995;

/* The same, from the C library. */

void *k_memmove(void *dst, const void *src, size_t n)
{
	return memmove(dst, src, n);
}

void *k_memset(void *dst, int c, size_t n)
{
	return memset(dst, c, n);
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

int k_scnprintf(char *buf, size_t size, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(buf, size, format, args);
	va_end(args);
	return n < (int)size ? n : (int)size - 1;
}

void *k_native_alloc(unsigned long size)
{
	void *p = calloc(1, size);

	if (!p)
		host_die("out of memory");
	return p;
}

/* Of size, GFP flags and what else; padata_init() alone asks for memory. */
void *k___kmalloc_noprof(size_t size)
{
	return k_native_alloc(size);
}

/* Altered. */

/* Lists are not checked, but believed. */

_Bool k___list_add_valid_or_report(void)
{
	return 1;
}

_Bool k___list_del_entry_valid_or_report(void)
{
	return 1;
}

/* Every node has CPUs. */
int k_numa_nearest_node(int node, unsigned int state)
{
	return node;
}

/* jiffies stand still: what is timed is timed by the caller. */
unsigned long k_jiffies;

unsigned int k_jiffies_to_msecs(unsigned long j)
{
	return j;
}

/* PREEMPT_LAZY, which is what Debian's kernel boots to. */

int k_preempt_model_full(void)
{
	return 0;
}

int k_preempt_model_lazy(void)
{
	return 1;
}

struct block_log block_log;

/* The bitmap of the section is left out: the call is what is recorded. */
void k_init_pageblock_migratetype(void *page, unsigned int migratetype, int isolate)
{
	unsigned long pfn = ((unsigned long)page - NATIVE_VMEMMAP) / host_page_size;

	if (block_log.nr < block_log.max)
		block_log.entry[block_log.nr] = (struct block){ pfn, migratetype, isolate };
	block_log.nr++;
}

char debug_message[256];

/* Kept, not printed; with what any message of these objects needs. */
void k___dynamic_pr_debug(void *descriptor, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(debug_message, sizeof(debug_message), format, args);
	va_end(args);
}

struct poison_log poison_log;

/* Nothing is taken out of use: the call is what is recorded. */
void k_memory_failure_queue(unsigned long pfn, int flags)
{
	if (!poison_log.nr++)
		poison_log.first_pfn = pfn;
}

void k_native_fail(const char *what, unsigned long addr)
{
	char text[128];

	snprintf(text, sizeof(text), "no stand-in for %s at %#lx", what, addr);
	host_die(text);
}
