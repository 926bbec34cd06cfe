/* SPDX-License-Identifier: GPL-2.0 */
/* Names that kernels from 6.1 to 7.3 do not share. */
#ifndef _PAGEMINT_COMPAT_H
#define _PAGEMINT_COMPAT_H

#include <linux/ftrace.h>
#include <linux/mm.h>

#ifdef ftrace_instruction_pointer_set	/* 6.1 */
#define ftrace_regs_set_instruction_pointer ftrace_instruction_pointer_set
#endif

#ifndef VMEMMAP_RESERVE_NR	/* before 6.1.20 or so */
#define VMEMMAP_RESERVE_NR 2
#define vmemmap_can_optimize(altmap, pgmap) ((void)(pgmap), !(altmap))
#endif

#endif /* _PAGEMINT_COMPAT_H */
