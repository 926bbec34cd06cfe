// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel half: what mm/memmap_shared.o refers to, in the kernel's own types, with
 * a page table that nobody but this program walks. Compiled as the object itself is.
 */
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/percpu-refcount.h>
#include <linux/pgtable.h>
#include <linux/sched.h>
#include <asm/paravirt_types.h>

#include "mm_init.h"
#include "page_alloc.h"
#include "memmap_shared.h"
#include "world.h"

#define FIRST_PFN	PHYS_PFN(DEVICE_PHYS)

struct mm_struct init_mm;
struct paravirt_patch_template pv_ops;
struct cpuinfo_x86 boot_cpu_data;
static struct task_struct task;	/* nobody writes to it; its flags are 0 */
struct task_struct *test_current = &task;
struct mem_section **mem_section;
unsigned long page_offset_base = DIRECT_MAP, vmemmap_base = VMEMMAP, phys_base;
unsigned int pgdir_shift = 39, ptrs_per_p4d = 1;
pteval_t __supported_pte_mask = ~0UL, __default_kernel_pte_mask = ~0UL;
phys_addr_t physical_mask = (1UL << 46) - 1;
u64 sme_me_mask;
static struct dev_pagemap pgmap;
static struct percpu_ref_data ref_data;

extern void test_identity(void);
asm(".globl test_identity\ntest_identity: mov %rdi, %rax\n ret\n");

static void set_pmd_now(pmd_t *pmdp, pmd_t pmd)
{
	stall();
	WRITE_ONCE(*pmdp, pmd);
	stall();
}

static void set_pte_now(pte_t *ptep, pte_t pte)
{
	WRITE_ONCE(*ptep, pte);
}

static void no_alloc_pte(struct mm_struct *mm, unsigned long pfn)
{
}

static void ref_released(struct percpu_ref *ref)
{
	released();
}

void kernel_setup(void *(*table)(void))
{
	const struct paravirt_callee_save same = { test_identity };
	const unsigned long addr = (unsigned long)pfn_to_page(FIRST_PFN);
	const unsigned long roots = SECTION_NR_TO_ROOT(pfn_to_section_nr(FIRST_PFN));
	pgd_t *pgd;
	pud_t *pud;

	pv_ops.mmu.set_pmd = set_pmd_now;
	pv_ops.mmu.set_pte = set_pte_now;
	pv_ops.mmu.alloc_pte = no_alloc_pte;
	pv_ops.mmu.pte_val = pv_ops.mmu.make_pte = same;
	pv_ops.mmu.pgd_val = pv_ops.mmu.make_pgd = same;
	pv_ops.mmu.pmd_val = pv_ops.mmu.make_pmd = same;
	pv_ops.mmu.pud_val = pv_ops.mmu.make_pud = same;
	pv_ops.mmu.p4d_val = pv_ops.mmu.make_p4d = same;

	pgd = table();
	pud = table();
	init_mm.pgd = pgd;
	pgd[pgd_index(addr)] = (pgd_t){ __pa(pud) | _KERNPG_TABLE };
	pud[pud_index(addr)] = (pud_t){ __pa(table()) | _KERNPG_TABLE };
	mem_section = table();
	/* Ordinary memory has no section here, and needs none. */
	mem_section[roots] = table();
	mem_section[roots + 1] = table();
}

int kernel_bind(void)
{
	unsigned long i, addr;

	memset(&pgmap, 0, sizeof(pgmap));
	memset(&ref_data, 0, sizeof(ref_data));
	pgmap.type = MEMORY_DEVICE_PRIVATE;
	pgmap.flags = PGMAP_SHARED_MEMMAP;
	pgmap.nr_range = 1;
	pgmap.range.start = DEVICE_PHYS;
	pgmap.range.end = DEVICE_PHYS + PFN_PHYS(SECTIONS * PAGES_PER_SECTION) - 1;
	/* In atomic mode: no per-CPU variables. */
	pgmap.ref.percpu_count_ptr = __PERCPU_REF_ATOMIC;
	pgmap.ref.data = &ref_data;
	atomic_long_set(&ref_data.count, 1);
	ref_data.release = ref_released;
	ref_data.ref = &pgmap.ref;

	memmap_shared_enabled = true;
	memmap_shared_begin(&pgmap, 0);
	if (!pgmap.shared_block)
		return -1;
	for (i = 0; i < SECTIONS; i++) {
		addr = (unsigned long)pfn_to_page(FIRST_PFN + i * PAGES_PER_SECTION);
		__pfn_to_section(FIRST_PFN + i * PAGES_PER_SECTION)->section_mem_map = 0;
		if (!memmap_shared_map((pmd_t *)__va(pud_val(*pud_offset(p4d_offset(
				       pgd_offset_k(addr), addr), addr)) & PTE_PFN_MASK) +
				       pmd_index(addr), addr, addr + PMD_SIZE, &pgmap))
			return -1;
	}
	return 0;
}

