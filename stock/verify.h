/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PAGEMINT_VERIFY_H
#define _PAGEMINT_VERIFY_H

#include "fill.h"

/**
 * verify_memmap() - compare a filled memmap with what the kernel's own code writes
 * @fill: the memmap; it is left as the kernel's own code writes it
 * @differences: struct pages that differ are added to it
 *
 * Return: pages whose struct pages were compared, shared ones among them; none if there is no
 *	memory for a copy of a compound's pages.
 */
unsigned long verify_memmap(struct fill *fill, unsigned long *differences);

#endif /* _PAGEMINT_VERIFY_H */
