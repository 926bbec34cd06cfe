/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where an architecture has no streaming stores of its own: the cached copy,
 * which is coherent by itself and needs no drain.
 */
#ifndef _ASM_GENERIC_MEMCPY_STREAMING_H
#define _ASM_GENERIC_MEMCPY_STREAMING_H

#include <linux/string.h>
#include <linux/types.h>

static __always_inline void arch_memcpy_streaming(void *dst, const void *src,
						  size_t n)
{
	memcpy(dst, src, n);
}

#define arch_memfill_store	memfill_store

static __always_inline void arch_memcpy_streaming_drain(void)
{
}

#endif /* _ASM_GENERIC_MEMCPY_STREAMING_H */
