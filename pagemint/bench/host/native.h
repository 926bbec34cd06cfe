/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interface between the two halves of the host program. The kernel half is
 * the glue and the workloads, compiled as kernel code once for each tree. The
 * plain half is the rest, in plain C.
 *
 * The program answers commands. A command is a line with its name and its
 * arguments, "init tree=base start=1048576 ...". The answer is a line of the same
 * form. With tree=NAME the kernel code of that tree handles the command.
 */
#ifndef PAGEMINT_NATIVE_H
#define PAGEMINT_NATIVE_H

/* pfn_to_page(0), aligned to the memmap of the largest compound. */
#define NATIVE_VMEMMAP		(1UL << 44)
/* The address of the memory of PFN 0; only some ranges of PFNs are mapped. */
#define NATIVE_DIRECT		(1UL << 45)
/* The dev_pagemap; at a fixed address, since every struct page contains it. */
#define NATIVE_PGMAP		0x50000000UL
#define NATIVE_PGMAP_SIZE	4096UL
/* The node; at a fixed address, since pages on its free lists point to it. */
#define NATIVE_PGDAT		0x50100000UL
#define NATIVE_PGDAT_SIZE	0x100000UL
/*
 * The base of %gs, through which kernel code reaches per-CPU data: a copy of the
 * section per_cpu lies that much above the section. On 6.12 the stack canary is at
 * a fixed offset from the base.
 *
 * No fixed address may lie in the GiB behind the program, where the kernel puts
 * the heap: the program then fails in one start of some thousand.
 */
#define NATIVE_GS		0x100000000UL
#define NATIVE_GS_SIZE		4096UL
#define NATIVE_GS_CANARY	0x28UL
/* Each symbol without a stand-in is a page here that faults. The linker script uses these. */
#define NATIVE_TRAPS		0x60000000UL
#define NATIVE_TRAP_SIZE	4096UL
/* The most threads that share work. */
#define NATIVE_MAX_THREADS	64

/* A command that is being handled. */
struct native_request;

struct native_command {
	const char *name;
	void (*run)(struct native_request *r);
};

