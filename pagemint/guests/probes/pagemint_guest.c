// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times and hashes memmaps, in a guest or on a bare machine. Files in debugfs,
 * under pagemint:
 *
 *   last     the last memmap that was initialised: nanoseconds, first PFN, pages
 *   hash     a hash over the struct pages and pageblock bits that it left
 *   refs     the number of references to these pages
 *   private  write a number of bytes: call memremap_pages() for that much
 *            device-private memory, or device-coherent memory if the kernel
 *            lacks private; write 0: unmap it. Its sections can share a memmap
 *   folios   write a number: make as many folios of 2 MiB at the start of that
 *            memory; write 0: drop them (Linux 7.2 and later)
 *   soil     write a number of bytes: fill so much memory with a pattern, and free
 *            it; a memmap then gets some of it, if it takes blocks of 2 MiB
 *   scan     counts the words of the struct pages of scan_pages pages from scan_pfn
 *            that are mapped, and those of them that have the pattern
 *   states   a line for each run of these pages in the same state: their number, the
 *            references to each, its type ("absent" if it is not online), its flags
 *   zones    a line for each zone with memory: its node, its name, whether the
 *            kernel takes it to be contiguous, and whether it has no holes
 *   allocate write a number: allocate so many blocks of allocate_order pages beside
 *            those that are allocated already; write 0: free all of them
 *   latency  cycles of an allocation of the last write: median, 99th percentile, most
 *   stray    write a PFN: read its struct page, whether the page is online or not
 *   replug   write the first PFN of a memory block: remove the block, and add it again
 *
 * Works on kernels with and without the series.
 */
#include <linux/debugfs.h>
#include <linux/ioport.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pageblock-flags.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/timex.h>
#include <linux/uaccess.h>
#include <linux/version.h>

/* The range that was initialised last. */
static struct {
	u64 ns;
	unsigned long start_pfn;
	unsigned long nr_pages;
	struct dev_pagemap *pgmap;
} last;

struct call {
	ktime_t start;
	unsigned long start_pfn;
	unsigned long nr_pages;
	struct dev_pagemap *pgmap;
};

/* Initialising struct pages took so long since memremap_pages() was called. */
static u64 bind_ns;

static int call_enter(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct call *call = (struct call *)ri->data;

	call->start_pfn = regs_get_kernel_argument(regs, 1);
	call->nr_pages = regs_get_kernel_argument(regs, 2);
	call->pgmap = (struct dev_pagemap *)regs_get_kernel_argument(regs, 3);
	call->start = ktime_get();
	return 0;
}

static int call_leave(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	const struct call *call = (struct call *)ri->data;
	struct vmem_altmap *altmap = pgmap_altmap(call->pgmap);

	last.ns = ktime_to_ns(ktime_sub(ktime_get(), call->start));
	bind_ns += last.ns;
	last.pgmap = call->pgmap;
	last.start_pfn = call->start_pfn;
	/* The pages of the altmap were not initialised. */
	if (altmap)
		last.start_pfn = altmap->base_pfn + altmap->reserve + altmap->free;
	last.nr_pages = call->start_pfn + call->nr_pages - last.start_pfn;
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "memmap_init_zone_device",
	.entry_handler = call_enter,
	.handler = call_leave,
	.data_size = sizeof(struct call),
	.maxactive = 4,
};

#ifdef CONFIG_MEMMAP_SHARED
static int shared_leave(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	const struct call *call = (struct call *)ri->data;

	bind_ns += ktime_to_ns(ktime_sub(ktime_get(), call->start));
	return 0;
}

/* Initialises the struct pages that sections share. */
static struct kretprobe shared_probe = {
	.kp.symbol_name = "memmap_shared_begin",
	.entry_handler = call_enter,
	.handler = shared_leave,
	.data_size = sizeof(struct call),
	.maxactive = 4,
};

static int bind_enter(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct call *call = (struct call *)ri->data;

	call->pgmap = (struct dev_pagemap *)regs_get_kernel_argument(regs, 0);
	bind_ns = 0;
	return 0;
}

/* The probe of memmap_init_zone_device() has seen no section that shares. */
static int bind_leave(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct dev_pagemap *pgmap = ((struct call *)ri->data)->pgmap;
	const struct vmem_altmap *altmap = pgmap_altmap(pgmap);

	if (!pgmap->shared_block)
		return 0;
	last.ns = bind_ns;
	last.pgmap = pgmap;
	last.start_pfn = PHYS_PFN(pgmap->range.start);
	if (altmap)
		last.start_pfn = altmap->base_pfn + altmap->reserve + altmap->free;
	last.nr_pages = PHYS_PFN(pgmap->range.end + 1) - last.start_pfn;
	return 0;
}

