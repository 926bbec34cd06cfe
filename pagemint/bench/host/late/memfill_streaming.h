/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces the header of x86: streaming stores that land late; see host/late.c. */
#ifndef _ASM_X86_MEMFILL_STREAMING_H
#define _ASM_X86_MEMFILL_STREAMING_H

#include <linux/types.h>

void native_late_store(void *dst, const u64 *words);
void native_late_drain(void);

static __always_inline void arch_memfill_store(void *dst, u64 w0, u64 w1,
					       u64 w2, u64 w3, u64 w4, u64 w5,
					       u64 w6, u64 w7)
{
	const u64 words[] = { w0, w1, w2, w3, w4, w5, w6, w7 };

	native_late_store(dst, words);
}

static __always_inline void arch_memfill_drain(void)
{
	native_late_drain();
}

#endif
