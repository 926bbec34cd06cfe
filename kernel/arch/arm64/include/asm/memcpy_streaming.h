/* SPDX-License-Identifier: GPL-2.0 */
/*
 * STNP, store non-temporal pair, from general registers. It is a hint: a CPU
 * may treat it as it treats STP.
 */
#ifndef __ASM_MEMCPY_STREAMING_H
#define __ASM_MEMCPY_STREAMING_H

#include <linux/types.h>
#include <linux/unaligned.h>

#include <asm/barrier.h>

/* Of a number of words that is odd the last is a pair of half words. */
static __always_inline void arch_memcpy_streaming(void *dst, const void *src,
						  size_t n)
{
	for (; n >= 16; n -= 16, dst += 16, src += 16)
		asm volatile("stnp %x[w0], %x[w1], [%[dst]]"
			     : : [dst] "r" (dst),
				 [w0] "r" (get_unaligned((const u64 *)src)),
				 [w1] "r" (get_unaligned((const u64 *)src + 1))
			     : "memory");
	if (n)
		asm volatile("stnp %w[h0], %w[h1], [%[dst]]"
			     : : [dst] "r" (dst),
				 [h0] "r" (get_unaligned((const u32 *)src)),
				 [h1] "r" (get_unaligned((const u32 *)src + 1))
			     : "memory");
}

/* In address order, so that a CPU that gathers stores finds a whole line. */
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
 * The writes of STNP are ordered like those of STP. The one exception that the
 * architecture makes for non-temporal pairs is about reads: an address
 * dependency does not order an LDNP after the read that its address comes
 * from. Nothing is read with LDNP here. So a later Store-Release, and thus
 * spin_unlock(), orders these writes by itself, as does any DMB for stores;
 * and a task that is preempted and goes on elsewhere needs no more than it
 * needs for its other writes.
 *
 * DMB ISHST has them observed before the plain stores that follow, too, by all
 * observers in the Inner Shareable domain. So the drain promises here what it
 * does on x86. It orders them and does not wait until they are complete, for
 * which it would have to be a DSB.
 */
static __always_inline void arch_memcpy_streaming_drain(void)
{
	smp_wmb(); /* DMB ISHST, see above */
}

#endif /* __ASM_MEMCPY_STREAMING_H */
