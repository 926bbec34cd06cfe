// SPDX-License-Identifier: GPL-2.0-only
/* Memory at fixed addresses: those that the memmap contains, and those compiled in. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "host.h"

void fixed_map(unsigned long addr, unsigned long size, int writable)
{
	int prot = writable ? PROT_READ | PROT_WRITE : PROT_NONE;

	if (mmap((void *)addr, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
		 MAP_FIXED_NOREPLACE, -1, 0) != (void *)addr)
		host_die("a fixed address is taken");
}
