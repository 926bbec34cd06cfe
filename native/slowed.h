/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands before mm/memmap_template.c in a host whose stores can be slowed: has
 * every fill tell what it wrote, for native/speeds.c to let time pass.
 */
#ifndef PAGEMINT_SLOWED_H
#define PAGEMINT_SLOWED_H

/* It is compiled like a module, and is none. */
#undef MODULE

#include <linux/memcpy_streaming.h>

void native_spend(int streamed, unsigned long pages);
void native_drained(void);

#define memcpy_streaming(dst, src, n) \
	(memcpy_streaming(dst, src, n), native_spend(1, 1))
#define memfill_streaming(dst, image, size, nr) \
	(memfill_streaming(dst, image, size, nr), native_spend(1, nr))
#define memfill_cached(dst, image, size, nr) \
	(memfill_cached(dst, image, size, nr), native_spend(0, nr))
#define memfill_streaming_step(dst, image, step, size, nr) \
	(memfill_streaming_step(dst, image, step, size, nr), native_spend(1, nr))
#define memfill_cached_step(dst, image, step, size, nr) \
	(memfill_cached_step(dst, image, step, size, nr), native_spend(0, nr))
#define memcpy_streaming_drain() \
	(memcpy_streaming_drain(), native_drained())

#endif
