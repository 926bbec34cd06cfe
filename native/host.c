// SPDX-License-Identifier: GPL-2.0-only
/*
 * The plain half of the host program. VARIANT is base, base2 (the same code,
 * linked twice) or patched: the objects of all are in it, and write the very
 * same memory. Takes commands on
 * standard input, a line each, and answers each with one line:
 *
 *   patch RETURNS CLASS EVENTS FRAGILE
 *                            the code, as boot does, for a CPU of a class and
 *                            how it returns; with the page_ref_set event
 *                            active, or copy_mc_fragile() chosen, if 1. Comes
 *                            first, and may come again. Answers ok.
 *   map FIRST_PFN PAGES FD   the memory map of PAGES pages: shared memory FD,
 *                            or huge pages of its own if FD is -1; all of it
 *                            is touched. Answers the bytes in huge pages.
 *   poison BYTE FIRST_PFN PAGES
 *                            fills a part of the map. Answers ok.
 *   mode NAME                memmap_init=NAME in the patched one. Answers ok.
 *   threads NR               has the patched one share its work out among NR
 *                            threads, as on a machine with as many CPUs.
 *                            Answers ok.
 *   init VARIANT START NR TYPE ORDER ALTMAP RESERVE FREE NID EARLY
 *                            memmap_init_zone_device(). Answers nanoseconds,
 *                            the number of page_ref_set events, and of
 *                            threads.
 *   hotplug VARIANT START NR NID UNACCEPTED BLOCK DRIVER
 *                            adds memory to an empty zone and brings it online,
 *                            one block of BLOCK pages, to which it is aligned,
 *                            after the other, past the callback of a driver or
 *                            not. Answers nanoseconds of both, and page_ref_set
 *                            events. The end is one of a buddy of the largest
 *                            order, as the kernel demands.
 *   boot VARIANT START NR NID UNACCEPTED FIRST END ...
 *                            deferred_init_memmap_chunk(), with the ranges that
 *                            memblock has free, up to 8. Answers nanoseconds
 *                            and page_ref_set events.
 *   zone                     a hash over the node that the last of these left.
 *   blocks                   the pageblocks that the last of these or init has
 *                            set up, as pfn:migratetype:isolate.
 *   limits                   the fill loops that this CPU has.
 *   limit NAME PAGES NR      runs one over the map, in NR threads. Answers
 *                            nanoseconds.
 *   streaming                tests the streaming stores. Answers the checks made.
 *   memory FIRST_PFN PAGES FD SKEW
 *                            what the pages hold, as map has it, each SKEW
 *                            bytes further up. Answers ok.
 *   hide PFN PAGES ONCE      has accesses to host pages of it fault, or with 0
 *                            pages none. If ONCE is 1, only the first access
 *                            faults. Answers ok.
 *   evict PFN PAGES          takes it out of the cache. Answers ok.
 *   copy VARIANT EARLY FUNCTION ORDER NR TO FROM
 *                            copies NR folios to PFN TO from PFN FROM, which
 *                            init has made; a fast string that faults stops
 *                            EARLY bytes too soon, once. Answers nanoseconds,
 *                            the result, how many pages were queued as
 *                            poisoned, the first of them, and the faults.
 *   loops                    the copy loops that this CPU has, each NAME:cached
 *                            or NAME:streamed.
 *   loop READ NAME ORDER NR TO FROM
 *                            the same copies with one of these; each is read
 *                            at once if READ is 1. Answers nanoseconds.
 *
 * A command that fails answers "error" and why.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "host.h"
#include "streaming.h"

#define PAGEBLOCK	512UL

/* From the linker. */
extern char __executable_start[], etext[];
extern const struct streaming streaming;

unsigned long host_page_size;

static struct {
	unsigned long first_pfn, pages;
	char *base;
} window;

const struct variant *find_variant(const char *name)
{
	const struct variant *v = variants;

	while (v->name && strcmp(v->name, name))
		v++;
	return v->name ? v : NULL;
}

int mapped(unsigned long pfn, unsigned long pages)
{
	return window.base && pages <= window.pages && pfn >= window.first_pfn &&
	       pfn - window.first_pfn <= window.pages - pages;
}

