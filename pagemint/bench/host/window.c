// SPDX-License-Identifier: GPL-2.0-only
/* The memmap: a window onto the struct pages of some range of PFNs. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host.h"

static struct {
	unsigned long first_pfn, pages;
} window;

void *window_page(unsigned long pfn)
{
	return (char *)NATIVE_VMEMMAP + pfn * tree_at(0)->page_size;
}

void native_need_memmap(struct native_request *r, unsigned long pfn, unsigned long pages)
{
	if (pages > window.pages || pfn < window.first_pfn ||
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

	if (window.pages)
		munmap(window_page(window.first_pfn), window.pages * tree_at(0)->page_size);
	window.pages = 0;
	map_answering(r, window_page(first), pages * tree_at(0)->page_size);
	window.first_pfn = first;
	window.pages = pages;
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
