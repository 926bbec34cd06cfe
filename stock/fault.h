/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults for tests, in a module built with FAULT=1. The parameter fault names
 * the step that fails.
 */
#ifndef _PAGEMINT_FAULT_H
#define _PAGEMINT_FAULT_H

#include <linux/types.h>

#ifdef PAGEMINT_FAULT
bool fault_at(const char *where);
#else
static inline bool fault_at(const char *where)
{
	return false;
}
#endif

#endif /* _PAGEMINT_FAULT_H */
