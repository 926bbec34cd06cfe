/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables of a tree, as the link provides them; a tree may lack any of them. */
#ifndef PAGEMINT_PATCH_H
#define PAGEMINT_PATCH_H

#include <linux/compiler.h>
#include <linux/jump_label.h>

#include <asm/alternative.h>
#include <asm/extable.h>

#include "native.h"

/* The link renames each section, and the symbols of its start and end. */
#define NATIVE_TABLE(type, name)	extern type name[] __weak, name##_end[] __weak

NATIVE_TABLE(struct alt_instr, native_alt);
NATIVE_TABLE(struct jump_entry, native_jump);
NATIVE_TABLE(unsigned long, native_mcount);
NATIVE_TABLE(struct exception_table_entry, native_ex);
NATIVE_TABLE(const struct native_command, native_commands);
typedef void (*const native_boot_fn)(struct native_request *r);
NATIVE_TABLE(native_boot_fn, native_boots);

unsigned long native_branch_key(unsigned long ip);
void native_patch(struct native_request *r, const unsigned long *sites, unsigned long nr);

#endif
