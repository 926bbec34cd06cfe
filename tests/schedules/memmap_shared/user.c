// SPDX-License-Identifier: GPL-2.0-only
/*
 * The user half: threads, a memory with real read-only and stale mappings, and stalls.
 *
 * The vmemmap of the device is really mapped: a write to a shared struct page faults. A
 * mapping changes only in flush_tlb_kernel_range(), so until then reads are stale, as
 * those of the slowest TLB.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "world.h"

#define PAGE		4096UL
#define PER_TABLE	512U
#define MAX_THREADS	8
#define DEVICE_MAP	(VMEMMAP + (DEVICE_PHYS >> 12 << 6))
#define BLOCK_ORDER	9

static uint64_t seed, round_number;
static int threads_now, arena_fd;
static const char *scenario;

void fail(const char *what, unsigned long number)
{
	fprintf(stderr, "FAILED: %s (%lu); scenario %s, seed %lu, round %lu, %d threads\n", what,
		number, scenario, seed, round_number, threads_now);
	_exit(1);
}

/* Random numbers and stalls, each thread's own. */

static __thread uint64_t state = 88172645463325252UL;
static __thread bool killed, stalls;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 2685821657736338717UL;
}

static bool one_in(unsigned int n)
{
	return (next_random() >> 33) % n == 0;
}

void stall(void)
{
	unsigned int i = stalls ? (next_random() >> 33) % 16 : 0;

	if (i == 15)
		usleep((next_random() >> 33) % 300);
	else if (i >= 11)
		sched_yield();
}

/* The plan of the round. */

static struct plan {
	unsigned int no_block, no_page;		/* one allocation of so many fails; 0: none */
	unsigned int kill;			/* one call of so many is killed; 0: none */
	bool same;				/* all tasks reclaim alike, and need one section */
	bool unbind;				/* in the middle */
	bool locks;				/* reclaim waits for the locks of tasks */
} plan;

/* Ordinary memory: blocks from the bottom, pages from the top. */

static pthread_mutex_t arena_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char used[ARENA_BYTES / PAGE];	/* order + 1 */
static unsigned long free_blocks[ARENA_BYTES / BLOCK_BYTES], free_pages[ARENA_BYTES / PAGE];
static unsigned long nr_blocks, nr_pages;
static atomic_ulong in_use, blocks_taken, flushes;
#define PAGES_FROM	(ARENA_BYTES / 2)

