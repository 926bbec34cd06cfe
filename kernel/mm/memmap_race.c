// SPDX-License-Identifier: GPL-2.0-only
/*
 * A race between cached and streaming stores on the memory that is to be
 * written anyway.
 *
 * In a heat each writes one chunk of every two, and the fastest chunk of each
 * counts: an interrupt, or a host that takes the CPU away, only ever adds to a
 * time. Which of them goes first changes from pair to pair, so that nothing
 * that comes with every second chunk falls upon one of them alone.
 *
 * Streaming stores show at once what they cost. Cached ones do not: until the
 * last-level cache is full of what they wrote, nothing has to be written back.
 * So a heat that the streamed lane wins ends the race, while the cached lane,
 * if it wins, goes on as long as it keeps its pace. Where it falls behind,
 * another heat tells whether its cost came to light or the machine is slower.
 *
 * That way the size of the cache need not be known, which firmware and
 * hypervisors often get wrong.
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "memmap_race.h"

static void memmap_race_heat(struct memmap_race *race)
{
	race->heat = true;
	race->turn = 0;
	race->lane = MEMMAP_RACE_CACHED;
	race->best[MEMMAP_RACE_CACHED] = U64_MAX;
	race->best[MEMMAP_RACE_STREAMED] = U64_MAX;
}

/**
 * memmap_race_start - begin a race
 * @race: the race
 */
void memmap_race_start(struct memmap_race *race)
{
	*race = (struct memmap_race){ };
	memmap_race_heat(race);
}

/* A tie is for the streamed lane, whose time hides nothing. */
static bool memmap_race_cached_leads(const struct memmap_race *race)
{
	const u64 cached = race->best[MEMMAP_RACE_CACHED];

	return cached + cached / MEMMAP_RACE_MARGIN <
	       race->best[MEMMAP_RACE_STREAMED];
}

static unsigned int memmap_race_ratio(u64 loser, u64 winner)
{
	return min(div64_u64(loser * 100, max(winner, 1ULL)), UINT_MAX);
}

/* Whether the heat has seen enough; a lane far behind is not worth its time. */
static bool memmap_race_heat_over(const struct memmap_race *race)
{
	const unsigned int rounds = race->turn / MEMMAP_RACE_LANES;
	const u64 cached = race->best[MEMMAP_RACE_CACHED];
	const u64 streamed = race->best[MEMMAP_RACE_STREAMED];

	if (race->turn % MEMMAP_RACE_LANES || rounds < MEMMAP_RACE_EARLY)
		return false;
	return rounds == MEMMAP_RACE_ROUNDS ||
	       max(cached, streamed) > MEMMAP_RACE_FAR * min(cached, streamed);
}

static void memmap_race_judge(struct memmap_race *race)
{
	const u64 cached = race->best[MEMMAP_RACE_CACHED];
	const u64 streamed = race->best[MEMMAP_RACE_STREAMED];

	race->heat = false;
	race->turn = 0;
	race->heats++;
	if (memmap_race_cached_leads(race)) {
		race->lane = MEMMAP_RACE_CACHED;
		race->over = race->heats == MEMMAP_RACE_HEATS;
		race->ratio = memmap_race_ratio(streamed, cached);
		race->best[MEMMAP_RACE_CACHED] = U64_MAX;
	} else {
		race->lane = MEMMAP_RACE_STREAMED;
		race->ratio = memmap_race_ratio(cached, streamed);
		race->over = true;
	}
}

/**
 * memmap_race_lap - take the time of a chunk and say how the next is written
 * @race: the race, which is not over
 * @ns: nanoseconds that the chunk took, written by @race->lane
 */
void memmap_race_lap(struct memmap_race *race, u64 ns)
{
	race->best[race->lane] = min(race->best[race->lane], ns);
	race->laps++;
	race->turn++;

	if (race->heat) {
		if (memmap_race_heat_over(race))
			memmap_race_judge(race);
		else
			race->lane = (race->turn + 1) / 2 % MEMMAP_RACE_LANES;
		return;
	}

	if (race->turn < MEMMAP_RACE_ROUNDS)
		return;

	if (race->laps >= MEMMAP_RACE_LENGTH / MEMMAP_RACE_CHUNK)
		race->over = true;
	else if (!memmap_race_cached_leads(race))
		memmap_race_heat(race);
	race->turn = 0;
	race->best[MEMMAP_RACE_CACHED] = U64_MAX;
}
