// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests mm/deferred_sections.o in a user program: whatever its threads do at once, no chunk is
 * written or freed twice, none is lost, no section is online before all of it is written, no page
 * is free before its section is online, and no allocation sleeps.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "glue.h"

enum state { DEFERRED, WRITING, WRITTEN, FREE, APART_NOT };

static _Atomic int chunk[NR_SECTIONS * CHUNKS];
static _Atomic int online[NR_SECTIONS];
static _Atomic unsigned int singles[NR_SECTIONS * CHUNKS];	/* pages freed one by one */
static _Atomic long freed, single, taken, writes, sleeps, passed_over, waits;
static pthread_mutex_t zone_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local unsigned int seed;
static _Thread_local int allocating;
static unsigned long stall_pfn;		/* whoever writes this chunk first is held up */
static atomic_int stalled, release;
static int nr_threads;
static int calm;	/* no delays */
static const char *scene;

void user_fail(const char *what)
{
	printf("FAILED: %s, %d threads: %s\n", scene, nr_threads, what);
	fflush(stdout);
	_exit(1);
}

static void check(int ok, const char *what)
{
	if (!ok)
		user_fail(what);
}

static long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

void *user_zalloc(unsigned long size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	check(p != MAP_FAILED, "no memory");
	return p;
}

static void dawdle(void)
{
	unsigned int r = rand_r(&seed) % 64;

	if (calm)
		return;
	if (r < 8)
		sched_yield();
	else if (r == 8)
		usleep(rand_r(&seed) % 300);
}

static unsigned long index_of(unsigned long pfn)
{
	check(pfn % CHUNK_PAGES == 0 && pfn >= FIRST_PFN &&
	      pfn < FIRST_PFN + NR_SECTIONS * SECTION_PAGES, "a PFN is wrong");
	return (pfn - FIRST_PFN) / CHUNK_PAGES;
}

void user_write(unsigned long pfn, unsigned long nr)
{
	_Atomic int *c = &chunk[index_of(pfn)];
	int expected = DEFERRED;

	check(nr == CHUNK_PAGES, "something else than a chunk is written");
	check(glue_preempt_count() & 0xff, "the owner of a chunk can be preempted");
	check(atomic_compare_exchange_strong(c, &expected, WRITING), "a chunk is written twice");
	atomic_fetch_add(&writes, 1);
	if (pfn == stall_pfn) {
		atomic_store(&stalled, 1);
		while (!atomic_load(&release))
			usleep(100);
	}
	dawdle();
	check(!online[index_of(pfn) / CHUNKS], "a section is online before all of it is written");
	check(atomic_exchange(c, WRITTEN) == WRITING, "a chunk is written twice");
}

void user_online(unsigned long pfn)
{
	const unsigned long first = index_of(pfn);

	check(first % CHUNKS == 0, "a PFN is wrong");
	for (unsigned long i = 0; i < CHUNKS; i++)
		check(chunk[first + i] == WRITTEN, "a section is online before all of it is written");
	dawdle();
	check(!atomic_exchange(&online[first / CHUNKS], 1), "a section goes online twice");
}

void user_offline(unsigned long pfn)
{
	const unsigned long first = index_of(pfn);

	for (unsigned long i = 0; i < CHUNKS; i++)
		chunk[first + i] = DEFERRED;
	online[first / CHUNKS] = 0;
}

void user_free(unsigned long pfn, unsigned long nr)
{
	_Atomic int *c = &chunk[index_of(pfn - pfn % CHUNK_PAGES)];

	check(online[(c - chunk) / CHUNKS], "a page is free before its section is online");
	if (nr == 1) {
		check(*c == WRITTEN, "a page is free that is not written, or is free already");
		atomic_fetch_add(&single, 1);
		if (atomic_fetch_add(&singles[c - chunk], 1) == CHUNK_PAGES - 2)
			*c = FREE;	/* all but the bad page */
		return;
	}
	dawdle();
	check(nr == CHUNK_PAGES, "something else than a chunk is freed");
	check(atomic_exchange(c, FREE) == WRITTEN,
	      "a chunk is freed that is not written, or is free already");
	atomic_fetch_add(&freed, 1);
}