static void arena_setup(void)
{
	void *map;

	arena_fd = memfd_create("arena", 0);
	if (arena_fd < 0 || ftruncate(arena_fd, ARENA_BYTES))
		fail("memfd", errno);
	map = mmap((void *)(DIRECT_MAP + ARENA_PHYS), ARENA_BYTES, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED_NOREPLACE, arena_fd, 0);
	if (map == MAP_FAILED)
		fail("the direct map", errno);
	/* Its own struct pages. */
	map = mmap((void *)(VMEMMAP + (ARENA_PHYS >> 12 << 6)), ARENA_BYTES >> 12 << 6,
		   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (map == MAP_FAILED)
		fail("the memmap", errno);
	for (unsigned long at = 0; at < PAGES_FROM; at += BLOCK_BYTES)
		free_blocks[nr_blocks++] = at;
	for (unsigned long at = PAGES_FROM; at < ARENA_BYTES; at += PAGE)
		free_pages[nr_pages++] = at;
}

static void *take(unsigned int order)
{
	unsigned long at;

	pthread_mutex_lock(&arena_lock);
	if (!(order ? nr_blocks : nr_pages))
		fail("the arena is too small", order);
	at = order ? free_blocks[--nr_blocks] : free_pages[--nr_pages];
	used[at / PAGE] = order + 1;
	pthread_mutex_unlock(&arena_lock);
	return (void *)(DIRECT_MAP + ARENA_PHYS + at);
}

static void *take_table(void)
{
	return memset(take(0), 0, PAGE);
}

/*
 * Locks that reclaim needs, as the kernel has them: a task that may not use __GFP_FS
 * holds the handle of a journal, and one that may not use __GFP_IO holds off a suspend.
 * Reclaim waits until nobody holds them; new ones have to wait for that.
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int holders, reclaimers;
} locks[2] = {
	{ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0 },
	{ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0 },
};

static void lock_wait(int i)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	if (pthread_cond_timedwait(&locks[i].changed, &locks[i].lock, &until))
		fail("deadlock: reclaim and its locks wait for each other", i);
}

static void hold(int i, int way)
{
	pthread_mutex_lock(&locks[i].lock);
	while (way > 0 && locks[i].reclaimers)
		lock_wait(i);
	locks[i].holders += way;
	pthread_cond_broadcast(&locks[i].changed);
	pthread_mutex_unlock(&locks[i].lock);
}

static void reclaim(int i)
{
	pthread_mutex_lock(&locks[i].lock);
	locks[i].reclaimers++;
	while (locks[i].holders)
		lock_wait(i);
	locks[i].reclaimers--;
	pthread_cond_broadcast(&locks[i].changed);
	pthread_mutex_unlock(&locks[i].lock);
}

void *arena_alloc(unsigned int order, int io, int fs, int may_fail)
{
	stall();
	if (plan.locks && (order || one_in(256))) {
		if (fs)
			reclaim(0);
		if (io)
			reclaim(1);
	}
	if (order && plan.no_block && one_in(plan.no_block))
		return NULL;
	if (!order && may_fail && plan.no_page && one_in(plan.no_page))
		return NULL;
	stall();
	in_use++;
	if (order)
		blocks_taken++;
	return take(order);
}

void arena_free(void *address, unsigned int order)
{
	unsigned long at = (unsigned long)address - DIRECT_MAP - ARENA_PHYS;

	if (at >= ARENA_BYTES || used[at / PAGE] != order + 1)
		fail("freed what is not allocated", at);
	pthread_mutex_lock(&arena_lock);
	used[at / PAGE] = 0;
	if (order)
		free_blocks[nr_blocks++] = at;
	else
		free_pages[nr_pages++] = at;
	pthread_mutex_unlock(&arena_lock);
	in_use--;
	stall();
}

/* The TLB, of which there is one. */

static unsigned long tlb[SECTIONS];	/* the entry by which each section is mapped */

static void map_at(unsigned long address, unsigned long size, unsigned long entry)
{
	int prot = PROT_READ | (kernel_is_writable(entry) ? PROT_WRITE : 0);

	if (mmap((void *)address, size, prot, MAP_SHARED | MAP_FIXED, arena_fd,
		 (kernel_phys(entry) & ~(size - 1)) - ARENA_PHYS) == MAP_FAILED)
		fail("mmap", errno);
}

static void load(unsigned long section)
{
	const unsigned long entry = kernel_pmd(section);
	const unsigned long address = DEVICE_MAP + section * BLOCK_BYTES;
	unsigned long first;

	if (kernel_is_leaf(entry)) {
		map_at(address, BLOCK_BYTES, entry);
	} else {
		first = kernel_pte(section, 0);
		if (!kernel_is_writable(first))
			map_at(address, BLOCK_BYTES, first);
		else
			for (unsigned int i = 0; i < PER_TABLE; i++)
				map_at(address + i * PAGE, PAGE, kernel_pte(section, i));
	}
	tlb[section] = entry;
}

void flush_tlb_kernel_range(unsigned long start, unsigned long end)
{
	unsigned long section, at;

	flushes++;
	stall();
	for (section = 0; section < SECTIONS; section++) {
		at = DEVICE_MAP + section * BLOCK_BYTES;
		if (end <= at || start >= at + BLOCK_BYTES)
			continue;
		if (kernel_pmd(section) == tlb[section] && kernel_is_leaf(tlb[section]))
			continue;
		/* One address is enough for a large page, as long as one is mapped. */
		if ((start > at || end < at + BLOCK_BYTES) &&
		    !(kernel_is_leaf(tlb[section]) && kernel_is_leaf(kernel_pmd(section))))
			fail("a part was flushed of what is no large page", section);
		load(section);
	}
	stall();
}

/* Other calls of the object. */

static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wait_cond = PTHREAD_COND_INITIALIZER;
static unsigned long wakes;
static __thread unsigned long wakes_seen;
static atomic_ulong waits;

void init_wait_entry(void *entry, int flags)
{
}

long prepare_to_wait_event(void *head, void *entry, int task_state)
{
	stall();
	pthread_mutex_lock(&wait_lock);
	wakes_seen = wakes;
	pthread_mutex_unlock(&wait_lock);
	return killed ? -512 : 0;
}

void schedule(void)
{
	struct timespec until;

	waits++;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	pthread_mutex_lock(&wait_lock);
	while (wakes == wakes_seen)
		if (pthread_cond_timedwait(&wait_cond, &wait_lock, &until))
			fail("deadlock: a task waits for another for ever", 0);
	pthread_mutex_unlock(&wait_lock);
}

void finish_wait(void *head, void *entry)
{
}

int __wake_up(void *head, unsigned int mode, int nr, void *key)
{
	stall();
	pthread_mutex_lock(&wait_lock);
	wakes++;
	pthread_cond_broadcast(&wait_cond);
	pthread_mutex_unlock(&wait_lock);
	return 1;
}

static pthread_mutex_t the_mutex = PTHREAD_MUTEX_INITIALIZER;

void mutex_lock(void *lock)
{
	stall();
	pthread_mutex_lock(&the_mutex);
}

void mutex_unlock(void *lock)
{
	stall();
	pthread_mutex_unlock(&the_mutex);
}

void _raw_spin_lock(atomic_int *lock)
{
	while (atomic_exchange(lock, 1))
		sched_yield();
}

void _raw_spin_unlock(atomic_int *lock)
{
	atomic_store(lock, 0);
}

int set_memory_ro(unsigned long address, int pages)
{
	return 0;
}

int set_memory_rw(unsigned long address, int pages)
{
	return 0;
}

static atomic_long memmap_pages;

void memmap_pages_add(long delta)
{
	memmap_pages += delta;
}

int _printk(const char *format, ...)
{
	return 0;
}

#define NEVER(name) void name(void) { fail("called: " #name, 0); }
NEVER(BUG_func)
NEVER(cc_mkdec)
NEVER(__stack_chk_fail)
NEVER(__ubsan_handle_out_of_bounds)
NEVER(__ubsan_handle_shift_out_of_bounds)
NEVER(__SCT__WARN_trap)

struct list {
	struct list *next, *prev;
};

bool __list_add_valid_or_report(struct list *new, struct list *prev, struct list *next)
{
	if (next->prev != prev || prev->next != next || new == prev || new == next)
		fail("a list is broken", 0);
	return true;
}

bool __list_del_entry_valid_or_report(struct list *entry)
{
	if (entry->prev->next != entry || entry->next->prev != entry)
		fail("a list is broken", 1);
	return true;
}

void __rcu_read_lock(void) { }
void __rcu_read_unlock(void) { }
asm(".globl __fentry__, __x86_return_thunk, __SCT__cond_resched, __SCT__might_resched\n"
    "__fentry__: ret\n__x86_return_thunk: ret\n"
    ".macro thunk reg\n.globl __x86_indirect_thunk_\\reg\n__x86_indirect_thunk_\\reg: jmp *%\\reg\n.endm\n"
    ".irp reg, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15\n"
    "thunk \\reg\n.endr\n"
    "__SCT__cond_resched: xor %eax, %eax\n ret\n__SCT__might_resched: xor %eax, %eax\n ret\n");
/* By GS, whose base is 0. */
unsigned long __ref_stack_chk_guard = 0x1234;
extern void *test_current;
void *const_current_task;
unsigned long __SCK__WARN_trap, __SCK__cond_resched, __SCK__might_resched, param_ops_bool;

/* The round. */

static _Atomic uint64_t written[SECTIONS * SECTION_PAGES];
static unsigned long logged[MAX_THREADS * 4 * 8];	/* pages in it */
static atomic_uint nr_logged;
static atomic_bool is_released, stop;
static atomic_ulong refused, interrupted, populated_calls;
static pthread_barrier_t barrier;

void released(void)
{
	is_released = true;
}

static volatile uint64_t *word(unsigned long page, unsigned int i)
{
	return (volatile uint64_t *)(DEVICE_MAP + page * 64) + i;
}

static uint64_t token(unsigned long page)
{
	return round_number << 32 | (page + 1);
}

static void check(unsigned long page)
{
	const uint64_t before = atomic_load(&written[page]);
	const uint64_t now = *word(page, DATA_WORD);

	if (*word(page, MAGIC_WORD) != MAGIC)
		fail("a struct page is not as it was initialised", page);
	if (before ? now != before : now != 0 && now != token(page))
		fail("a struct page lost a write, or has another one's", page);
}

static void populate(int thread)
{
	unsigned long page = next_random() % (SECTIONS * SECTION_PAGES), nr = 1, i, at;
	int flags = next_random() % 3, may_fail = next_random() % 2, by_pfn = next_random() % 2;
	int err;

	if (plan.same) {
		page %= SECTION_PAGES;
		flags = KERNEL;
	} else if (one_in(4)) {
		nr = next_random() % (SECTIONS * SECTION_PAGES - page) + 1;
	} else if (one_in(2)) {
		page %= 2 * SECTION_PAGES;
		nr = SECTION_PAGES;
	}
	/*
	 * A caller that uses the pages keeps the device bound. One that does not must
	 * not populate what is being removed, either.
	 */
	if (!plan.unbind && !kernel_get())
		fail("the device is gone", 0);
	killed = plan.kill && one_in(plan.kill);
	if (plan.locks && flags < KERNEL)
		hold(0, 1);
	if (plan.locks && flags < NOFS)
		hold(1, 1);
	err = kernel_populate(page, nr, flags, may_fail, by_pfn);
	if (plan.locks && flags < NOFS)
		hold(1, -1);
	if (plan.locks && flags < KERNEL)
		hold(0, -1);

	if (err == -ENOMEM && may_fail && plan.no_page)
		refused++;
	else if (err == -EINTR && killed)
		interrupted++;
	else if (err == -ENODEV && plan.unbind)
		;
	else if (err)
		fail("populating failed", -err);
	if (plan.unbind && !kernel_get())
		return;
	if (!err) {
		populated_calls++;
		for (at = page; at < page + nr; at += SECTION_PAGES)
			if (kernel_is_shared(at / SECTION_PAGES))
				fail("it is shared still", at / SECTION_PAGES);
		for (i = 0; i < 8; i++) {
			at = page + next_random() % nr;
			at -= at % threads_now;
			at += thread;
			if (at < page || at >= page + nr)
				continue;
			*word(at, DATA_WORD) = token(at);
			atomic_store(&written[at], token(at));
			logged[nr_logged++] = at;
		}
	}
	kernel_put();
}

static void *work(void *argument)
{
	const int thread = (int)(long)argument;

	state = (seed * 1000003 + round_number) * 1000003 + thread + 1;
	for (int i = 0; i < 20; i++)
		next_random();
	stalls = true;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 4; i++)
		populate(thread);
	return NULL;
}

