// SPDX-License-Identifier: GPL-2.0-only
/* The CPU at hand: its features and its clock. */
#include <string.h>
#include <time.h>

#include "host.h"

int cpu_has(const char *feature)
{
	/* The built-in function wants a literal. */
	return !strcmp(feature, "avx512f") ? __builtin_cpu_supports("avx512f") :
	       !strcmp(feature, "avx") ? __builtin_cpu_supports("avx") : 1;
}

long native_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}
