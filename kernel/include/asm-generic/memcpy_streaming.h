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

static __always_inline void arch_memfill_streaming_64(void *dst,
						      const void *image,
						      size_t nr)
{
	for (; nr; nr--, dst += 64)
		memcpy(dst, image, 64);
}

static __always_inline void arch_memfill_streaming_step_64(void *dst, u64 *w,
							   const u64 *step,
							   size_t nr)
{
	int i;

	for (; nr; nr--, dst += 64) {
		memcpy(dst, w, 64);
		for (i = 0; i < 8; i++)
			w[i] += step[i];
	}
}

static __always_inline void arch_memcpy_streaming_drain(void)
{
}

#endif /* _ASM_GENERIC_MEMCPY_STREAMING_H */