static void *look(void *argument)
{
	state = (seed * 1000003 + round_number) * 7 + 5;
	while (!stop) {
		for (int i = 0; i < 64; i++)
			check(next_random() % (SECTIONS * SECTION_PAGES));
		usleep(50);
	}
	return NULL;
}

static unsigned long do_round(const struct plan *wanted)
{
	const unsigned long before = in_use, flushed = flushes;
	unsigned long own = 0, taken;
	pthread_t workers[MAX_THREADS], looker;

	stop = is_released = false;
	blocks_taken = 0;
	/* Nothing fails at the bind. */
	plan = (typeof(plan)){};
	if (kernel_bind())
		fail("no bind", 0);
	plan = *wanted;
	for (unsigned long i = 0; i < SECTIONS; i++)
		load(i);
	taken = blocks_taken;
	pthread_barrier_init(&barrier, NULL, threads_now + 1);
	for (int i = 0; i < threads_now; i++)
		pthread_create(&workers[i], NULL, work, (void *)(long)i);
	pthread_create(&looker, NULL, look, NULL);
	pthread_barrier_wait(&barrier);
	if (plan.unbind) {
		usleep(next_random() % 2000);
		kernel_kill();
		while (!is_released)
			usleep(20);
		stop = true;
		pthread_join(looker, NULL);
		/* The others may still call, and are told that the device is gone. */
		for (unsigned long i = 0; i < SECTIONS; i++)
			own += !kernel_is_shared(i);
		kernel_unbind();
		for (int i = 0; i < threads_now; i++)
			pthread_join(workers[i], NULL);
	} else {
		for (int i = 0; i < threads_now; i++)
			pthread_join(workers[i], NULL);
		stop = true;
		pthread_join(looker, NULL);
		for (unsigned long i = 0; i < SECTIONS; i++)
			own += !kernel_is_shared(i);
		for (unsigned long page = 0; page < SECTIONS * SECTION_PAGES; page += 509)
			check(page);
		for (unsigned int i = 0; i < nr_logged; i++)
			check(logged[i]);
		kernel_kill();
		if (!is_released)
			fail("a reference is left", 0);
		kernel_unbind();
	}
	pthread_barrier_destroy(&barrier);
	while (nr_logged)
		written[logged[--nr_logged]] = 0;
	if (in_use != before)
		fail("pages leaked", in_use - before);
	/* The unbind would take those of the sections with their own. */
	if (memmap_pages != (long)(own * PER_TABLE))
		fail("memmap pages are counted wrongly", memmap_pages);
	memmap_pages = 0;
	if (plan.same && (blocks_taken - taken != own || own != 1))
		fail("copies were made in vain", blocks_taken - taken);
	if (plan.same && flushes - flushed != 1)
		fail("flushes", flushes - flushed);
	return own;
}

