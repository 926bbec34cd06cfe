// SPDX-License-Identifier: GPL-2.0-only
/* The test of copies and fills as a program of its own, with the sanitizers. */
#include <stdio.h>

#include "streaming.h"

void native_copy(void *dst, const void *src, size_t n);
int native_flushcache(void *dst, const void *src, size_t n);
memfill native_cached, native_streaming;
void native_drain(void);

int main(void)
{
	const struct streaming s = {
		native_copy, native_flushcache, native_cached, native_streaming, native_drain,
	};
	unsigned long checks = streaming_test(&s);

	if (checks)
		printf("%lu\n", checks);
	return !checks;
}
