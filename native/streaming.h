/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PAGEMINT_STREAMING_H
#define PAGEMINT_STREAMING_H

#include <stddef.h>
#include <stdint.h>

typedef void memfill(void *dst, uint64_t *image, const uint64_t *step, size_t size, size_t nr);

/* The functions under test, compiled as kernel code or with the sanitizers. */
struct streaming {
	/* memcpy_streaming() */
	void (*copy)(void *dst, const void *src, size_t n);
	/* memcpy_flushcache() with a constant size; 0 if there is none for n. */
	int (*flushcache)(void *dst, const void *src, size_t n);
	/* memfill_cached() and memfill_streaming() */
	memfill *cached, *streaming;
	void (*drain)(void);
};

/* Returns the number of checks, or 0 after it printed what is wrong. */
unsigned long streaming_test(const struct streaming *s);

#endif
