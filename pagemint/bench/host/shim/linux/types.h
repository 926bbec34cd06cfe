/* SPDX-License-Identifier: GPL-2.0-only */
#include <stddef.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