static struct kretprobe bind_probe = {
	.kp.symbol_name = "memremap_pages",
	.entry_handler = bind_enter,
	.handler = bind_leave,
	.data_size = sizeof(struct call),
	.maxactive = 4,
};
#endif /* CONFIG_MEMMAP_SHARED */

/* The series defines the flag on every architecture, also where nothing can share. */
#ifdef PGMAP_SHARED_MEMMAP
static void permit_sharing(struct dev_pagemap *pgmap)
{
	pgmap->flags |= PGMAP_SHARED_MEMMAP;
}
#else
static inline int pgmap_populate_memmap(struct dev_pagemap *pgmap,
					unsigned long pfn, unsigned long nr_pages,
					gfp_t gfp)
{
	return 0;
}

static void permit_sharing(struct dev_pagemap *pgmap)
{
}
#endif

static struct kretprobe *probes[] = {
	&probe,
#ifdef CONFIG_MEMMAP_SHARED
	&shared_probe,
	&bind_probe,
#endif
};

static u64 hash_word(u64 hash, u64 value)
{
	hash = (hash ^ value) * 0x100000001b3;
	return hash ^ (hash >> 29);
}

static u64 hash_pageblock(u64 hash, unsigned long pfn)
{
	const unsigned long *bits = __pfn_to_section(pfn)->usage->pageblock_flags;
	unsigned long first = (pfn % PAGES_PER_SECTION >> pageblock_order) * NR_PAGEBLOCK_BITS;
	unsigned int i;

	for (i = 0; i < NR_PAGEBLOCK_BITS; i++)
		hash = hash_word(hash, test_bit(first + i, bits));
	return hash;
}

/* The word of a struct page that has the reference count, and a reference there. */
#define REFS_WORD	(offsetof(struct page, _refcount) / sizeof(u64))
#define REFS_ONE	(1ULL << offsetof(struct page, _refcount) % sizeof(u64) * 8)

/*
 * Addresses legitimately differ from boot to boot. So the hash takes a fixed
 * number for the dev_pagemap, and the distance for a pointer into the memmap.
 * The head of an empty list points to itself, and counts as 0, which a list that
 * nobody uses is in a memmap that sections share.
 *
 * The topic devdax gives devdax a memory type whose free pages have no reference.
 * Those of MEMORY_DEVICE_GENERIC have one, which the hash leaves out.
 */
static u64 hash_last(void)
{
	const unsigned long low = (unsigned long)pfn_to_page(last.start_pfn);
	const unsigned long high = (unsigned long)pfn_to_page(last.start_pfn + last.nr_pages);
	const bool generic = last.pgmap->type == MEMORY_DEVICE_GENERIC;
	u64 hash = 0xcbf29ce484222325;
	unsigned long i, w;

	for (i = 0; i < last.nr_pages; i++) {
		const u64 *word = (const u64 *)pfn_to_page(last.start_pfn + i);

		for (w = 0; w < sizeof(struct page) / sizeof(u64); w++) {
			u64 value = word[w];

			if (value == (unsigned long)last.pgmap)
				value = 1;
			else if (value == (unsigned long)(word + w) ||
				 value == (unsigned long)(word + w - 1))
				value = 0;
			else if (value >= low && value < high)
				value -= (unsigned long)word;
			else if (generic && w == REFS_WORD &&
				 page_ref_count((const struct page *)word) == 1)
				value -= REFS_ONE;
			hash = hash_word(hash, value);
		}
		if (pageblock_aligned(last.start_pfn + i))
			hash = hash_pageblock(hash, last.start_pfn + i);
		if (i % PAGES_PER_SECTION == 0)
			cond_resched();
	}
	return hash;
}

static int last_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "%llu %lu %lu\n", last.ns, last.start_pfn, last.nr_pages);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(last);

