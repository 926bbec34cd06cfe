/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A workload in one C file, for `pagemint bench --workload FILE.c`. The file is
 * compiled as kernel code of each tree. See docs/compare.md.
 */
#ifndef PAGEMINT_WORKLOAD_H
#define PAGEMINT_WORKLOAD_H

#include <linux/mm.h>

#include "glue.h"

/**
 * struct native_workload - kernel code to time
 * @pages: pages of memory that it gets, with their struct pages; it names the first
 *	PFN, which is aligned to 1 GiB
 * @times: how many times @run does the operation; at least 1
 * @moved: bytes that one operation reads or writes; 0 if that does not matter
 * @setup: called before each run; not timed; may be NULL
 * @run: timed
 * @check: called after each run; whether @run did its work; may be NULL
 */
struct native_workload {
	unsigned long pages, times, moved;
	void (*setup)(unsigned long pfn);
	void (*run)(unsigned long pfn);
	bool (*check)(unsigned long pfn);
};

/* Answers the commands of a workload. */
void native_workload(struct native_request *r, const struct native_workload *w);

/* Define a workload; "= { .pages = ..., };" follows. */
#define NATIVE_WORKLOAD(name)							\
	static const struct native_workload native_workload_##name;		\
	NATIVE_COMMAND(own_##name)						\
	{									\
		native_workload(r, &native_workload_##name);			\
	}									\
	static const struct native_workload native_workload_##name

#endif
