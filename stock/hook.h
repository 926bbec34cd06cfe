/* SPDX-License-Identifier: GPL-2.0 */
/* Redirects the calls of memmap_init_zone_device() to this module. */
#ifndef _PAGEMINT_HOOK_H
#define _PAGEMINT_HOOK_H

#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/static_call.h>

/* The kernel's own code: the function behind its fentry, by a direct call, which IBT permits. */
DECLARE_STATIC_CALL(pagemint_original, memmap_init_zone_device);

/*
 * add_hook() - begin to redirect calls
 * @instead: runs instead of the function
 *
 * Return: 0, or an error, which the log explains.
 */
int add_hook(typeof(memmap_init_zone_device) *instead);

/* remove_hook() - stop redirecting calls, and wait for those under way */
void remove_hook(void);

#endif /* _PAGEMINT_HOOK_H */