void user_sleep(const char *what)
{
	atomic_fetch_add(&sleeps, 1);
	check(!(glue_preempt_count() & 0xff), "a sleep with preemption off");
	if (allocating)
		user_fail("an allocation sleeps");
	usleep(200);
}

void user_may_sleep(void)
{
	check(!(glue_preempt_count() & 0xff), "a possible sleep with preemption off");
}

void user_lock(int on)
{
	if (on)
		pthread_mutex_lock(&zone_lock);
	else
		pthread_mutex_unlock(&zone_lock);
}

/* Per-CPU data, addressed by %gs. Each thread has a copy of this section. */
#define OWN __attribute__((section("own")))
static char task[16384];
int __preempt_count OWN = 1U << 31;	/* PREEMPT_ENABLED */
void *const_current_task OWN = task;
unsigned long __ref_stack_chk_guard OWN = 1;

/* Functions that the object calls in its own ways. */
void __SCT__might_resched(void)
{
	user_may_sleep();
}

void __SCT__cond_resched(void)
{
	user_may_sleep();
}

#define NOTHING(name) asm(".globl " #name "\n" #name ": ret")
NOTHING(__fentry__);
NOTHING(__x86_return_thunk);
NOTHING(__SCT__preempt_schedule);
asm(".globl __x86_indirect_thunk_rax\n__x86_indirect_thunk_rax: jmp *%rax");
NOTHING(__SCK__might_resched);
NOTHING(__SCK__cond_resched);
NOTHING(__SCK__preempt_schedule);

/*
 * Write the sites of all static keys before any thread runs: deferred_sections_left is on, the
 * others are off. Without objtool, a site is a jump at first.
 */
struct jump_entry {
	int code, target;
	long key;
};

extern struct jump_entry __start___jump_table[], __stop___jump_table[];
extern char deferred_sections_left[], __executable_start[], etext[];

static void write_static_keys(void)
{
	struct jump_entry *e;
	int sites = 0;

	check(!mprotect((void *)((unsigned long)__executable_start & ~4095UL),
			etext - __executable_start + 4096, PROT_READ | PROT_WRITE | PROT_EXEC),
	      "mprotect()");
	for (e = __start___jump_table; e < __stop___jump_table; e++) {
		unsigned char *code = (unsigned char *)&e->code + e->code;
		unsigned char *target = (unsigned char *)&e->target + e->target;
		const int on = (char *)&e->key + (e->key & ~3L) == deferred_sections_left;
		const int size = code[0] == 0xeb || code[0] == 0x66 ? 2 : 5;
		const int rel = target - (code + size);

		sites += on;
		if (on ^ (e->key & 1)) {
			code[0] = size == 2 ? 0xeb : 0xe9;
			memcpy(code + 1, &rel, size - 1);
		} else {
			memcpy(code, size == 2 ? "\x66\x90" : "\x0f\x1f\x44\0\0", size);
		}
	}
	check(sites, "no site of deferred_sections_left");
}

extern char __start_own[], __stop_own[];

/* Give this thread its own copy of what a CPU has of its own. */
static void be_a_cpu(void)
{
	char *own = malloc(__stop_own - __start_own);

	memcpy(own, __start_own, __stop_own - __start_own);
	syscall(SYS_arch_prctl, ARCH_SET_GS, own - __start_own);
}

/* Allocate, and check that this takes no longer than work does. */
static int allocate(unsigned int order, int atomic, int nolock)
{
	int ok;

	allocating = 1;
	ok = glue_try(order, atomic, nolock);
	allocating = 0;
	if (ok)
		atomic_fetch_add(&taken, 1L << order);
	else
		atomic_fetch_add(&passed_over, 1);
	return ok;
}

static atomic_int running;