static char *page_at(unsigned long pfn)
{
	return (char *)NATIVE_VMEMMAP + pfn * host_page_size;
}

int64_t host_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

void host_die(const char *why)
{
	printf("error %s\n", why);
	fflush(stdout);
	_exit(3);
}

/* The symbol that would be at @addr, or NULL. */
static const char *trap_name(unsigned long addr)
{
	size_t trap = (addr - NATIVE_TRAPS) / NATIVE_TRAP_SIZE;

	return addr >= NATIVE_TRAPS && trap < trap_count ? trap_names[trap] : NULL;
}

/* Only what is safe in a handler: formats into a buffer, writes, exits. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	unsigned long ip = regs[REG_RIP], cx = regs[REG_RCX];
	unsigned long addr = (unsigned long)info->si_addr;
	const char *name = trap_name(addr);
	char text[256];
	int n;

	if (sig == SIGSEGV && folio_fixup(addr, &ip, &cx)) {
		regs[REG_RIP] = ip;
		regs[REG_RCX] = cx;
		return;
	}
	/* Or it is per-CPU data. */
	if (!name)
		name = trap_name(addr - NATIVE_GS);
	if (sig == SIGSEGV && name)
		n = snprintf(text, sizeof(text), "error %s has no stand-in\n", name);
	else
		n = snprintf(text, sizeof(text), "error %s at %#lx, address %#lx\n",
			     sig == SIGILL ? "BUG or WARN" :
			     sig == SIGTRAP ? "a branch or call without a stand-in" :
			     strsignal(sig), ip, addr);
	if (write(STDOUT_FILENO, text, n) != n)
		_exit(4);
	_exit(3);
}

static void map_fixed(unsigned long addr, unsigned long size, int prot)
{
	if (mmap((void *)addr, size, prot, MAP_PRIVATE | MAP_ANONYMOUS |
		 MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != (void *)addr)
		host_die("a fixed address is taken");
}

static void catch_faults(void)
{
	static char stack[1 << 16];
	const stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) };
	const struct sigaction action = {
		.sa_sigaction = on_fault,
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	};
	const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP };

	sigaltstack(&alt, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &action, NULL);
	map_fixed(NATIVE_TRAPS, (trap_count + 1) * NATIVE_TRAP_SIZE, PROT_NONE);
	map_fixed(NATIVE_TRAPS + NATIVE_GS, (trap_count + 1) * NATIVE_TRAP_SIZE, PROT_NONE);
}

static void set_gs(void)
{
	const unsigned long start = (unsigned long)__start_per_cpu;
	const unsigned long size = __stop_per_cpu - __start_per_cpu;
	const unsigned long skew = start % NATIVE_GS_SIZE;

	map_fixed(NATIVE_GS + start - skew, skew + size, PROT_READ | PROT_WRITE);
	memcpy((void *)(NATIVE_GS + start), __start_per_cpu, size);
	map_fixed(NATIVE_GS, NATIVE_GS_SIZE, PROT_READ | PROT_WRITE);
	*(unsigned long *)(NATIVE_GS + NATIVE_GS_CANARY) = k___ref_stack_chk_guard;
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, NATIVE_GS))
		host_die("this system forbids to set %gs");
}

/* Where returns are, as the link left them in a file: a variant and an address a line. */
static struct {
	struct { char variant[16]; unsigned long address; } site[4096];
	size_t nr;
} returns;

static void read_returns(const char *sites)
{
	enum { MAX = sizeof(returns.site) / sizeof(*returns.site) };
	FILE *f = fopen(sites, "r");

	if (!f)
		host_die("cannot read the return sites");
	while (returns.nr < MAX && fscanf(f, "%15s %lx", returns.site[returns.nr].variant,
					  &returns.site[returns.nr].address) == 2)
		returns.nr++;
	if (returns.nr == MAX)
		host_die("too many return sites");
	fclose(f);
}

int find_name(const char *const *names, int nr, const char *name)
{
	while (nr-- > 0 && strcmp(names[nr], name))
		;
	return nr;
}

