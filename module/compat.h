/* SPDX-License-Identifier: GPL-2.0 */
/* Names that kernels from 6.1 to 7.2 do not share. */
#ifndef _PAGEMINT_COMPAT_H
#define _PAGEMINT_COMPAT_H

#include <linux/ftrace.h>
#include <linux/mm.h>

#ifdef ftrace_instruction_pointer_set	/* up to 6.2 */
#define ftrace_regs_set_instruction_pointer ftrace_instruction_pointer_set
#endif

#endif /* _PAGEMINT_COMPAT_H */
