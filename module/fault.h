/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults for tests, in a module built with FAULT=1. The parameter fault names
 * the step that fails.
 */
#ifndef _PAGEMINT_FAULT_H
#define _PAGEMINT_FAULT_H

#ifdef PAGEMINT_FAULT
#include <linux/delay.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

static char fault[16];
module_param_string(fault, fault, sizeof(fault), 0644);
MODULE_PARM_DESC(fault, "step that fails: function, entry, filter, hook, registered, mismatch, slow");

static inline bool fault_at(const char *where)
{
	return sysfs_streq(fault, where);
}

static inline void fault_delay(void)
{
	if (fault_at("slow"))
		msleep(1000);
}
#else
static inline bool fault_at(const char *where)
{
	return false;
}

static inline void fault_delay(void)
{
}
#endif

#endif /* _PAGEMINT_FAULT_H */
