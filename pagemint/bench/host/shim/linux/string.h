/* SPDX-License-Identifier: GPL-2.0-only */
/* Unlike the kernel's, this memcpy_flushcache() copies only whole, aligned words. */
#ifndef SHIM_LINUX_STRING_H
#define SHIM_LINUX_STRING_H

#include <string.h>

#include <linux/types.h>

#ifdef __x86_64__
static inline void memcpy_flushcache(void *dst, const void *src, size_t n)
{
	const u64 *s = src;
	u64 *d = dst;

	for (; n; n -= 8)
		asm volatile("movnti %1, %0" : "=m" (*d++) : "r" (*s++));
}
#endif

#endif
