// SPDX-License-Identifier: GPL-2.0-only
/* The memory of the pages themselves, its place in the cache, and its faults. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <immintrin.h>
#include <sys/mman.h>

#include "host.h"

static struct {
	unsigned long first_pfn, pages;
} memory;

static struct {
	unsigned long early;	/* bytes that a fast string stops short of the next fault */
	unsigned long nr;	/* so far */
	int once;		/* hidden memory can be read after a fault */
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
 * memory first= pages= [fd=]: maps PAGES pages from PFN FIRST themselves: shared
 * memory FD, or huge pages of its own, all of them touched. Answers huge=, the
 * bytes in huge pages.
 */
NATIVE_COMMAND(memory)
{
	unsigned long first = native_number(r, "first"), pages = native_number(r, "pages");
	long fd = native_number_or(r, "fd", -1);
	int how = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *p;

	if (memory.pages)
		munmap(memory_page(memory.first_pfn), memory.pages * PAGE);
	memory.pages = 0;
	p = mmap(memory_page(first), pages * PAGE, PROT_READ | PROT_WRITE,
		 MAP_FIXED_NOREPLACE | how, fd, 0);
	if (p != memory_page(first))
		native_refuse(r, "fails: no memory can be mapped there");
	memory.first_pfn = first;
	memory.pages = pages;
	if (fd < 0) {
		madvise(p, pages * PAGE, MADV_HUGEPAGE);
		__builtin_memset(p, 0xa5, pages * PAGE);
	}
	native_answer(r, "huge", fd < 0 ? huge_bytes(p) : 0);
}

static int show_all(void)
{
	return mprotect(memory_page(memory.first_pfn), memory.pages * PAGE,
			PROT_READ | PROT_WRITE);
}

/*
 * hide pfn= pages= [once=]: has accesses to these pages fault, with once=1 only
 * the first; with pages=0 none.
 */
NATIVE_COMMAND(hide)
{
	unsigned long pfn = native_number(r, "pfn"), pages = native_number(r, "pages");

	faults.once = native_number_or(r, "once", 0);
	native_need_memory(r, pfn, pages);
	if (pages ? mprotect(memory_page(pfn), pages * PAGE, PROT_NONE) : show_all())
		native_refuse(r, "fails: mprotect");
}

/* evict pfn= pages=: takes these pages out of the cache. */
NATIVE_COMMAND(evict)
{
	unsigned long pfn = native_number(r, "pfn"), pages = native_number(r, "pages");
	unsigned int eax, ebx = 0, ecx, edx;
	char *p, *end;

	native_need_memory(r, pfn, pages);
	__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
	end = memory_page(pfn + pages);
	if (ebx & bit_CLFLUSHOPT)
		for (p = memory_page(pfn); p < end; p += 64)
			asm volatile("clflushopt %0" : "+m" (*p));
	else
		for (p = memory_page(pfn); p < end; p += 64)
			_mm_clflush(p);
	_mm_mfence();
}

/* As exc_page_fault() has it for an address in the exception table. */
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
		/* A fast string stops short of bytes that it could not read. */
		if (code[0] == 0xf3 && code[1] == 0xa4)
			*cx += faults.early;
		faults.early = 0;
		*ip = fixup;
		return 1;
	}
	return 0;
}
