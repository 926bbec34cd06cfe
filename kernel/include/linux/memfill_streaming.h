/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fills: many copies of one image, through the cache or bypassing it.
 *
 * A streaming (non-temporal) store writes its cache line without reading it
 * first, and leaves the cache to other data. It wins where the filled memory
 * is larger than the cache, or is not in the cache and not read soon.
 */
#ifndef _LINUX_MEMFILL_STREAMING_H
#define _LINUX_MEMFILL_STREAMING_H

#include <linux/string.h>
#include <linux/types.h>

#include <asm/memfill_streaming.h>

/* Stores one image of 64 bytes; inlined where it is passed as a constant. */
typedef void (*memfill_store_t)(void *dst, u64 w0, u64 w1, u64 w2, u64 w3,
				u64 w4, u64 w5, u64 w6, u64 w7);

static __always_inline void memfill_store(void *dst, u64 w0, u64 w1, u64 w2,
					  u64 w3, u64 w4, u64 w5, u64 w6,
					  u64 w7)
{
	u64 *p = dst;

	p[0] = w0;
	p[1] = w1;
	p[2] = w2;
	p[3] = w3;
	p[4] = w4;
	p[5] = w5;
	p[6] = w6;
	p[7] = w7;
}

/* Eight variables, since a compiler need not keep an array in registers. */
static __always_inline void memfill_64(memfill_store_t store, void *dst,
				       const u64 *image, size_t nr)
{
	const u64 w0 = image[0], w1 = image[1], w2 = image[2], w3 = image[3];
	const u64 w4 = image[4], w5 = image[5], w6 = image[6], w7 = image[7];

	for (; nr; nr--, dst += 64)
		store(dst, w0, w1, w2, w3, w4, w5, w6, w7);
}

static __always_inline void memfill_step_64(memfill_store_t store, void *dst,
					    u64 *image, const u64 *step,
					    size_t nr)
{
	u64 w0 = image[0], w1 = image[1], w2 = image[2], w3 = image[3];
	u64 w4 = image[4], w5 = image[5], w6 = image[6], w7 = image[7];

	for (; nr; nr--, dst += 64) {
		store(dst, w0, w1, w2, w3, w4, w5, w6, w7);
		w0 += step[0];
		w1 += step[1];
		w2 += step[2];
		w3 += step[3];
		w4 += step[4];
		w5 += step[5];
		w6 += step[6];
		w7 += step[7];
	}
	image[0] = w0;
	image[1] = w1;
	image[2] = w2;
	image[3] = w3;
	image[4] = w4;
	image[5] = w5;
	image[6] = w6;
	image[7] = w7;
}

static __always_inline void memfill(memfill_store_t store, void *dst,
				    u64 *image, const u64 *step, size_t size,
				    size_t nr)
{
	size_t i;

	if (size == 64) {
		if (step)
			memfill_step_64(store, dst, image, step, nr);
		else
			memfill_64(store, dst, image, nr);
		return;
	}

	for (; nr; nr--, dst += size) {
		memcpy(dst, image, size);
		for (i = 0; step && i < size / sizeof(*image); i++)
			image[i] += step[i];
	}
}

/**
 * memfill_cached() - write one image many times through the cache
 * @dst: destination, aligned to 8 bytes; does not overlap @image
 * @image: the first copy, of @size bytes; with @step it is left as the copy
 *	that would come next
 * @step: what each 64-bit word of @image advances by after each copy, or NULL
 * @size: bytes in the image, a multiple of 8; 64 is the fast one
 * @nr: number of copies
 */
static __always_inline void memfill_cached(void *dst, u64 *image,
					   const u64 *step, size_t size,
					   size_t nr)
{
	memfill(memfill_store, dst, image, step, size, nr);
}

/**
 * memfill_streaming() - write one image many times with streaming stores
 * @dst: destination, aligned to 8 bytes; does not overlap @image
 * @image: the first copy, of @size bytes; with @step it is left as the copy
 *	that would come next
 * @step: what each 64-bit word of @image advances by after each copy, or NULL
 * @size: bytes in the image, a multiple of 8
 * @nr: number of copies
 *
 * Only images of 64 bytes are streamed, on architectures that have streaming
 * stores; other images are written through the cache.
 *
 * Call memfill_streaming_drain() before anything depends on the data.
 */
static __always_inline void memfill_streaming(void *dst, u64 *image,
					      const u64 *step, size_t size,
					      size_t nr)
{
	memfill(arch_memfill_store, dst, image, step, size, nr);
}

/**
 * memfill_streaming_drain() - order streaming stores before later stores
 *
 * Acts on the stores of this CPU alone: a thread drains what it has streamed
 * before it tells another thread that the data is there. Telling takes what it
 * takes after ordinary stores: smp_store_release(), or unlocking a lock.
 */
static __always_inline void memfill_streaming_drain(void)
{
	arch_memfill_drain();
}

#endif /* _LINUX_MEMFILL_STREAMING_H */
