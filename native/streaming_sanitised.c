// SPDX-License-Identifier: GPL-2.0-only
/* The test as a program of its own, with the sanitizers. */
#include <stdio.h>

#include "streaming.h"

void native_copy(void *dst, const void *src, size_t n);
int native_flushcache(void *dst, const void *src, size_t n);
void native_fill(void *dst, const void *image, size_t size, size_t nr);
void native_fill_cached(void *dst, const void *image, size_t size, size_t nr);
void native_fill_cached_step(void *dst, uint64_t *image, const uint64_t *step, size_t size,
			     size_t nr);
void native_fill_step(void *dst, uint64_t *image, const uint64_t *step, size_t size, size_t nr);
void native_drain(void);

int main(void)
{
	const struct streaming s = {
		native_copy, native_flushcache, native_fill, native_fill_cached,
		native_fill_cached_step, native_fill_step, native_drain,
	};
	unsigned long checks = streaming_test(&s);

	if (checks)
		printf("%lu\n", checks);
	return !checks;
}
