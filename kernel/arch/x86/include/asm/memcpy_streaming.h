/* SPDX-License-Identifier: GPL-2.0 */
/*
 * movnti from general registers: eight of them fill a line as fast as one
 * AVX-512 streaming store does, and need no FPU section.
 */
#ifndef _ASM_X86_MEMCPY_STREAMING_H
#define _ASM_X86_MEMCPY_STREAMING_H

/* KMSAN does not see what assembly writes. */
#if defined(CONFIG_X86_64) && !defined(CONFIG_KMSAN)

#include <linux/string.h>
#include <linux/types.h>

#include <asm/barrier.h>

static __always_inline void arch_memcpy_streaming(void *dst, const void *src,
						  size_t n)
{
	memcpy_flushcache(dst, src, n);
}

/* In address order: the CPU gathers the eight stores into one line. */
static __always_inline void arch_memfill_store(void *dst, u64 w0, u64 w1,
					       u64 w2, u64 w3, u64 w4, u64 w5,
					       u64 w6, u64 w7)
{
	asm volatile("movnti %[w0],   (%[dst])\n\t"
		     "movnti %[w1],  8(%[dst])\n\t"
		     "movnti %[w2], 16(%[dst])\n\t"
		     "movnti %[w3], 24(%[dst])\n\t"
		     "movnti %[w4], 32(%[dst])\n\t"
		     "movnti %[w5], 40(%[dst])\n\t"
		     "movnti %[w6], 48(%[dst])\n\t"
		     "movnti %[w7], 56(%[dst])"
		     : : [dst] "r" (dst),
			 [w0] "r" (w0), [w1] "r" (w1),
			 [w2] "r" (w2), [w3] "r" (w3),
			 [w4] "r" (w4), [w5] "r" (w5),
			 [w6] "r" (w6), [w7] "r" (w7)
		     : "memory");
}

static __always_inline void arch_memcpy_streaming_drain(void)
{
	/* sfence: streaming stores are weakly ordered, against each other too. */
	wmb();
}

#else
#include <asm-generic/memcpy_streaming.h>
#endif

#endif /* _ASM_X86_MEMCPY_STREAMING_H */
