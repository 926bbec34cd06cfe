// SPDX-License-Identifier: GPL-2.0-only
/* The memmap: a window onto the struct pages of some range of PFNs. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "host.h"

static struct {
	unsigned long first_pfn, pages;
	char *base;
} window;

void *window_page(unsigned long pfn)
{
	return (char *)NATIVE_VMEMMAP + pfn * tree_at(0)->page_size;
}

void native_need_memmap(struct native_request *r, unsigned long pfn, unsigned long pages)
{
	if (!window.base || pages > window.pages || pfn < window.first_pfn ||
	    pfn - window.first_pfn > window.pages - pages)
		native_refuse(r, "is about pages whose memmap is not mapped");
}

/*
 * map first= pages= [fd=]: maps the memmap of PAGES pages from PFN FIRST: shared
 * memory FD if it is given, else private huge pages, all of them touched. Answers
 * huge=, the bytes in huge pages.
 */
NATIVE_COMMAND(map)
{
	unsigned long first = native_number(r, "first"), pages = native_number(r, "pages");
	long fd = native_number_or(r, "fd", -1);
	unsigned long size = pages * tree_at(0)->page_size;
	int how = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *p;

	if (window.base)
		munmap(window.base, window.pages * tree_at(0)->page_size);
	window.base = NULL;
	p = mmap(window_page(first), size, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE | how,
		 fd, 0);
	if (p != window_page(first))
		native_refuse(r, "fails: no memory can be mapped there");
	window.first_pfn = first;
	window.pages = pages;
	window.base = p;
	if (fd < 0) {
		madvise(p, size, MADV_HUGEPAGE);
		memset(p, 0xa5, size);
	}
	native_answer(r, "huge", fd < 0 ? huge_bytes(p) : 0);
}

/* poison byte= first= pages=: fills a part of the memmap. */
NATIVE_COMMAND(poison)
{
	unsigned long first = native_number(r, "first"), pages = native_number(r, "pages");

	native_need_memmap(r, first, pages);
	memset(window_page(first), native_number(r, "byte"), pages * tree_at(0)->page_size);
}
