/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#define get_unaligned(p) \
	({ __typeof__(*(p) + 0) v_; memcpy(&v_, p, sizeof(v_)); v_; })
