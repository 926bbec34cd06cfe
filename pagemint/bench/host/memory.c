// SPDX-License-Identifier: GPL-2.0-only
/* The memory of the pages themselves: maps it, evicts it from the cache, makes it fault. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <immintrin.h>
#include <sys/mman.h>

#include "host.h"

static struct {
	unsigned long first_pfn, pages;
} memory;

static struct {
	unsigned long early;	/* at the next fault, a fast string stops so many bytes early */
	unsigned long nr;	/* number of faults so far */
	int once;		/* show hidden memory after the first fault */
} faults;

void *memory_page(unsigned long pfn)
{
	return (char *)NATIVE_DIRECT + pfn * PAGE;
}

static int inside(unsigned long pfn, unsigned long pages)
{
	return pages <= memory.pages && pfn >= memory.first_pfn &&
	       pfn - memory.first_pfn <= memory.pages - pages;
}

void native_need_memory(struct native_request *r, unsigned long pfn, unsigned long pages)
{
	if (!inside(pfn, pages))
		native_refuse(r, "is about pages that are not mapped");
}

void native_expect_faults(unsigned long early)
{
	faults.early = early;
	faults.nr = 0;
}

unsigned long native_faults(void)
{
	faults.early = 0;
	return faults.nr;
}

/*
 * memory first= pages= [fd=]: maps the memory of PAGES pages from PFN FIRST: shared
 * memory FD if it is given, else private huge pages, all of them touched. Answers
 * huge=, the bytes in huge pages.
 */
NATIVE_COMMAND(memory)
{
	unsigned long first = native_number(r, "first"), pages = native_number(r, "pages");

	if (memory.pages)
		munmap(memory_page(memory.first_pfn), memory.pages * PAGE);
	memory.pages = 0;
	map_answering(r, memory_page(first), pages * PAGE);
	memory.first_pfn = first;
	memory.pages = pages;
}

static int show_all(void)
{
	return mprotect(memory_page(memory.first_pfn), memory.pages * PAGE,
			PROT_READ | PROT_WRITE);
}

/*
 * hide pfn= pages= [once=]: makes accesses to these pages fault; with once=1 only
 * the first access faults, with pages=0 none does.
 */
NATIVE_COMMAND(hide)
{
	unsigned long pfn = native_number(r, "pfn"), pages = native_number(r, "pages");

	faults.once = native_number_or(r, "once", 0);
	native_need_memory(r, pfn, pages);
	if (pages ? mprotect(memory_page(pfn), pages * PAGE, PROT_NONE) : show_all())
		native_refuse(r, "fails: mprotect");
}

void native_evict(const void *start, unsigned long bytes)
{
	const char *p = start, *end = p + bytes;
	unsigned int eax, ebx = 0, ecx, edx;

	__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
	if (ebx & bit_CLFLUSHOPT)
		for (; p < end; p += 64)
			asm volatile("clflushopt %0" : : "m" (*p) : "memory");
	else
		for (; p < end; p += 64)
			_mm_clflush(p);
	_mm_mfence();
}

/* evict pfn= pages=: evicts these pages from the cache. */
NATIVE_COMMAND(evict)
{
	unsigned long pfn = native_number(r, "pfn"), pages = native_number(r, "pages");

	native_need_memory(r, pfn, pages);
	native_evict(memory_page(pfn), pages * PAGE);
}

/* Does the same as exc_page_fault() for an address in the exception table. */
int memory_fixup(unsigned long addr, unsigned long *ip, unsigned long *cx)
{
	const unsigned char *code = (const unsigned char *)*ip;
	const struct native_tree *tree;
	unsigned long fixup;

	if (addr < NATIVE_DIRECT || !inside((addr - NATIVE_DIRECT) / PAGE, 1))
		return 0;
	for (size_t i = 0; (tree = tree_at(i)); i++) {
		fixup = tree->fixup(*ip);
		if (!fixup)
			continue;
		faults.nr++;
		if (faults.once)
			show_all();
		/* A fast string (rep movsb) may stop before the byte that faults. */
		if (code[0] == 0xf3 && code[1] == 0xa4)
			*cx += faults.early;
		faults.early = 0;
		*ip = fixup;
		return 1;
	}
	return 0;
}
