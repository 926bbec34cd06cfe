// SPDX-License-Identifier: GPL-2.0-only
/* Huge pages: a kernel maps its memory with them, so the host should, too. */
#include <stdio.h>
#include <string.h>

#include "host.h"

unsigned long huge_bytes(const void *base)
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