/* Takes memory until none is left. */
static void *allocator(void *arg)
{
	int failures = 0;

	be_a_cpu();
	seed = (long)arg;
	while (failures < 200) {
		const unsigned int r = rand_r(&seed);

		if (allocate(r % 16 ? 3 : 10, r % 32 == 1, r % 32 == 2)) {
			failures = 0;
			continue;
		}
		failures++;
		/* The slow path does this before it reclaims. */
		if (glue_wait())
			atomic_fetch_add(&waits, 1);
		else if (glue_has_deferred())
			usleep(100);	/* reclaim: others are freeing the last chunks */
	}
	return NULL;
}

static void *initialiser(void *arg)
{
	be_a_cpu();
	seed = (long)arg;
	for (int i = 0; i < 6; i++) {
		const unsigned long section = rand_r(&seed) % NR_SECTIONS;
		const unsigned long pfn = FIRST_PFN + section * SECTION_PAGES;

		glue_init_range(pfn, pfn + SECTION_PAGES * 2);
		check(!glue_is_deferred(pfn), "a page is deferred after deferred_sections_init_range()");
		for (unsigned long c = section * CHUNKS; c < (section + 1) * CHUNKS; c++)
			check(chunk[c] == FREE || chunk[c] == APART_NOT,
			      "a chunk is not free after deferred_sections_init_range()");
		usleep(500);
	}
	return NULL;
}

static atomic_long nr_poisoned;

static void *poisoner(void *arg)
{
	be_a_cpu();
	seed = (long)arg;
	for (int i = 0; i < 3; i++) {
		const unsigned long pfn = FIRST_PFN + (NR_SECTIONS - 1 - rand_r(&seed) % 6) * SECTION_PAGES +
					  rand_r(&seed) % SECTION_PAGES;

		if (glue_page_poisoned(pfn) || !glue_poison(pfn))
			continue;
		check(glue_page_poisoned(pfn) && glue_page_count(pfn) == 1,
		      "a bad page is not marked or not held");
		check(chunk[index_of(pfn - pfn % CHUNK_PAGES)] == FREE,
		      "good pages of a bad chunk are not freed");
		atomic_fetch_add(&nr_poisoned, 1);
	}
	return NULL;
}

static void *thread(void *arg)
{
	be_a_cpu();
	seed = 7;
	glue_thread();
	return NULL;
}

static void boot(const char *name, int threads)
{
	scene = name;
	nr_threads = threads;
	be_a_cpu();
	write_static_keys();
	for (unsigned long i = 0; i < NR_SECTIONS * CHUNKS; i++)
		chunk[i] = APART_NOT;
	for (unsigned long i = 0; i < NR_SECTIONS; i++)
		online[i] = 1;
	glue_add_free(SECTION_PAGES + LOW_WMARK);
	glue_boot();
	check(chunk[HOLE * CHUNKS] == APART_NOT, "a section is set apart that is not free");
	check(glue_deferred() == (NR_SECTIONS - 1) * SECTION_PAGES, "too few sections are set apart");
}

static void check_end(void)
{
	const long all = (NR_SECTIONS - 1) * CHUNKS;

	for (unsigned long i = 0; i < NR_SECTIONS * CHUNKS; i++)
		check(chunk[i] == FREE || chunk[i] == APART_NOT, "a chunk is lost");
	check(writes == all, "chunks are not written once each");
	check(freed + nr_poisoned == all, "chunks are not freed once each");
	check(single == nr_poisoned * ((long)CHUNK_PAGES - 1), "pages beside bad ones are lost");
	check(!glue_deferred() && !glue_has_deferred(), "the counters say that memory is deferred");
	check(glue_managed() == all * (long)CHUNK_PAGES, "the managed pages are wrong");
	check(glue_free() + taken == all * (long)CHUNK_PAGES + (long)SECTION_PAGES + LOW_WMARK - nr_poisoned,
	      "the free pages are wrong");
	check(!glue_mark(), "the mark is not lowered");
}