/* Patches the code of every variant, as it was linked. */
static void do_patch(const char *args)
{
	static const char *const returns_names[] = {
		[NATIVE_RET_PLAIN] = "plain",
		[NATIVE_RET_SAFE] = "safe",
		[NATIVE_RET_UNTRAINED] = "untrained",
	};
	static const char *const class_names[] = {
		[NATIVE_THIS_CPU] = "this",
		[NATIVE_FSRM] = "fsrm+erms",
		[NATIVE_ERMS] = "erms",
		[NATIVE_REP_GOOD] = "rep_good",
		[NATIVE_UNROLLED] = "none",
	};
	const unsigned long text = (unsigned long)__executable_start & ~4095UL;
	const size_t size = (unsigned long)etext - text;
	static unsigned long ret[sizeof(returns.site) / sizeof(*returns.site)];
	static void *linked;
	struct native_tables t;
	char how[16], class[16];
	int events, fragile, how_nr, class_nr;
	size_t mine;

	if (sscanf(args, "%15s %15s %d %d", how, class, &events, &fragile) != 4 ||
	    (how_nr = find_name(returns_names, 3, how)) < 0 ||
	    (class_nr = find_name(class_names, 5, class)) < 0) {
		printf("error usage\n");
		return;
	}
	if (mprotect((void *)text, size, PROT_READ | PROT_WRITE | PROT_EXEC)) {
		printf("error this system forbids code that patches itself\n");
		return;
	}
	if (!linked) {
		linked = malloc(size);
		if (!linked)
			host_die("out of memory");
		memcpy(linked, (void *)text, size);
	}
	memcpy((void *)text, linked, size);
	for (const struct variant *v = variants; v->name; v++) {
		mine = 0;
		for (size_t i = 0; i < returns.nr; i++)
			if (!strcmp(returns.site[i].variant, v->name))
				ret[mine++] = returns.site[i].address;
		t = v->tables;
		t.ret = ret;
		t.ret_end = ret + mine;
		t.returns = how_nr;
		t.class = class_nr;
		t.events = events;
		t.fragile = fragile;
		v->patch(&t);
	}
	mprotect((void *)text, size, PROT_READ | PROT_EXEC);
	host_page_size = variants->page_size();
	printf("ok\n");
}

static unsigned long huge_bytes(const void *base)
{
	unsigned long start, kb = 0;
	char line[256];
	int inside = 0;
	FILE *f = fopen("/proc/self/smaps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%*x ", &start) == 1 && strchr(line, '-'))
			inside = start == (unsigned long)base;
		else if (inside && sscanf(line, "AnonHugePages: %lu kB", &kb) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kb << 10;
}

static void do_map(const char *args)
{
	unsigned long first, pages, size;
	int fd, shared;
	void *p;

	if (sscanf(args, "%lu %lu %d", &first, &pages, &fd) != 3) {
		printf("error usage\n");
		return;
	}
	if (window.base)
		munmap(window.base, window.pages * host_page_size);
	window.base = NULL;
	size = pages * host_page_size;
	shared = fd >= 0;
	p = mmap(page_at(first), size, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE |
		 (shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE),
		 fd, 0);
	if (p != page_at(first)) {
		printf("error mmap: %s\n", strerror(errno));
		return;
	}
	window.first_pfn = first;
	window.pages = pages;
	window.base = p;
	if (!shared) {
		madvise(p, size, MADV_HUGEPAGE);
		memset(p, 0xa5, size);
	}
	printf("%lu\n", shared ? 0 : huge_bytes(p));
}

static void do_poison(const char *args)
{
	unsigned long first, pages;
	int byte;

	if (sscanf(args, "%d %lu %lu", &byte, &first, &pages) != 3 || !mapped(first, pages)) {
		printf("error usage\n");
		return;
	}
	memset(page_at(first), byte, pages * host_page_size);
	printf("ok\n");
}

/* What the last command set up. */
static struct {
	const struct variant *by;
	unsigned long pfn, end;
} blocks;

void begin_init(const struct variant *v, unsigned long pfn, unsigned long pages)
{
	blocks.by = v;
	blocks.pfn = pfn & -PAGEBLOCK;
	blocks.end = pfn + pages;
	*v->events = 0;
}