static pmd_t *section_pmd(unsigned long section)
{
	const unsigned long addr =
		(unsigned long)pfn_to_page(FIRST_PFN + section * PAGES_PER_SECTION);

	return pmd_off_k(addr);
}

int kernel_populate(unsigned long page, unsigned long nr, int flags, int may_fail, int by_pfn)
{
	static const gfp_t gfps[] = { GFP_NOIO, GFP_NOFS, GFP_KERNEL };
	gfp_t gfp = gfps[flags] | (may_fail ? __GFP_RETRY_MAYFAIL : 0);

	if (by_pfn)
		return pfn_populate_memmap(FIRST_PFN + page, nr, gfp);
	return pgmap_populate_memmap(&pgmap, FIRST_PFN + page, nr, gfp);
}

int kernel_get(void)
{
	return percpu_ref_tryget_live(&pgmap.ref);
}

void kernel_put(void)
{
	percpu_ref_put(&pgmap.ref);
}

void kernel_kill(void)
{
	WRITE_ONCE(pgmap.ref.percpu_count_ptr, __PERCPU_REF_ATOMIC_DEAD);
	percpu_ref_put(&pgmap.ref);
}

/* As depopulate_section_memmap() and vmemmap_free() do. */
void kernel_unbind(void)
{
	unsigned long i;
	unsigned int k;
	pmd_t *pmd;

	for (i = 0; i < SECTIONS; i++) {
		pmd = section_pmd(i);
		if (kernel_is_shared(i)) {
			memmap_shared_unmap(FIRST_PFN + i * PAGES_PER_SECTION, NULL);
		} else if (pmd_leaf(*pmd)) {
			arena_free(__va(PFN_PHYS(pmd_pfn(*pmd))), PMD_ORDER);
		} else {
			for (k = 0; k < PTRS_PER_PTE; k++)
				arena_free(__va(PFN_PHYS(pte_pfn(((pte_t *)pmd_page_vaddr(*pmd))[k]))), 0);
			arena_free((void *)pmd_page_vaddr(*pmd), 0);
		}
		WRITE_ONCE(*pmd, __pmd(0));
	}
	memmap_shared_end(&pgmap);
}

int kernel_is_shared(unsigned long section)
{
	return memmap_is_shared(FIRST_PFN + section * PAGES_PER_SECTION);
}

unsigned long kernel_pmd(unsigned long section)
{
	return READ_ONCE(*section_pmd(section)).pmd;
}

unsigned long kernel_pte(unsigned long section, unsigned int i)
{
	return READ_ONCE(((pte_t *)pmd_page_vaddr(*section_pmd(section)))[i]).pte;
}

int kernel_is_leaf(unsigned long pmd)
{
	return !!(pmd & _PAGE_PSE);
}

unsigned long kernel_phys(unsigned long entry)
{
	return entry & PTE_PFN_MASK;
}

int kernel_is_writable(unsigned long entry)
{
	return !!(entry & _PAGE_RW);
}

/* The object calls these. */
struct page *__alloc_pages_noprof(gfp_t gfp, unsigned int order, int nid,
				  nodemask_t *mask, unsigned int flags)
{
	void *address = arena_alloc(order, !!(gfp & __GFP_IO), !!(gfp & __GFP_FS),
				    !!(gfp & (__GFP_NORETRY | __GFP_RETRY_MAYFAIL)));

	return address ? virt_to_page(address) : NULL;
}

void __free_pages(struct page *page, unsigned int order)
{
	arena_free(page_address(page), order);
}

struct dev_pagemap *get_dev_pagemap(unsigned long pfn)
{
	return kernel_get() ? &pgmap : NULL;
}

bool pgmap_pfn_valid(struct dev_pagemap *map, unsigned long pfn)
{
	return pfn >= PHYS_PFN(map->range.start) && pfn <= PHYS_PFN(map->range.end);
}

void __init_zone_device_page(struct page *page, unsigned long pfn, unsigned long zone,
			     int nid, struct dev_pagemap *map)
{
	memset(page, 0, sizeof(*page));
	((u64 *)page)[MAGIC_WORD] = MAGIC;
}

void prep_compound_page(struct page *page, unsigned int order)
{
	fail("a compound", order);
}

void * __meminit vmemmap_alloc_block_buf(unsigned long size, int node, struct vmem_altmap *altmap)
{
	fail("an altmap", size);
	return NULL;
}