/* Threads that allocate, and others beside them. */
static void scene_crowd(int threads)
{
	pthread_t t[16], k;
	int n = 0;

	boot("crowd", threads);
	pthread_create(&k, NULL, thread, NULL);
	for (long i = 0; i < threads; i++)
		pthread_create(&t[n++], NULL, i == 2 ? initialiser : i == 3 ? poisoner : allocator,
			       (void *)(i * 77 + random()));
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	/* Reclaim would go on: the rest of the memory is initialised by whoever needs it. */
	while (glue_has_deferred())
		glue_init_range(FIRST_PFN, FIRST_PFN + NR_SECTIONS * SECTION_PAGES);
	pthread_join(k, NULL);
	check_end();
	printf("crowd, %d threads: %ld pages taken, %ld chunks written, %ld zone passed over, %ld waits, %ld bad pages, %lu wake-ups\n",
	       threads, taken, writes, passed_over, waits, nr_poisoned, glue_irq_works());
}

static void *writer(void *arg)
{
	be_a_cpu();
	seed = 3;
	glue_grow();
	return NULL;
}

static void *late_waiter(void *arg)
{
	be_a_cpu();
	allocating = 1;		/* it spins, and does not sleep */
	check(glue_wait() || release, "nothing to wait for");
	allocating = 0;
	return NULL;
}

/*
 * One owner does not go on for as long as the test likes. Nobody is held up by that before all
 * other chunks of the zone are taken; then a section is missing, and only the slow path waits.
 */
static void scene_stall(int threads)
{
	pthread_t w, t;
	long longest = 0, begun, n = 0;

	boot("stall", threads);
	stall_pfn = FIRST_PFN + 4 * CHUNK_PAGES;
	pthread_create(&w, NULL, writer, NULL);
	while (!stalled)
		usleep(100);
	for (;;) {
		begun = now_us();
		if (!allocate(0, 0, 0))
			break;
		begun = now_us() - begun;
		longest = begun > longest ? begun : longest;
		n++;
	}
	check(!release, "the owner went on");
	/* All but the section with the chunk, the reserves, and what the watermark keeps. */
	check(n >= (long)((NR_SECTIONS - 1) * SECTION_PAGES) - MIN_WMARK,
	      "an allocation fails although there is memory");
	check(glue_free() - glue_deferred() <= MIN_WMARK + 1, "an allocation fails above the watermark");
	check(allocate(0, 1, 0), "an atomic allocation fails");
	pthread_create(&t, NULL, late_waiter, NULL);
	usleep(20000);
	release = 1;
	pthread_join(t, NULL);
	pthread_join(w, NULL);
	check(allocate(0, 0, 0), "an allocation fails after the wait");
	printf("stall: %ld pages taken beside a stalled owner, the longest took %ld us; no sleep\n",
	       n, longest);
}

/* Growth below the low watermark: one task at a time, and no more than is needed. */
static void *one_page(void *arg)
{
	be_a_cpu();
	seed = (long)arg;
	atomic_fetch_add(&running, 1);
	while (running < nr_threads)
		;
	allocate(0, 0, 0);
	return NULL;
}

static void scene_shortage(int threads, long below)
{
	pthread_t t[64];

	calm = 1;
	boot("shortage", threads);
	glue_add_free(-(glue_free() - glue_deferred()) + below);
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, one_page, (void *)i);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	printf("shortage, %d threads at once with %ld pages ready: %ld chunks written (%ld a section)\n",
	       threads, below, writes, CHUNKS);
	check(writes >= (long)CHUNKS, "no section is initialised");
	check(writes <= (long)(below >= MIN_WMARK ? CHUNKS : 3 * CHUNKS),
	      "too many chunks are written for one shortage");
}

int main(int argc, char **argv)
{
	setlinebuf(stdout);
	check(argc == 4, "usage: user SCENE THREADS SEED");
	srandom(atoi(argv[3]));
	seed = atoi(argv[3]);
	if (!strcmp(argv[1], "crowd"))
		scene_crowd(atoi(argv[2]));
	else if (!strcmp(argv[1], "stall"))
		scene_stall(1);
	else if (!strcmp(argv[1], "low"))
		scene_shortage(atoi(argv[2]), (MIN_WMARK + LOW_WMARK) / 2);
	else
		scene_shortage(atoi(argv[2]), MIN_WMARK / 2);
	return 0;
}
