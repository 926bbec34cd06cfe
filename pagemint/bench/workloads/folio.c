// SPDX-License-Identifier: GPL-2.0-only
/* Copies of folios, with the kernel's functions. */
#include <linux/jump_label.h>
#include <linux/mm.h>

#include <asm/mce.h>

#include "glue.h"

NATIVE_OBJECTS("mm/util.o", "mm/memory.o", "arch/x86/lib/copy_mc.o", "arch/x86/lib/copy_mc_64.o",
	       "arch/x86/lib/copy_page_64.o", "arch/x86/lib/memcpy_64.o",
	       "arch/x86/lib/usercopy_64.o");

static int fragile;

/* enable_copy_mc_fragile() calls this; its key is static in its file. */
bool static_key_slow_inc(struct static_key *key)
{
	atomic_set(&key->enabled, fragile);
	return true;
}

/* patch [fragile=]: fragile=1 makes copies that survive machine checks use copy_mc_fragile(). */
static void native_fragile(struct native_request *r)
{
	fragile = native_number_or(r, "fragile", 0);
	enable_copy_mc_fragile();
}
NATIVE_BOOT(native_fragile);

/* skew tree= bytes=: moves the start of all pages up by BYTES bytes in their memory. */
NATIVE_COMMAND(skew)
{
	page_offset_base = NATIVE_DIRECT + native_number(r, "bytes");
}

static int copy_folio(struct folio *to, struct folio *from, unsigned int order)
{
	folio_copy(to, from);
	return 0;
}

static int copy_mc(struct folio *to, struct folio *from, unsigned int order)
{
	return folio_mc_copy(to, from);
}

/* The faulting address is in a different page of each folio. x86 ignores the VMA. */
static int copy_user(struct folio *to, struct folio *from, unsigned int order)
{
	unsigned long nr = folio_pfn(to) >> order;
	unsigned long page = (nr * 37 + 11) & ((1UL << order) - 1);

	return copy_user_large_folio(to, from, ((nr << order) + page) * PAGE_SIZE, NULL);
}

static const char *const function_names[] = {
	"folio_copy", "folio_mc_copy", "copy_user_large_folio",
};

static int (*const functions[])(struct folio *to, struct folio *from, unsigned int order) = {
	copy_folio, copy_mc, copy_user,
};

/*
 * copy tree= function= order= folios= to= from= [early=]: copies folios, which
 * the command init has made, from PFN FROM to PFN TO. The first fast string that
 * faults stops EARLY bytes early. Answers ns=, error= (of the first folio that
 * cannot be copied), queued= (number of pages queued as poisoned), first= (the PFN
 * of the first of them) and faults=.
 */
NATIVE_COMMAND(copy)
{
	unsigned long to = native_number(r, "to"), from = native_number(r, "from");
	unsigned long i, nr = native_number(r, "folios");
	unsigned int order = native_number(r, "order");
	struct native_poisoned *poisoned = native_poisoned();
	unsigned int which;
	int error = 0;
	long begun;

	which = native_choice(r, "function", function_names, ARRAY_SIZE(function_names));
	native_need_memory(r, to, nr << order);
	native_need_memory(r, from, nr << order);
	native_expect_faults(native_number_or(r, "early", 0));
	memset(poisoned, 0, sizeof(*poisoned));
	begun = native_now();
	for (i = 0; i < nr && !error; i++)
		error = functions[which](pfn_folio(to + (native_target(i, nr) << order)),
					 pfn_folio(from + (native_source(i, nr) << order)),
					 order);
	native_answer(r, "ns", native_now() - begun);
	native_answer(r, "error", error);
	native_answer(r, "queued", poisoned->nr);
	native_answer(r, "first", poisoned->first_pfn);
	native_answer(r, "faults", native_faults());
}
