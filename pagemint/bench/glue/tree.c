// SPDX-License-Identifier: GPL-2.0-only
/*
 * Describes a tree to the plain half, and provides the parts of mm that all
 * workloads need: sections, pageblocks, the page_ref_set event.
 */
#include <linux/bitfield.h>
#include <linux/extable.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/tracepoint-defs.h>

#include "glue.h"
#include "patch.h"

#define NATIVE_BLOCKS_SIZE	(PAGES_PER_SECTION / pageblock_nr_pages * NR_PAGEBLOCK_BITS / 8)
#define NATIVE_SECTIONS		DIV_ROUND_UP(1UL << (44 - PAGE_SHIFT), PAGES_PER_SECTION)

/* Bits of a pageblock, in the form that the command blocks reports. */
#define NATIVE_MIGRATETYPE	0x07
#define NATIVE_ISOLATED		0x10

unsigned long native_events;

unsigned long vmemmap_base = NATIVE_VMEMMAP;
unsigned long page_offset_base = NATIVE_DIRECT;
unsigned long __highest_present_section_nr = NATIVE_SECTIONS - 1;
struct mem_section **mem_section;

static unsigned long begun_pfn, begun_end;

/* The section of a PFN; its first use allocates it, with its pageblocks and all subsections. */
static struct mem_section *native_section(unsigned long pfn)
{
	unsigned long nr = pfn_to_section_nr(pfn);
	unsigned long root = SECTION_NR_TO_ROOT(nr);
	struct mem_section *ms;

	if (!mem_section)
		mem_section = native_alloc(SECTION_NR_TO_ROOT(NATIVE_SECTIONS) *
					   sizeof(*mem_section));
	if (!mem_section[root])
		mem_section[root] = native_alloc(SECTIONS_PER_ROOT *
						 sizeof(**mem_section));
	ms = &mem_section[root][nr & SECTION_ROOT_MASK];
	if (!ms->usage) {
		ms->usage = native_alloc(sizeof(*ms->usage) + NATIVE_BLOCKS_SIZE);
		memset(ms->usage->subsection_map, 0xff, sizeof(ms->usage->subsection_map));
	}
	return ms;
}

void native_begin(unsigned long pfn, unsigned long nr_pages, unsigned long map)
{
	struct mem_section *ms;
	unsigned long p;

	begun_pfn = pageblock_start_pfn(pfn);
	begun_end = pfn + nr_pages;
	native_events = 0;
	for (p = ALIGN_DOWN(pfn, PAGES_PER_SECTION); p <= begun_end; p += PAGES_PER_SECTION) {
		ms = native_section(p);
		ms->section_mem_map = map;
		memset(ms->usage->pageblock_flags, 0, NATIVE_BLOCKS_SIZE);
	}
}

/* The bits of a pageblock; on 6.12 half as many. */
static unsigned int native_block(unsigned long pfn)
{
	const u8 *bits = (const u8 *)native_section(pfn)->usage->pageblock_flags;
	unsigned int at = ((pfn % PAGES_PER_SECTION) >> pageblock_order) * NR_PAGEBLOCK_BITS;
	unsigned int block = bits[at / 8] >> at % 8 & (BIT(NR_PAGEBLOCK_BITS) - 1);

#ifdef PB_migratetype_bits
	BUILD_BUG_ON(MIGRATETYPE_MASK != NATIVE_MIGRATETYPE);
	/* On 6.12, isolated is a migratetype; online_pages() makes it movable in the end. */
	if ((block & MIGRATETYPE_MASK) == MIGRATE_ISOLATE)
		block = MIGRATE_MOVABLE | NATIVE_ISOLATED;
#else
	BUILD_BUG_ON(PAGEBLOCK_MIGRATETYPE_MASK != NATIVE_MIGRATETYPE);
	BUILD_BUG_ON(BIT(PB_migrate_isolate) != NATIVE_ISOLATED);
#endif
	return block;
}

/*
 * blocks tree=: answers block=PFN:MIGRATETYPE:ISOLATED for each pageblock of the
 * last run.
 */
NATIVE_COMMAND(blocks)
{
	unsigned int bits;

	for (unsigned long pfn = begun_pfn; pfn < begun_end; pfn += pageblock_nr_pages) {
		bits = native_block(pfn);
		if (bits) {
			long block[] = { pfn, bits & NATIVE_MIGRATETYPE,
					 !!(bits & NATIVE_ISOLATED) };

			native_answer_item(r, "block", block, ARRAY_SIZE(block));
		}
	}
}

/* The fixup for @ip in the exception table, or 0. */
static unsigned long native_fixup(unsigned long ip)
{
	const struct exception_table_entry *e;
	int type;

	for (e = native_ex; e < native_ex_end; e++) {
		type = FIELD_GET(EX_DATA_TYPE_MASK, e->data);
		if ((unsigned long)&e->insn + e->insn == ip &&
		    (type == EX_TYPE_DEFAULT || type == EX_TYPE_DEFAULT_MCE_SAFE))
			return (unsigned long)&e->fixup + e->fixup;
	}
	return 0;
}

#ifdef CONFIG_DEBUG_PAGE_REF
struct tracepoint __tracepoint_page_ref_set;

void __page_ref_set(struct page *page, int v);
void __page_ref_set(struct page *page, int v)
{
	native_events++;
}
#endif

/* patch [events=]: events=1 activates the page_ref_set event. */
static void native_trace(struct native_request *r)
{
	int active = native_number_or(r, "events", 0);

#ifdef CONFIG_DEBUG_PAGE_REF
	/* The key is a static_key on 6.12; on later lines its first member is one. */
	((struct static_key *)&__tracepoint_page_ref_set.key)->enabled.counter = active;
#else
	if (active)
		native_refuse(r, "has no events in this configuration");
#endif
}
NATIVE_BOOT(native_trace);

/* Absent where the tree has no modes. */
int __weak memmap_init_mode_set(const char *name);
int __weak memmap_init_mode_get(void);

/* mode tree= name=: does the same as memmap_init=NAME. Answers was=, the mode before. */
NATIVE_COMMAND(mode)
{
	const char *name = native_word(r, "name");
	int was = memmap_init_mode_get ? memmap_init_mode_get() : 0;

	if (!memmap_init_mode_set || memmap_init_mode_set(name))
		native_refuse(r, "does not know this mode");
	native_answer(r, "was", was);
}

/* has_mode tree= name=: answers has=1 if the tree has the mode, else has=0. Chooses it. */
NATIVE_COMMAND(has_mode)
{
	const char *name = native_word(r, "name");

	native_answer(r, "has", memmap_init_mode_set && !memmap_init_mode_set(name));
}

/* The link defines it, so that trees with the same code can have the same objects. */
extern const char native_tree_name[];

static const struct native_tree native_tree
__used __section("native_trees") = {
	.name = native_tree_name,
	.page_size = sizeof(struct page),
	.commands = native_commands,
	.commands_end = native_commands_end,
	.patch = native_patch,
	.fixup = native_fixup,
	.branch_key = native_branch_key,
};
