/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of the glue share. */
#ifndef PAGEMINT_GLUE_H
#define PAGEMINT_GLUE_H

#include <linux/mmzone.h>

#include "native.h"

#define native_pgdat	((struct pglist_data *)NATIVE_PGDAT)

void native_sections(unsigned long pfn, unsigned long end_pfn, unsigned long map);

#endif
