/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Copies and fills for memory that is written once and not read soon.
 *
 * A streaming (non-temporal) store writes its line without reading it first
 * and without displacing what the caches hold. It pays for data larger than
 * the last-level cache. It loses for data that is used again at once.
 */
#ifndef _LINUX_MEMCPY_STREAMING_H
#define _LINUX_MEMCPY_STREAMING_H

#include <linux/align.h>
#include <linux/string.h>
#include <linux/types.h>

#include <asm/memcpy_streaming.h>

/**
 * memcpy_streaming - copy with stores that bypass the cache
 * @dst: destination
 * @src: source, not overlapping @dst
 * @n: bytes to copy
 *
 * Streams if the whole transfer can be streamed: @dst aligned to 8 bytes, and
 * @n a multiple of 8 other than 0. Otherwise this is memcpy(): never a mix of
 * both, so that a caller who keeps to that alignment knows what he gets.
 *
 * Call memcpy_streaming_drain() before anything depends on the data.
 */
static __always_inline void memcpy_streaming(void *dst, const void *src,
					     size_t n)
{
	if (n && IS_ALIGNED((unsigned long)dst | n, 8))
		arch_memcpy_streaming(dst, src, n);
	else
		memcpy(dst, src, n);
}

/**
 * memcpy_streaming_drain - order streamed stores before what follows
 *
 * Acts on the stores of this CPU alone: a thread that streamed drains before
 * it tells another one that the data is there. To tell it takes what it takes
 * after ordinary stores: smp_store_release(), or a lock that is released.
 */
static __always_inline void memcpy_streaming_drain(void)
{
	arch_memcpy_streaming_drain();
}

/* How one copy of an image of 64 bytes is written; inlined where it is given. */
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

/* With the image in registers, which a loop over its words would not promise. */
static __always_inline void memfill_64(memfill_store_t store, void *dst,
				       const void *image, size_t nr)
{
	const u64 *w = image;
	const u64 w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
	const u64 w4 = w[4], w5 = w[5], w6 = w[6], w7 = w[7];

	for (; nr; nr--, dst += 64)
		store(dst, w0, w1, w2, w3, w4, w5, w6, w7);
}

static __always_inline void memfill_step_64(memfill_store_t store, void *dst,
					    u64 *w, const u64 *step, size_t nr)
{
	u64 w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
	u64 w4 = w[4], w5 = w[5], w6 = w[6], w7 = w[7];

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
	w[0] = w0;
	w[1] = w1;
	w[2] = w2;
	w[3] = w3;
	w[4] = w4;
	w[5] = w5;
	w[6] = w6;
	w[7] = w7;
}

/**
 * memfill_advance - make the image that comes next
 * @image: an image
 * @step: what to add to each of its 64-bit words
 * @size: bytes in the image, a multiple of 8
 */
static __always_inline void memfill_advance(u64 *image, const u64 *step,
					    size_t size)
{
	size_t i;

	for (i = 0; i < size / sizeof(*image); i++)
		image[i] += step[i];
}

/**
 * memfill_streaming - write one image many times with streaming stores
 * @dst: destination, @nr times @size bytes, not overlapping @image
 * @image: what to write, aligned to 8 bytes if @size is 64
 * @size: bytes in the image; 64 is the fast one
 * @nr: number of copies
 *
 * An image of 64 bytes stays in registers, which is what takes a fill to the
 * limit of the memory: @nr calls of memcpy_streaming() load it @nr times.
 *
 * Call memcpy_streaming_drain() before anything depends on the data.
 */
static __always_inline void memfill_streaming(void *dst, const void *image,
					      size_t size, size_t nr)
{
	if (size == 64 && IS_ALIGNED((unsigned long)dst, 8)) {
		memfill_64(arch_memfill_store, dst, image, nr);
		return;
	}

	for (; nr; nr--, dst += size)
		memcpy_streaming(dst, image, size);
}

/**
 * memfill_cached - write one image many times through the cache
 * @dst: destination, @nr times @size bytes, not overlapping @image
 * @image: what to write, aligned to 8 bytes if @size is 64
 * @size: bytes in the image; 64 is the fast one
 * @nr: number of copies
 *
 * What memfill_streaming() has to beat: an image of 64 bytes stays in registers
 * here, too.
 */
static __always_inline void memfill_cached(void *dst, const void *image,
					   size_t size, size_t nr)
{
	if (size == 64 && IS_ALIGNED((unsigned long)dst, 8)) {
		memfill_64(memfill_store, dst, image, nr);
		return;
	}

	for (; nr; nr--, dst += size)
		memcpy(dst, image, size);
}

/**
 * memfill_streaming_step - write an image that advances from copy to copy
 * @dst: destination, @nr times @size bytes
 * @image: the first copy; left as the one that would come next
 * @step: what to add to each 64-bit word of @image after each copy
 * @size: bytes in the image, a multiple of 8; 64 is the fast one
 * @nr: number of copies
 *
 * Call memcpy_streaming_drain() before anything depends on the data.
 */
static __always_inline void memfill_streaming_step(void *dst, u64 *image,
						   const u64 *step,
						   size_t size, size_t nr)
{
	if (size == 64 && IS_ALIGNED((unsigned long)dst, 8)) {
		memfill_step_64(arch_memfill_store, dst, image, step, nr);
		return;
	}

	for (; nr; nr--, dst += size) {
		memcpy_streaming(dst, image, size);
		memfill_advance(image, step, size);
	}
}

/**
 * memfill_cached_step - the same through the cache
 * @dst: destination, @nr times @size bytes
 * @image: the first copy; left as the one that would come next
 * @step: what to add to each 64-bit word of @image after each copy
 * @size: bytes in the image, a multiple of 8; 64 is the fast one
 * @nr: number of copies
 *
 * An image of 64 bytes stays in registers here, too.
 */
static __always_inline void memfill_cached_step(void *dst, u64 *image,
						const u64 *step,
						size_t size, size_t nr)
{
	if (size == 64 && IS_ALIGNED((unsigned long)dst, 8)) {
		memfill_step_64(memfill_store, dst, image, step, nr);
		return;
	}

	for (; nr; nr--, dst += size) {
		memcpy(dst, image, size);
		memfill_advance(image, step, size);
	}
}

#endif /* _LINUX_MEMCPY_STREAMING_H */
