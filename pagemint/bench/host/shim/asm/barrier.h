/* SPDX-License-Identifier: GPL-2.0-only */
#ifdef __x86_64__
#define wmb() asm volatile("sfence" ::: "memory")
#else
#define smp_wmb() asm volatile("dmb ishst" ::: "memory")
#endif
