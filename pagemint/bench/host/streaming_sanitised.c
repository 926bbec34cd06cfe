// SPDX-License-Identifier: GPL-2.0-only
/* The test of copies and fills as a separate program, compiled with sanitizers. */
#include <stdio.h>

#include "native.h"
#include "streaming.h"

int main(void)
{
	unsigned long checks = native_streaming_test(&native_streaming);

	if (checks)
		printf("%lu\n", checks);
	return !checks;
}
