/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For architectures without streaming stores of their own: ordinary stores,
 * which need no drain.
 */
#ifndef _ASM_GENERIC_MEMFILL_STREAMING_H
#define _ASM_GENERIC_MEMFILL_STREAMING_H

#define arch_memfill_store	memfill_store

static __always_inline void arch_memfill_drain(void)
{
}

#endif /* _ASM_GENERIC_MEMFILL_STREAMING_H */
