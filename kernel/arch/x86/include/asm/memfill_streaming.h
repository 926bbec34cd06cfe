/* SPDX-License-Identifier: GPL-2.0 */
/*
 * MOVNTI from general registers: eight of them fill a cache line as fast as one
 * AVX-512 streaming store does, without an FPU section.
 */
#ifndef _ASM_X86_MEMFILL_STREAMING_H
#define _ASM_X86_MEMFILL_STREAMING_H

/* KMSAN would take memory that assembly has written for uninitialised. */
#if defined(CONFIG_X86_64) && !defined(CONFIG_KMSAN)

#include <linux/types.h>

#include <asm/barrier.h>

/* In address order, so that the CPU combines the stores into one line. */
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

static __always_inline void arch_memfill_drain(void)
{
	/* SFENCE: streaming stores are weakly ordered, even among themselves. */
	wmb();
}

#else
#include <asm-generic/memfill_streaming.h>
#endif

#endif /* _ASM_X86_MEMFILL_STREAMING_H */
