// SPDX-License-Identifier: GPL-2.0-only
/* The features and the clock of this machine's CPU. */
#include <string.h>
#include <time.h>

#include "host.h"

int cpu_has(const char *feature)
{
	/* __builtin_cpu_supports() takes only literals. */
	return !strcmp(feature, "avx512f") ? __builtin_cpu_supports("avx512f") :
	       !strcmp(feature, "avx") ? __builtin_cpu_supports("avx") : 1;
}

long native_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}