/* Define the command @command; its body follows. */
#define NATIVE_COMMAND(command)							\
	static void native_do_##command(struct native_request *r);		\
	static const struct native_command native_command_##command		\
	__attribute__((used, section("native_command_table"))) = {			\
		#command, native_do_##command };				\
	static void native_do_##command(struct native_request *r)

/* Make the command patch call @fn before it patches the code of this tree. */
#define NATIVE_BOOT(fn)								\
	static void (*const native_boot_##fn)(struct native_request *r)		\
	__attribute__((used, section("native_boot_table"))) = fn

/*
 * The link reads these from the source text of glue and workloads. The objects of
 * a tree that the file needs; those whose source the tree lacks are left out:
 */
#define NATIVE_OBJECTS(...)		struct native_request
/* Static functions of these objects that the file calls: */
#define NATIVE_STATICS(...)		struct native_request
/* Functions whose calls in these objects go to others, each as "object:function=other": */
#define NATIVE_REPLACED(...)		struct native_request

/* The kernel code of one tree. */
struct native_tree {
	const char *name;
	unsigned long page_size;	/* of struct page */
	const struct native_command *commands, *commands_end;
	/* Patch the code as boot does; @sites are the addresses of its returns. */
	void (*patch)(struct native_request *r, const unsigned long *sites, unsigned long nr);
	/* The address at which to continue after a fault at @ip, or 0. */
	unsigned long (*fixup)(unsigned long ip);
	/* The static key of the branch at @ip, or 0 if there is no branch. */
	unsigned long (*branch_key)(unsigned long ip);
} __attribute__((aligned(64)));	/* so that the section is an array of these */

/* In the plain half, functions that kernel code calls have the prefix k_, as all stand-ins do. */
#ifdef __KERNEL__
#define NATIVE_SERVICE(name)
/* Objtool knows only the kernel's own functions that do not return. */
#define NATIVE_NORETURN
#else
#define NATIVE_SERVICE(name)	__asm__("k_" #name)
#define NATIVE_NORETURN		__attribute__((noreturn))
#endif

/* The number in an argument; refuses the command if it lacks the argument. */
unsigned long native_number(struct native_request *r, const char *name)
	NATIVE_SERVICE(native_number);
/* The number in an argument, or @otherwise if it is not given. */
unsigned long native_number_or(struct native_request *r, const char *name,
			       unsigned long otherwise) NATIVE_SERVICE(native_number_or);
/* The index of an argument among @nr @names, which may have NULLs; refuses other words. */
unsigned int native_choice(struct native_request *r, const char *name,
			   const char *const *names, unsigned int nr)
	NATIVE_SERVICE(native_choice);
/* The text of an argument. */
const char *native_word(struct native_request *r, const char *name)
	NATIVE_SERVICE(native_word);
/* Add NAME=VALUE to the answer. */
void native_answer(struct native_request *r, const char *name, long value)
	NATIVE_SERVICE(native_answer);
/* Add NAME=A:B:C to the answer; the same name may come again. */
void native_answer_item(struct native_request *r, const char *name, const long *values,
			unsigned int nr) NATIVE_SERVICE(native_answer_item);
/* Refuse the command; does not return. */
void native_refuse(struct native_request *r, const char *why)
	NATIVE_SERVICE(native_refuse) NATIVE_NORETURN;

/* The time in nanoseconds, from an arbitrary start. */
long native_now(void) NATIVE_SERVICE(native_now);
/* Refuse the command unless the memmap of these pages is mapped. */
void native_need_memmap(struct native_request *r, unsigned long pfn, unsigned long pages)
	NATIVE_SERVICE(native_need_memmap);
/* Refuse the command unless these pages themselves are mapped. */
void native_need_memory(struct native_request *r, unsigned long pfn, unsigned long pages)
	NATIVE_SERVICE(native_need_memory);
/* Evict memory from the cache. */
void native_evict(const void *start, unsigned long bytes) NATIVE_SERVICE(native_evict);
/* Allocate zeroed memory, which is never freed. */
void *native_alloc(unsigned long size) NATIVE_SERVICE(native_alloc);
/* End the program: kernel code got into a state that the host cannot handle. Does not return. */
void native_fail(const char *what, unsigned long addr)
	NATIVE_SERVICE(native_fail) NATIVE_NORETURN;

/* Start threads until there are @threads, with the calling one. */
void native_have_threads(unsigned int threads) NATIVE_SERVICE(native_have_threads);
/* Hand work to another thread. Cancel work that has not started, or wait for its end. */
void native_queue(void *work, void (*fn)(void *work)) NATIVE_SERVICE(native_queue);
void native_cancel(void *work) NATIVE_SERVICE(native_cancel);
/* Number of pieces of work that were queued so far. */
unsigned long native_work_queued(void) NATIVE_SERVICE(native_work_queued);

/* Number of calls of memory_failure_queue() since the last reset, and the PFN of the first. */
struct native_poisoned {
	unsigned long nr, first_pfn;
};
struct native_poisoned *native_poisoned(void) NATIVE_SERVICE(native_poisoned);

/* The time at which online_pages() called its notifiers, or 0. */
long *native_going_online(void) NATIVE_SERVICE(native_going_online);
/* Whether the memory that goes online has yet to be accepted. */
int *native_unaccepted(void) NATIVE_SERVICE(native_unaccepted);

/* Make the next fast string that faults stop @early bytes early; count faults from 0. */
void native_expect_faults(unsigned long early) NATIVE_SERVICE(native_expect_faults);
unsigned long native_faults(void) NATIVE_SERVICE(native_faults);

/*
 * The order in which folios are copied: copy i of nr, a power of two, is from folio
 * native_source() to folio native_target(). No prefetcher guesses this order, and
 * the distances vary, since memory is slower at some distances.
 */
static inline unsigned long native_source(unsigned long i, unsigned long nr)
{
	return i * 13 % nr;
}

static inline unsigned long native_target(unsigned long i, unsigned long nr)
{
	return (i * 7 + 5) % nr;
}

#endif
