// SPDX-License-Identifier: GPL-2.0-only
/* The pages themselves and the memmap: maps them, evicts them from the cache, makes them fault. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <immintrin.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host.h"

/* The pages that are mapped, and those whose struct pages are. */
static struct range {
	unsigned long first_pfn, pages;
} memory, window;

static struct {
	unsigned long early;	/* at the next fault, a fast string stops so many bytes early */
	unsigned long nr;	/* number of faults so far */
	int once;		/* show hidden memory after the first fault */
} faults;

void *memory_page(unsigned long pfn)
{
	return (char *)NATIVE_DIRECT + pfn * PAGE;
}

void *window_page(unsigned long pfn)
{
	return (char *)NATIVE_VMEMMAP + pfn * tree_at(0)->page_size;
}

static int inside(const struct range *range, unsigned long pfn, unsigned long pages)
{
	return pages <= range->pages && pfn >= range->first_pfn &&
	       pfn - range->first_pfn <= range->pages - pages;
}

void native_need_memory(struct native_request *r, unsigned long pfn, unsigned long pages)
{
	if (!inside(&memory, pfn, pages))
		native_refuse(r, "is about pages that are not mapped");
}

void native_need_memmap(struct native_request *r, unsigned long pfn, unsigned long pages)
{
	if (!inside(&window, pfn, pages))
		native_refuse(r, "is about pages whose memmap is not mapped");
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

/* The bytes of the mapping at @base that are in huge pages, as a kernel maps its memory. */
static unsigned long huge_bytes(const void *base)
{
	unsigned long start, kb = 0;
	char line[256];
	int here = 0;
	FILE *f = fopen("/proc/self/smaps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%*x ", &start) == 1 && strchr(line, '-'))
			here = start == (unsigned long)base;
		else if (here && sscanf(line, "AnonHugePages: %lu kB", &kb) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kb << 10;
}

/* Map the pages of a command at @at, @size bytes each, in place of those of @range. */
static void map_range(struct native_request *r, struct range *range, void *(*at)(unsigned long pfn),
		      unsigned long size)
{
	unsigned long first = native_number(r, "first"), pages = native_number(r, "pages");
	long fd = native_number_or(r, "fd", -1);
	int how = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *start = at(first);

	if (range->pages)
		munmap(at(range->first_pfn), range->pages * size);
	range->pages = 0;
	size *= pages;
	if (mmap(start, size, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE | how, fd, 0) != start)
		command_refuse(r, "memory", "fails: no memory can be mapped there");
	if (fd < 0) {
		madvise(start, size, MADV_HUGEPAGE);
		memset(start, 0xa5, size);
	}
	native_answer(r, "huge", fd < 0 ? huge_bytes(start) : 0);
	*range = (struct range){ first, pages };
}

/*
 * memory, map first= pages= [fd=]: map the memory, or the memmap, of PAGES pages from
 * PFN FIRST: shared memory FD if it is given, else private huge pages, all of them
 * touched. Answer huge=, the bytes in huge pages.
 */
NATIVE_COMMAND(memory)
{
	map_range(r, &memory, memory_page, PAGE);
}

NATIVE_COMMAND(map)
{
	map_range(r, &window, window_page, tree_at(0)->page_size);
}

/*
 * repeat pages= times=: maps the memmap of PAGES pages TIMES times below the memmap
 * that is mapped. All of these mappings share the same memory.
 */
NATIVE_COMMAND(repeat)
{
	unsigned long pages = native_number(r, "pages"), times = native_number(r, "times");
	unsigned long size = pages * tree_at(0)->page_size;
	int fd = memfd_create("memmap", 0);

	if (!window.pages || times * pages > window.first_pfn || fd < 0 || ftruncate(fd, size))
		command_refuse(r, "memory", "fails: there is no room or no memory for it");
	for (; times; times--) {
		void *at = window_page(window.first_pfn - pages);

		if (mmap(at, size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_POPULATE, fd, 0) != at)
			command_refuse(r, "memory", "fails: no memory can be mapped there");
		window.first_pfn -= pages;
		window.pages += pages;
	}
	close(fd);
}

/* poison byte= first= pages=: fills a part of the memmap. */
NATIVE_COMMAND(poison)
{
	unsigned long first = native_number(r, "first"), pages = native_number(r, "pages");

	native_need_memmap(r, first, pages);
	memset(window_page(first), native_number(r, "byte"), pages * tree_at(0)->page_size);
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

	if (addr < NATIVE_DIRECT || !inside(&memory, (addr - NATIVE_DIRECT) / PAGE, 1))
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
