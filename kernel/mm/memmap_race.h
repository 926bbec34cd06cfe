/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MEMMAP_RACE_H
#define _MM_MEMMAP_RACE_H

#include <linux/sizes.h>
#include <linux/types.h>

/* Bytes that are written and timed at once. */
#define MEMMAP_RACE_CHUNK	SZ_256K

/* Chunks of each lane in a heat; of the cached one, until it is looked at. */
#define MEMMAP_RACE_ROUNDS	8

/*
 * Chunks of each lane after which a heat ends if one takes MEMMAP_RACE_FAR
 * times the time. That has to be far: each of so few chunks may be delayed.
 */
#define MEMMAP_RACE_EARLY	3
#define MEMMAP_RACE_FAR		8

/* What the cached lane must be ahead by, as a share of its time: 1/64. */
#define MEMMAP_RACE_MARGIN	64

/*
 * Bytes after which no heat is held any more. More than any CPU's last-level
 * cache, which hides what cached stores cost until it is full.
 */
#define MEMMAP_RACE_LENGTH	SZ_512M

/* Heats that are held at the most, on a machine whose speed keeps changing. */
#define MEMMAP_RACE_HEATS	16

/**
 * enum memmap_race_lane - the ways of writing that run against each other
 * @MEMMAP_RACE_CACHED: with stores that go through the cache
 * @MEMMAP_RACE_STREAMED: with streaming stores
 */
enum memmap_race_lane {
	MEMMAP_RACE_CACHED,
	MEMMAP_RACE_STREAMED,
	MEMMAP_RACE_LANES
};

/**
 * struct memmap_race - which of two ways of writing a large range is faster
 * @lane: which writes the next chunk; the winner if the race is over
 * @over: whether the rest goes to @lane
 * @heat: whether the lanes take turns, else the cached one runs alone
 * @turn: chunks since the heat began, or since the cached lane was looked at
 * @laps: chunks since the race began
 * @heats: heats that are over
 * @ratio: time of the loser over that of the winner in the last heat, in
 *	hundredths; 0 before one is over
 * @best: nanoseconds of the fastest chunk of each lane in this heat; that of
 *	the cached lane starts anew whenever it is looked at
 */
struct memmap_race {
	enum memmap_race_lane lane;
	bool over;
	bool heat;
	unsigned int turn;
	unsigned int laps;
	unsigned int heats;
	unsigned int ratio;
	u64 best[MEMMAP_RACE_LANES];
};

void memmap_race_start(struct memmap_race *race);
void memmap_race_lap(struct memmap_race *race, u64 ns);

#endif /* _MM_MEMMAP_RACE_H */
