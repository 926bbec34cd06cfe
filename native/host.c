// SPDX-License-Identifier: GPL-2.0-only
/*
 * The plain half of the host program. VARIANT is base or patched: the objects
 * of both trees are in it, and write the very same memory. Takes commands on standard input, a line
 * each, and answers each with one line:
 *
 *   map FIRST_PFN PAGES FD   the memory map of PAGES pages: shared memory FD,
 *                            or huge pages of its own if FD is -1; all of it
 *                            is touched. Answers the bytes in huge pages.
 *   poison BYTE FIRST_PFN PAGES
 *                            fills a part of the map. Answers ok.
 *   mode NAME                memmap_init=NAME in the patched one. Answers ok.
 *   init VARIANT START NR TYPE ORDER ALTMAP RESERVE FREE NID EARLY
 *                            memmap_init_zone_device(). Answers nanoseconds
 *                            and the number of page_ref_set events.
 *   blocks                   the pageblocks set up by the last init, as
 *                            pfn:migratetype:isolate.
 *   limits                   the fill loops that this CPU has.
 *   limit NAME PAGES         runs one over the map. Answers nanoseconds.
 *   streaming                tests the streaming stores. Answers the checks made.
 *
 * A command that fails answers "error" and why.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "host.h"
#include "streaming.h"

/* From the linker. */
extern char __executable_start[], etext[];
extern const struct streaming streaming;

unsigned long host_page_size;

static struct {
	unsigned long first_pfn, pages;
	char *base;
} window;

static const struct variant *find_variant(const char *name)
{
	const struct variant *v = variants;

	while (v->name && strcmp(v->name, name))
		v++;
	return v->name ? v : NULL;
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

/* Only what is safe in a handler: formats into a buffer, writes, exits. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
	unsigned long ip = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	unsigned long addr = (unsigned long)info->si_addr;
	size_t trap = (addr - NATIVE_TRAPS) / NATIVE_TRAP_SIZE;
	char text[256];
	int n;

	if (sig == SIGSEGV && addr >= NATIVE_TRAPS && trap < trap_count)
		n = snprintf(text, sizeof(text), "error %s has no stand-in\n",
			     trap_names[trap]);
	else
		n = snprintf(text, sizeof(text), "error %s at %#lx, address %#lx\n",
			     sig == SIGILL ? "BUG or WARN" :
			     sig == SIGTRAP ? "a static branch without a stand-in" :
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
}

/*
 * Patch the code of every variant; @sites holds its name and an address for
 * each return site, one a line, as the link left them.
 */
static void patch(const char *sites, enum native_returns returns, int trace)
{
	struct site { char variant[16]; unsigned long address; };
	const unsigned long text = (unsigned long)__executable_start & ~4095UL;
	const size_t size = (unsigned long)etext - text;
	enum { MAX = 4096 };
	static struct site site[MAX];
	static unsigned long ret[MAX];
	struct native_tables t;
	size_t nr = 0, mine;
	FILE *f = fopen(sites, "r");

	if (!f)
		host_die("cannot read the return sites");
	while (nr < MAX && fscanf(f, "%15s %lx", site[nr].variant, &site[nr].address) == 2)
		nr++;
	if (nr == MAX)
		host_die("too many return sites");
	fclose(f);

	if (mprotect((void *)text, size, PROT_READ | PROT_WRITE | PROT_EXEC))
		host_die("this system forbids code that patches itself");
	for (const struct variant *v = variants; v->name; v++) {
		mine = 0;
		for (size_t i = 0; i < nr; i++)
			if (!strcmp(site[i].variant, v->name))
				ret[mine++] = site[i].address;
		if (trace)
			v->trace();
		t = v->tables;
		t.ret = ret;
		t.ret_end = ret + mine;
		t.returns = returns;
		v->patch(&t);
	}
	mprotect((void *)text, size, PROT_READ | PROT_EXEC);
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

	if (sscanf(args, "%d %lu %lu", &byte, &first, &pages) != 3 ||
	    first < window.first_pfn ||
	    first + pages > window.first_pfn + window.pages) {
		printf("error usage\n");
		return;
	}
	memset(page_at(first), byte, pages * host_page_size);
	printf("ok\n");
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
	block_log.nr = 0;
	*v->events = 0;
	start = host_now();
	v->init(&c);
	end = host_now();
	printf("%ld %lu\n", (long)(end - start), *v->events);
}

static void do_blocks(void)
{
	if (block_log.nr > block_log.max) {
		printf("error too many pageblocks\n");
		return;
	}
	for (size_t i = 0; i < block_log.nr; i++)
		printf("%lu:%u:%d ", block_log.entry[i].pfn,
		       block_log.entry[i].migratetype, block_log.entry[i].isolate);
	printf("\n");
}

static int has_feature(const char *feature)
{
	return !strcmp(feature, "avx512f") ? __builtin_cpu_supports("avx512f") :
	       !strcmp(feature, "avx") ? __builtin_cpu_supports("avx") : 1;
}

static void do_limits(void)
{
	for (const struct limit *l = limits; l->name; l++)
		if (has_feature(l->feature))
			printf("%s ", l->name);
	printf("\n");
}

static void do_limit(const char *args)
{
	unsigned long pages;
	char name[16];
	int64_t start;

	if (sscanf(args, "%15s %lu", name, &pages) != 2 || pages > window.pages) {
		printf("error usage\n");
		return;
	}
	for (const struct limit *l = limits; l->name; l++) {
		if (strcmp(l->name, name))
			continue;
		start = host_now();
		l->fill(window.base, pages * host_page_size);
		printf("%ld\n", (long)(host_now() - start));
		return;
	}
	printf("error no such loop\n");
}

static void do_streaming(void)
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

int main(int argc, char **argv)
{
	static const char *const returns_names[] = {
		[NATIVE_RET_PLAIN] = "plain",
		[NATIVE_RET_SAFE] = "safe",
		[NATIVE_RET_UNTRAINED] = "untrained",
	};
	static struct block blocks[1 << 20];
	int returns = NATIVE_RET_UNTRAINED;
	char line[256], *args;

	while (argc > 2 && returns >= 0 && strcmp(argv[2], returns_names[returns]))
		returns--;
	if (argc < 3 || returns < 0 || (argc > 3 && strcmp(argv[3], "page_ref_set")))
		host_die("usage: host SITES plain|safe|untrained [page_ref_set]");
	catch_faults();
	map_fixed(NATIVE_PGMAP, NATIVE_PGMAP_SIZE, PROT_READ | PROT_WRITE);
	patch(argv[1], returns, argc > 3);
	host_page_size = variants->page_size();
	block_log.entry = blocks;
	block_log.max = sizeof(blocks) / sizeof(*blocks);

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		args = strchr(line, ' ');
		if (args)
			*args++ = 0;
		if (!strcmp(line, "map") && args)
			do_map(args);
		else if (!strcmp(line, "poison") && args)
			do_poison(args);
		else if (!strcmp(line, "mode") && args)
			do_mode(args);
		else if (!strcmp(line, "init") && args)
			do_init(args);
		else if (!strcmp(line, "blocks"))
			do_blocks();
		else if (!strcmp(line, "limits"))
			do_limits();
		else if (!strcmp(line, "limit") && args)
			do_limit(args);
		else if (!strcmp(line, "streaming"))
			do_streaming();
		else
			printf("error unknown command\n");
		fflush(stdout);
	}
	return 0;
}
