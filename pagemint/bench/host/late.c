// SPDX-License-Identifier: GPL-2.0-only
/*
 * Streaming stores that land late, for trees whose <asm/memfill_streaming.h> is
 * pagemint/bench/host/late/memfill_streaming.h. x86 orders stores so strongly that a missing
 * drain shows nowhere; here a store reaches memory only at the next drain of the
 * thread that made it. Unlike on x86, neither a locked instruction nor a read by
 * that thread itself brings it there.
 */
#include <stdlib.h>
#include <string.h>

#include "host.h"

struct line {
	void *dst;
	uint64_t words[8];
};

static __thread struct line *lines;
static __thread size_t nr, room;
static unsigned long undrained;

void k_native_late_store(void *dst, const uint64_t *words)
{
	if (nr == room) {
		room = room ? 2 * room : 1024;
		lines = realloc(lines, room * sizeof(*lines));
		if (!lines)
			host_die("memory: out of memory for late stores");
	}
	lines[nr].dst = dst;
	memcpy(lines[nr++].words, words, sizeof(lines->words));
}

void k_native_late_drain(void)
{
	for (size_t i = 0; i < nr; i++)
		memcpy(lines[i].dst, lines[i].words, sizeof(lines->words));
	nr = 0;
}

/* The calling thread lets others run: it should have drained. */
void late_switch(void)
{
	if (nr)
		__atomic_add_fetch(&undrained, 1, __ATOMIC_RELAXED);
}

/*
 * late: forgets the stores of the main thread that have not landed. Answers
 * undrained=, how many times since the last call a thread let others run, ended its
 * work or answered a command with such stores.
 */
NATIVE_COMMAND(late)
{
	late_switch();
	native_answer(r, "undrained", undrained);
	undrained = 0;
	nr = 0;
}
