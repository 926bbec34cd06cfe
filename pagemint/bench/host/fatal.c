// SPDX-License-Identifier: GPL-2.0-only
/* Ends the program on errors from which no command can go on. */
#include <stdio.h>
#include <unistd.h>

#include "host.h"

void host_die(const char *why)
{
	printf("error %s\n", why);
	fflush(stdout);
	_exit(3);
}

void native_fail(const char *what, unsigned long addr)
{
	char text[128];

	snprintf(text, sizeof(text), "the host cannot go on: %s (%#lx)", what, addr);
	host_die(text);
}
