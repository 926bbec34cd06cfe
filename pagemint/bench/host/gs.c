// SPDX-License-Identifier: GPL-2.0-only
/* Per-CPU data, which kernel code reaches through %gs. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"

extern const char __start_per_cpu[], __stop_per_cpu[];

void gs_set(void)
{
	const unsigned long start = (unsigned long)__start_per_cpu;
	const unsigned long size = __stop_per_cpu - __start_per_cpu;
	const unsigned long skew = start % NATIVE_GS_SIZE;

	fixed_map(NATIVE_GS + start - skew, skew + size, 1);
	memcpy((void *)(NATIVE_GS + start), __start_per_cpu, size);
	fixed_map(NATIVE_GS, NATIVE_GS_SIZE, 1);
	*(unsigned long *)(NATIVE_GS + NATIVE_GS_CANARY) = k___ref_stack_chk_guard;
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, NATIVE_GS))
		host_die("this system does not allow setting %gs");
}
