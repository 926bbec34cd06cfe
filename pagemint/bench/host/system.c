// SPDX-License-Identifier: GPL-2.0-only
/* The clock, the CPU's features, and fixed memory. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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

void fixed_map(unsigned long addr, unsigned long size, int writable)
{
	int prot = writable ? PROT_READ | PROT_WRITE : PROT_NONE;

	if (mmap((void *)addr, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
		 MAP_FIXED_NOREPLACE, -1, 0) != (void *)addr)
		host_die("system: a fixed address is taken");
}

/* The bytes of the mapping at @base that are in huge pages, as a kernel maps its memory. */
static unsigned long huge_bytes(const void *base)
{
	unsigned long start, kb = 0;
	char line[256];
	int inside = 0;
	FILE *f = fopen("/proc/self/smaps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%*x ", &start) == 1 && strchr(line, '-'))
			inside = start == (unsigned long)base;
		else if (inside && sscanf(line, "AnonHugePages: %lu kB", &kb) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kb << 10;
}

void map_answering(struct native_request *r, void *at, unsigned long size)
{
	long fd = native_number_or(r, "fd", -1);
	int how = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE | how, fd, 0) != at)
		command_refuse(r, "memory", "fails: no memory can be mapped there");
	if (fd < 0) {
		madvise(at, size, MADV_HUGEPAGE);
		memset(at, 0xa5, size);
	}
	native_answer(r, "huge", fd < 0 ? huge_bytes(at) : 0);
}
