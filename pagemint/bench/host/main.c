// SPDX-License-Identifier: GPL-2.0-only
/* The host program: reads commands from standard input, one a line; see native.h. */
#include <stdio.h>

#include "host.h"

int main(int argc, char **argv)
{
	char line[512];

	if (argc != 3)
		host_die("usage: host TRAPS SITES");
	faults_catch(argv[1]);
	gs_set();
	fixed_map(NATIVE_PGMAP, NATIVE_PGMAP_SIZE, 1);
	fixed_map(NATIVE_PGDAT, NATIVE_PGDAT_SIZE, 1);
	code_read_sites(argv[2]);
	while (fgets(line, sizeof(line), stdin))
		command_run(line);
	return 0;
}
