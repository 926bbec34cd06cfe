// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host program: reads commands from standard input, one a line; see native.h. The
 * clock, and fixed memory.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

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

extern const char __start_per_cpu[], __stop_per_cpu[];

/* Map the per-CPU data that kernel code reaches through %gs; see NATIVE_GS. */
static void gs_set(void)
{
	const unsigned long start = (unsigned long)__start_per_cpu;
	const unsigned long size = __stop_per_cpu - __start_per_cpu;
	const unsigned long skew = start % NATIVE_GS_SIZE;

	fixed_map(NATIVE_GS + start - skew, skew + size, 1);
	memcpy((void *)(NATIVE_GS + start), __start_per_cpu, size);
	fixed_map(NATIVE_GS, NATIVE_GS_SIZE, 1);
	*(unsigned long *)(NATIVE_GS + NATIVE_GS_CANARY) = k___ref_stack_chk_guard;
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, NATIVE_GS))
		host_die("system: this system does not allow setting %gs");
}

int main(int argc, char **argv)
{
	char line[512];

	if (argc != 3)
		host_die("command: usage: host TRAPS SITES");
	faults_catch(argv[1]);
	gs_set();
	fixed_map(NATIVE_PGMAP, NATIVE_PGMAP_SIZE, 1);
	fixed_map(NATIVE_PGDAT, NATIVE_PGDAT_SIZE, 1);
	code_read_sites(argv[2]);
	while (fgets(line, sizeof(line), stdin))
		command_run(line);
	return 0;
}
