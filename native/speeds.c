// SPDX-License-Identifier: GPL-2.0-only
/*
 * The speed of stores, where it is not left to the machine: the fills of a host
 * that was linked slowed (native/slowed.h) tell what they wrote, and time passes
 * for it, on the machine or on a clock that stands still otherwise.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "host.h"

enum { PS_PER_NS = 1000 };

static struct {
	int scripted;			/* the clock is, and stores are free */
	long hidden, cached, streamed;	/* picoseconds a page */
	unsigned long cache_pages;	/* that cached stores write while hidden */
	long every, late;		/* nanoseconds: a delay, how often and long */
	uint64_t random;
	int64_t now;			/* picoseconds, of the scripted clock */
	int64_t next;			/* nanoseconds: when a delay is due */
	int64_t owed;			/* picoseconds */
	unsigned long undrained;	/* pages that were streamed */
} speeds;

int64_t k_ktime_get(void)
{
	return speeds.scripted ? speeds.now / PS_PER_NS : host_now();
}

/* Until the next delay, every on the average. */
static int64_t draw(void)
{
	speeds.random = speeds.random * 6364136223846793005UL + 1442695040888963407UL;
	return 1 + (speeds.random >> 33) % (2 * speeds.every);
}

/* Has that much time pass. */
static void pass(int64_t ps)
{
	int64_t end;

	if (speeds.scripted) {
		speeds.now += ps;
		return;
	}
	/* Not for each page: reading the clock takes longer than that. */
	speeds.owed += ps;
	if (speeds.owed < 1000 * PS_PER_NS)
		return;
	end = host_now() + speeds.owed / PS_PER_NS;
	speeds.owed = 0;
	while (host_now() < end)
		;
}

static void spend(int64_t ps)
{
	pass(ps);
	/*
	 * Those that were due meanwhile, however much was written at once. What
	 * was due between two runs is not: there a scripted clock stands still.
	 */
	while (speeds.every && k_ktime_get() >= speeds.next) {
		pass(speeds.late * PS_PER_NS);
		speeds.next = (speeds.scripted ? speeds.next + speeds.late :
						 host_now()) + draw();
	}
}

void k_native_spend(int streamed, unsigned long pages)
{
	unsigned long hidden;

	if (streamed) {
		speeds.undrained += pages;
		return;
	}
	hidden = pages < speeds.cache_pages ? pages : speeds.cache_pages;
	speeds.cache_pages -= hidden;
	spend(hidden * speeds.hidden + (pages - hidden) * speeds.cached);
}

/* Streamed stores take their time when they are waited for. */
void k_native_drained(void)
{
	unsigned long pages = speeds.undrained;

	speeds.undrained = 0;
	spend(pages * speeds.streamed);
}

void do_speeds(const char *args)
{
	char clock[16];

	memset(&speeds, 0, sizeof(speeds));
	if (sscanf(args, "%15s %ld %lu %ld %ld %ld %ld %lu", clock, &speeds.hidden,
		   &speeds.cache_pages, &speeds.cached, &speeds.streamed,
		   &speeds.every, &speeds.late, &speeds.random) != 8 ||
	    (strcmp(clock, "real") && strcmp(clock, "scripted"))) {
		printf("error usage\n");
		return;
	}
	speeds.scripted = !strcmp(clock, "scripted");
	if (speeds.every)
		speeds.next = k_ktime_get() + draw();
	printf("ok\n");
}
