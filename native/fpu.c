// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's own use of the FPU. As there, the first section after an entry
 * to the kernel saves the task's registers, and the return to the task restores
 * them; all of them, where the kernel may know which have not changed. There is
 * nobody to be kept from preempting.
 */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>

#include "host.h"

static struct {
	int refused, inside, saved;
} fpu;

static uint8_t registers[16384] __attribute__((aligned(64)));

__attribute__((target("xsave,fxsr"))) static void save_or_restore(int save)
{
	if (has_feature("avx"))
		save ? _xsave64(registers, -1) : _xrstor64(registers, -1);
	else
		save ? _fxsave64(registers) : _fxrstor64(registers);
}

_Bool k_irq_fpu_usable(void)
{
	return !fpu.refused && !fpu.inside;
}

void k_kernel_fpu_begin_mask(unsigned int mask)
{
	if (!k_irq_fpu_usable())
		host_die("an FPU section where there can be none");
	fpu.inside = 1;
	if (!fpu.saved)
		save_or_restore(1);
	fpu.saved = 1;
}

void k_kernel_fpu_end(void)
{
	if (!fpu.inside)
		host_die("the end of no FPU section");
	fpu.inside = 0;
}

void do_fpu(const char *args)
{
	int usable;

	if (sscanf(args, "%d", &usable) != 1) {
		printf("error usage\n");
		return;
	}
	fpu.refused = !usable;
	printf("ok\n");
}

void k_native_return(void)
{
	if (fpu.inside)
		host_die("a return from an FPU section");
	if (fpu.saved)
		save_or_restore(0);
	fpu.saved = 0;
}
