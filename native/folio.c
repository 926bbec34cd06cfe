// SPDX-License-Identifier: GPL-2.0-only
/* The commands that copy folios: the memory they are in, its cache, and its faults. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <immintrin.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "host.h"

#define PAGE 4096UL

static struct {
	unsigned long first_pfn, pages;
} memory;

static struct {
	unsigned long early;	/* bytes that a string stops short of the next fault */
	unsigned long nr;	/* so far */
	int once;		/* hidden memory can be read after a fault */
} faults;

static char *memory_at(unsigned long pfn)
{
	return (char *)NATIVE_DIRECT + pfn * PAGE;
}

static int inside(unsigned long pfn, unsigned long pages)
{
	return pages <= memory.pages && pfn >= memory.first_pfn &&
	       pfn - memory.first_pfn <= memory.pages - pages;
}

void do_memory(const char *args)
{
	unsigned long first, pages, skew;
	int fd;
	void *p;

	if (sscanf(args, "%lu %lu %d %lu", &first, &pages, &fd, &skew) != 4) {
		printf("error usage\n");
		return;
	}
	if (memory.pages)
		munmap(memory_at(memory.first_pfn), memory.pages * PAGE);
	memory.pages = 0;
	p = mmap(memory_at(first), pages * PAGE, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE |
		 (fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE), fd, 0);
	if (p != memory_at(first)) {
		printf("error mmap: %s\n", strerror(errno));
		return;
	}
	memory.first_pfn = first;
	memory.pages = pages;
	if (fd < 0) {
		madvise(p, pages * PAGE, MADV_HUGEPAGE);
		memset(p, 0xa5, pages * PAGE);
	}
	for (const struct variant *v = variants; v->name; v++)
		v->skew(skew);
	printf("ok\n");
}

static int show_all(void)
{
	return mprotect(memory_at(memory.first_pfn), memory.pages * PAGE,
			PROT_READ | PROT_WRITE);
}

void do_hide(const char *args)
{
	unsigned long pfn, pages;
	int err;

	if (sscanf(args, "%lu %lu %d", &pfn, &pages, &faults.once) != 3 ||
	    !inside(pfn, pages)) {
		printf("error usage\n");
		return;
	}
	err = pages ? mprotect(memory_at(pfn), pages * PAGE, PROT_NONE) : show_all();
	printf(err ? "error mprotect\n" : "ok\n");
}

void do_evict(const char *args)
{
	unsigned int eax, ebx = 0, ecx, edx;
	unsigned long pfn, pages;
	char *p, *end;

	if (sscanf(args, "%lu %lu", &pfn, &pages) != 2 || !inside(pfn, pages)) {
		printf("error usage\n");
		return;
	}
	__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
	end = memory_at(pfn + pages);
	if (ebx & bit_CLFLUSHOPT)
		for (p = memory_at(pfn); p < end; p += 64)
			asm volatile("clflushopt %0" : "+m" (*p));
	else
		for (p = memory_at(pfn); p < end; p += 64)
			_mm_clflush(p);
	_mm_mfence();
	printf("ok\n");
}

static int read_copy(const char *args, char *name, struct native_copy *c)
{
	return sscanf(args, "%23s %u %lu %lu %lu", name, &c->order, &c->nr, &c->to,
		      &c->from) == 5 &&
	       inside(c->to, c->nr << c->order) && inside(c->from, c->nr << c->order);
}

void do_copy(const char *args)
{
	static const char *const functions[] = {
		[NATIVE_FOLIO_COPY] = "folio_copy",
		[NATIVE_FOLIO_MC_COPY] = "folio_mc_copy",
		[NATIVE_COPY_USER_LARGE_FOLIO] = "copy_user_large_folio",
	};
	const struct variant *v;
	struct native_copy c;
	char tree[16], name[24];
	int64_t start, end;
	int n, by, result;

	if (sscanf(args, "%15s %lu %n", tree, &faults.early, &n) != 2 ||
	    !(v = find_variant(tree)) || !read_copy(args + n, name, &c) ||
	    (by = find_name(functions, 3, name)) < 0) {
		printf("error usage\n");
		return;
	}
	c.by = by;
	faults.nr = 0;
	poison_log.nr = poison_log.first_pfn = 0;
	start = host_now();
	result = v->copy(&c);
	end = host_now();
	faults.early = 0;
	printf("%ld %d %lu %lu %lu\n", (long)(end - start), result, poison_log.nr,
	       poison_log.first_pfn, faults.nr);
}

/* As exc_page_fault() has it for an address in the exception table. */
int folio_fixup(unsigned long addr, unsigned long *ip, unsigned long *cx)
{
	const unsigned char *code = (const unsigned char *)*ip;
	unsigned long fixup;

	if (addr < NATIVE_DIRECT || !inside((addr - NATIVE_DIRECT) / PAGE, 1))
		return 0;
	for (const struct variant *v = variants; v->name; v++) {
		fixup = v->fixup(&v->tables, *ip);
		if (!fixup)
			continue;
		faults.nr++;
		if (faults.once)
			show_all();
		/* A fast string that stops short of what it could not read. */
		if (code[0] == 0xf3 && code[1] == 0xa4)
			*cx += faults.early;
		faults.early = 0;
		*ip = fixup;
		return 1;
	}
	return 0;
}

void do_loops(const char *args)
{
	for (const struct copy_loop *l = copy_loops; l->name; l++)
		if (has_feature(l->feature))
			printf("%s:%s ", l->name, l->streamed ? "streamed" : "cached");
	printf("\n");
}

static void read_lines(const char *p, size_t bytes)
{
	for (const char *end = p + bytes; p < end; p += 64)
		*(const volatile char *)p;
}

void do_loop(const char *args)
{
	struct native_copy c;
	unsigned long to, from;
	char name[24];
	int read, n;
	int64_t start;

	if (sscanf(args, "%d %n", &read, &n) != 1 || !read_copy(args + n, name, &c)) {
		printf("error usage\n");
		return;
	}
	for (const struct copy_loop *l = copy_loops; l->name; l++) {
		if (strcmp(l->name, name))
			continue;
		start = host_now();
		for (unsigned long i = 0; i < c.nr; i++) {
			to = c.to + (native_target(i, c.nr) << c.order);
			from = c.from + (native_source(i, c.nr) << c.order);
			l->copy(memory_at(to), memory_at(from), PAGE << c.order);
			if (read)
				read_lines(memory_at(to), PAGE << c.order);
		}
		printf("%ld\n", (long)(host_now() - start));
		return;
	}
	printf("error no such loop\n");
}