static void do_init(const char *args)
{
	const struct variant *v = NULL;
	struct native_case c;
	int64_t start, end;
	char name[16];

	if (sscanf(args, "%15s %lu %lu %u %u %u %lu %lu %u %u", name, &c.start_pfn,
		   &c.nr_pages, &c.type, &c.order, &c.altmap, &c.altmap_reserve,
		   &c.altmap_free, &c.nid, &c.early) == 10)
		v = find_variant(name);
	if (!v) {
		printf("error usage\n");
		return;
	}
	begin_init(v, c.start_pfn, c.nr_pages + (1UL << c.order));
	work_queued = 0;
	start = host_now();
	v->init(&c);
	end = host_now();
	printf("%ld %lu %lu\n", (long)(end - start), *v->events, work_queued + 1);
}

static void do_blocks(const char *args)
{
	unsigned int bits;

	for (unsigned long pfn = blocks.pfn; pfn < blocks.end; pfn += PAGEBLOCK) {
		bits = blocks.by->block(pfn);
		if (bits)
			printf("%lu:%u:%d ", pfn, bits & NATIVE_MIGRATETYPE, !!(bits & NATIVE_ISOLATED));
	}
	printf("\n");
}

int has_feature(const char *feature)
{
	return !strcmp(feature, "avx512f") ? __builtin_cpu_supports("avx512f") :
	       !strcmp(feature, "avx") ? __builtin_cpu_supports("avx") : 1;
}

static void do_limits(const char *args)
{
	for (const struct limit *l = limits; l->name; l++)
		if (has_feature(l->feature))
			printf("%s ", l->name);
	printf("\n");
}

static void do_limit(const char *args)
{
	unsigned long pages;
	unsigned int threads;
	char name[16];
	int64_t start;

	if (sscanf(args, "%15s %lu %u", name, &pages, &threads) != 3 ||
	    pages > window.pages || !threads || threads > NATIVE_MAX_THREADS) {
		printf("error usage\n");
		return;
	}
	for (const struct limit *l = limits; l->name; l++) {
		if (strcmp(l->name, name))
			continue;
		host_threads(threads);
		start = host_now();
		host_fill(l->fill, window.base, pages * host_page_size, threads);
		printf("%ld\n", (long)(host_now() - start));
		return;
	}
	printf("error no such loop\n");
}

static void do_streaming(const char *args)
{
	unsigned long checks = streaming_test(&streaming);

	if (checks)
		printf("%lu\n", checks);
}

static void do_mode(const char *name)
{
	const struct variant *v = find_variant("patched");

	printf(v->mode_set(name) ? "error no such mode\n" : "ok\n");
}

static void do_threads(const char *args)
{
	unsigned int threads;

	if (sscanf(args, "%u", &threads) != 1 || !threads || threads > NATIVE_MAX_THREADS) {
		printf("error usage\n");
		return;
	}
	host_threads(threads);
	find_variant("patched")->threads(threads);
	printf("ok\n");
}

static const struct command {
	const char *name;
	void (*run)(const char *args);
} commands[] = {
	{ "patch", do_patch },
	{ "map", do_map },
	{ "poison", do_poison },
	{ "mode", do_mode },
	{ "threads", do_threads },
	{ "init", do_init },
	{ "hotplug", do_hotplug },
	{ "boot", do_boot },
	{ "zone", do_zone },
	{ "blocks", do_blocks },
	{ "limits", do_limits },
	{ "limit", do_limit },
	{ "streaming", do_streaming },
	{ "memory", do_memory },
	{ "hide", do_hide },
	{ "evict", do_evict },
	{ "copy", do_copy },
	{ "loops", do_loops },
	{ "loop", do_loop },
	{ }
};

int main(int argc, char **argv)
{
	const struct command *c;
	char line[256], *args;

	if (argc != 2)
		host_die("usage: host SITES");
	catch_faults();
	set_gs();
	map_fixed(NATIVE_PGMAP, NATIVE_PGMAP_SIZE, PROT_READ | PROT_WRITE);
	map_fixed(NATIVE_PGDAT, NATIVE_PGDAT_SIZE, PROT_READ | PROT_WRITE);
	read_returns(argv[1]);

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		args = line + strcspn(line, " ");
		if (*args)
			*args++ = 0;
		for (c = commands; c->name && strcmp(c->name, line); c++)
			;
		if (c->name)
			c->run(args);
		else
			printf("error unknown command\n");
		fflush(stdout);
	}
	return 0;
}