static int hash_show(struct seq_file *m, void *unused)
{
	if (!last.nr_pages || !pfn_valid(last.start_pfn))
		return -ENODEV;
	seq_printf(m, "%016llx\n", hash_last());
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(hash);

static int refs_get(void *data, u64 *refs)
{
	unsigned long i;

	*refs = 0;
	for (i = 0; i < last.nr_pages; i++)
		*refs += page_ref_count(pfn_to_page(last.start_pfn + i));
	return 0;
}
DEFINE_SIMPLE_ATTRIBUTE(refs_fops, refs_get, NULL, "%llu\n");

/* A byte. */
enum { SOIL = 0xa5 };

static int soil_set(void *data, u64 size)
{
	const unsigned int order = get_order(PMD_SIZE);
	struct page *page, *next;
	LIST_HEAD(blocks);

	for (; size >= PMD_SIZE; size -= PMD_SIZE) {
		page = alloc_pages(GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN, order);
		if (!page)
			break;
		memset(page_address(page), SOIL, PMD_SIZE);
		list_add(&page->lru, &blocks);
	}
	list_for_each_entry_safe(page, next, &blocks, lru)
		__free_pages(page, order);
	return 0;
}
DEFINE_SIMPLE_ATTRIBUTE(soil_fops, NULL, soil_set, "%llu\n");

static u64 scan_pfn, scan_pages;

static int scan_show(struct seq_file *m, void *unused)
{
	const u64 *end = (const u64 *)pfn_to_page(scan_pfn + scan_pages);
	const u64 *word = (const u64 *)pfn_to_page(scan_pfn);
	unsigned long mapped = 0, found = 0;
	u64 value;

	while (word < end) {
		if (PAGE_ALIGNED(word))
			cond_resched();
		if (copy_from_kernel_nofault(&value, word, sizeof(value))) {
			word = PTR_ALIGN(word + 1, PAGE_SIZE);
			continue;
		}
		mapped++;
		found += value == SOIL * 0x0101010101010101ULL;
		word++;
	}
	seq_printf(m, "%lu %lu\n", mapped, found);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(scan);

/* The state of a page, in which a run of pages agrees. */
struct state {
	const char *type;
	unsigned long flags;
	int refs;
};

static struct state state_of(unsigned long pfn)
{
	struct page *page = pfn_to_online_page(pfn);
	struct state state = { .type = "absent" };

	if (!page)
		return state;
	state.refs = page_ref_count(page);
	state.flags = *(unsigned long *)&page->flags & (BIT(NR_PAGEFLAGS) - 1);
	state.type = PageBuddy(page) ? "buddy" : PageOffline(page) ? "offline" :
		     page_has_type(page) ? "other" : "none";
	return state;
}

static int states_show(struct seq_file *m, void *unused)
{
	unsigned long pfn, nr, end = scan_pfn + scan_pages;

	for (pfn = scan_pfn; pfn < end; pfn += nr) {
		const struct state state = state_of(pfn);

		for (nr = 1; pfn + nr < end; nr++) {
			const struct state next = state_of(pfn + nr);

			if (next.type != state.type || next.flags != state.flags ||
			    next.refs != state.refs)
				break;
		}
		seq_printf(m, "%lu %d %s %lx\n", nr, state.refs, state.type, state.flags);
		cond_resched();
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(states);

/* Whether each pageblock is online and begins and ends in the zone. */
static bool zone_is_whole(const struct zone *zone)
{
	unsigned long pfn, next;

	for (pfn = zone->zone_start_pfn; pfn < zone_end_pfn(zone); pfn = next) {
		const struct page *first = pfn_to_online_page(pfn);

		next = min(pageblock_end_pfn(pfn), zone_end_pfn(zone));
		if (!first || page_zone(first) != zone ||
		    page_zone(pfn_to_page(next - 1)) != zone)
			return false;
		cond_resched();
	}
	return true;
}

static int zones_show(struct seq_file *m, void *unused)
{
	int nid, i;

	for_each_online_node(nid) {
		for (i = 0; i < MAX_NR_ZONES; i++) {
			const struct zone *zone = &NODE_DATA(nid)->node_zones[i];

			if (zone->present_pages)
				seq_printf(m, "%d %s %d %d\n", nid, zone->name,
					   zone->contiguous, zone_is_whole(zone));
		}
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(zones);

static DEFINE_MUTEX(allocate_lock);
static LIST_HEAD(allocated);
static u32 allocate_order;
static u64 *cycles, nr_cycles;

static int allocate_blocks(u64 nr)
{
	struct page *page;
	u64 start;

	kvfree(cycles);
	cycles = kvmalloc_array(nr, sizeof(*cycles), GFP_KERNEL | __GFP_ZERO);
	if (!cycles)
		return -ENOMEM;
	for (nr_cycles = 0; nr_cycles < nr; nr_cycles++) {
		start = get_cycles();
		page = alloc_pages(GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN, allocate_order);
		cycles[nr_cycles] = get_cycles() - start;
		if (!page)
			return -ENOMEM;
		page->private = allocate_order;
		list_add(&page->lru, &allocated);
		cond_resched();
	}
	return 0;
}

static void free_blocks(void)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, &allocated, lru)
		__free_pages(page, page->private);
	INIT_LIST_HEAD(&allocated);
	kvfree(cycles);
	cycles = NULL;
	nr_cycles = 0;
}

static int allocate_set(void *data, u64 nr)
{
	int err = 0;

	mutex_lock(&allocate_lock);
	if (nr)
		err = allocate_blocks(nr);
	else
		free_blocks();
	mutex_unlock(&allocate_lock);
	return err;
}
DEFINE_SIMPLE_ATTRIBUTE(allocate_fops, NULL, allocate_set, "%llu\n");

static int compare(const void *a, const void *b)
{
	const u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static int latency_show(struct seq_file *m, void *unused)
{
	int err = -ENODATA;

	mutex_lock(&allocate_lock);
	if (nr_cycles) {
		sort(cycles, nr_cycles, sizeof(*cycles), compare, NULL);
		seq_printf(m, "%llu %llu %llu\n", cycles[nr_cycles / 2],
			   cycles[nr_cycles * 99 / 100], cycles[nr_cycles - 1]);
		err = 0;
	}
	mutex_unlock(&allocate_lock);
	return err;
}
DEFINE_SHOW_ATTRIBUTE(latency);

static u64 strayed;

static int stray_set(void *data, u64 pfn)
{
	/* With DEBUG_VM a struct page that nobody has written is poisoned, and this a BUG. */
	strayed += PageReserved(pfn_to_page(pfn));
	return 0;
}
DEFINE_SIMPLE_ATTRIBUTE(stray_fops, NULL, stray_set, "%llu\n");

#ifdef CONFIG_MEMORY_HOTREMOVE
static int replug_set(void *data, u64 pfn)
{
	const u64 start = PFN_PHYS(pfn), size = memory_block_size_bytes();
	int err = offline_and_remove_memory(start, size);

	return err ?: add_memory(memory_add_physaddr_to_nid(start), start, size, MHP_NONE);
}
DEFINE_SIMPLE_ATTRIBUTE(replug_fops, NULL, replug_set, "%llu\n");
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
static void private_free(struct folio *folio)
{
}
#else
static void private_free(struct page *page)
{
}
#endif

static vm_fault_t private_migrate(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

static const struct dev_pagemap_ops private_ops = {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
	.folio_free = private_free,
#else
	.page_free = private_free,
#endif
	.migrate_to_ram = private_migrate,
};

static DEFINE_MUTEX(private_lock);
static struct dev_pagemap *private_pgmap;
static struct resource *private_res;
static u64 private_folios;

static int bind_private(u64 size)
{
	int err = 0;
	void *p;

	if (private_pgmap)
		return -EBUSY;
	private_pgmap = kzalloc(sizeof(*private_pgmap), GFP_KERNEL);
	if (!private_pgmap)
		return -ENOMEM;
	private_res = request_free_mem_region(&iomem_resource, size, "pagemint");
	if (IS_ERR(private_res)) {
		err = PTR_ERR(private_res);
		goto out_free;
	}
	/* Debian's kernels up to 6.12 lack private memory; coherent memory does as well. */
	private_pgmap->type = IS_ENABLED(CONFIG_DEVICE_PRIVATE) ?
			      MEMORY_DEVICE_PRIVATE : MEMORY_DEVICE_COHERENT;
	private_pgmap->ops = &private_ops;
	private_pgmap->owner = private_pgmap;
	private_pgmap->range.start = private_res->start;
	private_pgmap->range.end = private_res->end;
	private_pgmap->nr_range = 1;
	permit_sharing(private_pgmap);

	p = memremap_pages(private_pgmap, numa_mem_id());
	if (!IS_ERR(p))
		return 0;
	err = PTR_ERR(p);
	release_mem_region(private_res->start, resource_size(private_res));
out_free:
	kfree(private_pgmap);
	private_pgmap = NULL;
	return err;
}

static void unbind_private(void)
{
	memunmap_pages(private_pgmap);
	release_mem_region(private_res->start, resource_size(private_res));
	kfree(private_pgmap);
	private_pgmap = NULL;
}

static int private_set(void *data, u64 size)
{
	int err = 0;

	mutex_lock(&private_lock);
	if (!IS_ALIGNED(size, SUBSECTION_SIZE))
		err = -EINVAL;
	else if (size)
		err = bind_private(size);
	else if (!private_pgmap)
		err = -ENODEV;
	else if (private_folios)
		err = -EBUSY;
	else
		unbind_private();
	mutex_unlock(&private_lock);
	return err;
}
DEFINE_SIMPLE_ATTRIBUTE(private_fops, NULL, private_set, "%llu\n");

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
static int make_folios(u64 nr)
{
	const unsigned long pfn = PHYS_PFN(private_pgmap->range.start);
	struct page *page = pfn_to_page(pfn);
	int err = pgmap_populate_memmap(private_pgmap, pfn, nr * HPAGE_PMD_NR, GFP_KERNEL);

	if (err)
		return err;
	for (; private_folios < nr; private_folios++, page += HPAGE_PMD_NR)
		zone_device_page_init(page, private_pgmap, HPAGE_PMD_ORDER);
	return 0;
}

/*
 * Free the folios as after the exit of a process that had them as anonymous memory.
 * The counter nr_anon, which nobody reads here, becomes negative.
 */
static void drop_folios(void)
{
	struct page *page = pfn_to_page(PHYS_PFN(private_pgmap->range.start));

	for (; private_folios; private_folios--, page += HPAGE_PMD_NR) {
		struct folio *folio = page_folio(page);

		folio->mapping = (void *)FOLIO_MAPPING_ANON;
		folio_unlock(folio);
		folio_put(folio);
	}
}

static int folios_set(void *data, u64 nr)
{
	int err = 0;

	mutex_lock(&private_lock);
	if (!private_pgmap)
		err = -ENODEV;
	else if (nr > range_len(&private_pgmap->range) >> PMD_SHIFT)
		err = -EINVAL;
	else if (nr && private_folios)
		err = -EBUSY;
	else if (nr)
		err = make_folios(nr);
	else
		drop_folios();
	mutex_unlock(&private_lock);
	return err;
}
DEFINE_SIMPLE_ATTRIBUTE(folios_fops, NULL, folios_set, "%llu\n");
#else
static void drop_folios(void)
{
}
#endif

static struct dentry *dir;

static int __init pagemint_guest_init(void)
{
	int err = register_kretprobes(probes, ARRAY_SIZE(probes));

	if (err)
		return err;
	dir = debugfs_create_dir("pagemint", NULL);
	debugfs_create_file("last", 0400, dir, NULL, &last_fops);
	debugfs_create_file("hash", 0400, dir, NULL, &hash_fops);
	debugfs_create_file("private", 0200, dir, NULL, &private_fops);
	debugfs_create_file("refs", 0400, dir, NULL, &refs_fops);
	debugfs_create_file("scan", 0400, dir, NULL, &scan_fops);
	debugfs_create_u64("scan_pfn", 0600, dir, &scan_pfn);
	debugfs_create_u64("scan_pages", 0600, dir, &scan_pages);
	debugfs_create_file("soil", 0200, dir, NULL, &soil_fops);
	debugfs_create_file("states", 0400, dir, NULL, &states_fops);
	debugfs_create_file("zones", 0400, dir, NULL, &zones_fops);
	debugfs_create_u32("allocate_order", 0600, dir, &allocate_order);
	debugfs_create_file("allocate", 0200, dir, NULL, &allocate_fops);
	debugfs_create_file("latency", 0400, dir, NULL, &latency_fops);
	debugfs_create_file("stray", 0200, dir, NULL, &stray_fops);
#ifdef CONFIG_MEMORY_HOTREMOVE
	debugfs_create_file("replug", 0200, dir, NULL, &replug_fops);
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
	debugfs_create_file("folios", 0200, dir, NULL, &folios_fops);
#endif
	return 0;
}
module_init(pagemint_guest_init);

static void __exit pagemint_guest_exit(void)
{
	debugfs_remove_recursive(dir);
	free_blocks();
	if (private_pgmap) {
		drop_folios();
		unbind_private();
	}
	unregister_kretprobes(probes, ARRAY_SIZE(probes));
}
module_exit(pagemint_guest_exit);

MODULE_DESCRIPTION("Times and hashes the memmap of device memory");
MODULE_LICENSE("GPL");
