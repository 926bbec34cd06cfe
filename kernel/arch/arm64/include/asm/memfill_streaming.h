/* SPDX-License-Identifier: GPL-2.0 */
/*
 * STNP, store non-temporal pair, from general registers. It is a hint: a CPU
 * may treat it like STP.
 */
#ifndef __ASM_MEMFILL_STREAMING_H
#define __ASM_MEMFILL_STREAMING_H

#include <linux/types.h>

#include <asm/barrier.h>

/* In address order, so that a CPU can combine the stores into one line. */
static __always_inline void arch_memfill_store(void *dst, u64 w0, u64 w1,
					       u64 w2, u64 w3, u64 w4, u64 w5,
					       u64 w6, u64 w7)
{
	asm volatile("stnp %x[w0], %x[w1], [%[dst]]\n\t"
		     "stnp %x[w2], %x[w3], [%[dst], #16]\n\t"
		     "stnp %x[w4], %x[w5], [%[dst], #32]\n\t"
		     "stnp %x[w6], %x[w7], [%[dst], #48]"
		     : : [dst] "r" (dst),
			 [w0] "r" (w0), [w1] "r" (w1),
			 [w2] "r" (w2), [w3] "r" (w3),
			 [w4] "r" (w4), [w5] "r" (w5),
			 [w6] "r" (w6), [w7] "r" (w7)
		     : "memory");
}

/*
 * The architecture orders the writes of STNP like those of STP. Its one
 * exception for non-temporal pairs is about reads: an address dependency does
 * not order LDNP after the read that its address comes from. So any later
 * Store-Release, such as spin_unlock(), orders these writes by itself.
 *
 * The drain promises what it promises on x86: later plain stores are observed
 * after them. It does not wait until they are complete; that would take a DSB.
 */
static __always_inline void arch_memfill_drain(void)
{
	smp_wmb(); /* DMB ISHST */
}

#endif /* __ASM_MEMFILL_STREAMING_H */
