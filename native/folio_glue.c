// SPDX-License-Identifier: GPL-2.0-only
/* The kernel half of what copies folios. */
#include <linux/bitfield.h>
#include <linux/extable.h>
#include <linux/jump_label.h>
#include <linux/mm.h>

#include <asm/mce.h>

#include "native.h"

int native_copy_folios(const struct native_copy *c);
void native_fragile(int active);
void native_skew(unsigned long bytes);
unsigned long native_fixup(const struct native_tables *t, unsigned long ip);

/* Has a return to the task restore what FPU sections have saved; see fpu.c. */
void native_return(void);

unsigned long page_offset_base = NATIVE_DIRECT;

static int fragile;

/* enable_copy_mc_fragile() has this done to the key that nobody else sees. */
bool static_key_slow_inc(struct static_key *key)
{
	atomic_set(&key->enabled, fragile);
	return true;
}

/* Have copy_mc_fragile() chosen or not; comes before the branches are patched. */
void native_fragile(int active)
{
	fragile = active;
	enable_copy_mc_fragile();
}

/* Move all memory by some bytes, so that its pages begin inside those of the host. */
void native_skew(unsigned long bytes)
{
	page_offset_base = NATIVE_DIRECT + bytes;
}

/*
 * Returns what folio_mc_copy() says of the first folio that it cannot copy. Each
 * folio has an entry to the kernel of its own.
 */
int native_copy_folios(const struct native_copy *c)
{
	struct folio *to, *from;
	unsigned long i;
	int err;

	for (i = 0; i < c->nr; i++) {
		to = pfn_folio(c->to + (native_target(i, c->nr) << c->order));
		from = pfn_folio(c->from + (native_source(i, c->nr) << c->order));
		err = 0;
		if (c->mc)
			err = folio_mc_copy(to, from);
		else
			folio_copy(to, from);
		native_return();
		if (err)
			return err;
	}
	return 0;
}

/* Where to go on after a fault at @ip, as the exception table has it, or 0. */
unsigned long native_fixup(const struct native_tables *t, unsigned long ip)
{
	const struct exception_table_entry *e;
	int type;

	for (e = t->ex; e < (struct exception_table_entry *)t->ex_end; e++) {
		type = FIELD_GET(EX_DATA_TYPE_MASK, e->data);
		if ((unsigned long)&e->insn + e->insn == ip &&
		    (type == EX_TYPE_DEFAULT || type == EX_TYPE_DEFAULT_MCE_SAFE))
			return (unsigned long)&e->fixup + e->fixup;
	}
	return 0;
}
