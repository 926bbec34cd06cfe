/* SPDX-License-Identifier: GPL-2.0-only */
#define wmb() asm volatile("sfence" ::: "memory")
