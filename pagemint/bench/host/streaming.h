/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PAGEMINT_STREAMING_H
#define PAGEMINT_STREAMING_H

#ifdef __KERNEL__
#include <linux/types.h>
typedef u64 native_u64;
#else
#include <stddef.h>
#include <stdint.h>
typedef uint64_t native_u64;
#endif

typedef void memfill_fn(void *dst, native_u64 *image, const native_u64 *step, size_t size, size_t nr);

/* The functions under test, compiled as kernel code or with the sanitizers. */
struct native_streaming {
	/* memcpy_streaming(), or NULL */
	void (*copy)(void *dst, const void *src, size_t n);
	/* memcpy_flushcache() with a constant size; 0 if there is none for n. */
	int (*flushcache)(void *dst, const void *src, size_t n);
	/* memfill_cached() and memfill_streaming() */
	memfill_fn *cached, *streaming;
	void (*drain)(void);
};

extern const struct native_streaming native_streaming;

#endif
