// SPDX-License-Identifier: GPL-2.0-only
/* Runs a workload that somebody wrote in one C file. */
#include "workload.h"

/*
 * own_NAME tree= about=1: answers pages=, times= and moved=.
 * own_NAME tree= pfn=: runs the workload once. Answers ns= and right=.
 */
void native_workload(struct native_request *r, const struct native_workload *w)
{
	unsigned long pfn;
	long begun;

	if (native_number_or(r, "about", 0)) {
		native_answer(r, "pages", w->pages);
		native_answer(r, "times", w->times);
		native_answer(r, "moved", w->moved);
		return;
	}
	pfn = native_number(r, "pfn");
	native_need_memory(r, pfn, w->pages);
	native_need_memmap(r, pfn, w->pages);
	if (w->setup)
		w->setup(pfn);
	begun = native_now();
	w->run(pfn);
	native_answer(r, "ns", native_now() - begun);
	native_answer(r, "right", !w->check || w->check(pfn));
}
