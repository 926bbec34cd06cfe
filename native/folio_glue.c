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

/* Faults at another page of each folio. x86 does not look at the VMA. */
static int native_copy_user(struct folio *to, struct folio *from, unsigned int order)
{
	unsigned long nr = folio_pfn(to) >> order;
	unsigned long page = (nr * 37 + 11) & ((1UL << order) - 1);

	return copy_user_large_folio(to, from, ((nr << order) + page) * PAGE_SIZE, NULL);
}

/* Returns the error of the first folio that cannot be copied. */
int native_copy_folios(const struct native_copy *c)
{
	struct folio *to, *from;
	unsigned long i;
	int err = 0;

	for (i = 0; i < c->nr && !err; i++) {
		to = pfn_folio(c->to + (native_target(i, c->nr) << c->order));
		from = pfn_folio(c->from + (native_source(i, c->nr) << c->order));
		switch (c->by) {
		case NATIVE_FOLIO_COPY:
			folio_copy(to, from);
			break;
		case NATIVE_FOLIO_MC_COPY:
			err = folio_mc_copy(to, from);
			break;
		case NATIVE_COPY_USER_LARGE_FOLIO:
			err = native_copy_user(to, from, c->order);
		}
	}
	return err;
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