static void on_segv(int number, siginfo_t *info, void *context)
{
	fail("a fault: a write to a shared struct page?", (unsigned long)info->si_addr);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "herd", "any", "shortage", "killed", "unbind", "locks" };
	struct sigaction action = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO };
	const unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 600;
	unsigned long own = 0;
	struct timespec from, to;
	struct plan wanted;

	seed = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	const_current_task = test_current;
	arena_setup();
	kernel_setup(take_table);
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (round_number = 0; round_number < rounds; round_number++) {
		scenario = names[round_number % 6];
		threads_now = 2 + round_number / 6 % 7;
		wanted = (struct plan){
			.same = round_number % 6 == 0,
			.no_block = round_number % 6 == 2 ? 8 : 0,
			.no_page = round_number % 6 == 2 ? 2048 : 0,
			.kill = round_number % 6 == 3 ? 3 : 0,
			.unbind = round_number % 6 == 4,
			.locks = round_number % 6 == 5,
		};
		own += do_round(&wanted);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	if (rounds >= 100 && (!interrupted || !refused || !waits))
		fail("some case never came", interrupted ? refused ? 2 : 1 : 0);
	printf("%lu rounds in %ld s: %lu calls populated, %lu sections, %lu flushes, %lu waits, "
	       "%lu refused, %lu killed\n", rounds, to.tv_sec - from.tv_sec, populated_calls, own,
	       flushes, waits, refused, interrupted);
	return 0;
}
