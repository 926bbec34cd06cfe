// SPDX-License-Identifier: GPL-2.0-only
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "fault.h"

static char fault[16];
module_param_string(fault, fault, sizeof(fault), 0644);
MODULE_PARM_DESC(fault, "fault to plant; the calls of fault_at() name them");

bool fault_at(const char *where)
{
	return sysfs_streq(fault, where);
}
