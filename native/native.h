/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the halves of the host program: the glue and the
 * workloads, compiled as kernel code once for each tree, and the rest, which
 * is plain C.
 *
 * The program answers commands. A command is a line of its name and its
 * arguments, "init tree=base start=1048576 ...", and is answered by a line of
 * the same form. With tree=NAME the kernel code of that tree handles it.
 */
#ifndef PAGEMINT_NATIVE_H
#define PAGEMINT_NATIVE_H

/* pfn_to_page(0), aligned for the largest compound that there is. */
#define NATIVE_VMEMMAP		(1UL << 44)
/* Where the memory of PFN 0 is mapped, as far as it is. */
#define NATIVE_DIRECT		(1UL << 45)
/* The dev_pagemap: its address enters every page. */
#define NATIVE_PGMAP		0x50000000UL
#define NATIVE_PGMAP_SIZE	4096UL
/* The node: the addresses of its free lists enter the pages on them. */
#define NATIVE_PGDAT		0x50100000UL
#define NATIVE_PGDAT_SIZE	0x100000UL
/*
 * The base of %gs, as of a CPU's own data in a kernel: the copy of the section
 * per_cpu lies that much higher. On 6.12 the canary of the stack has a place of its own.
 */
#define NATIVE_GS		0x10000000UL
#define NATIVE_GS_SIZE		4096UL
#define NATIVE_GS_CANARY	0x28UL
/* Symbols without a stand-in: each a page that cannot be touched. The linker script has these. */
#define NATIVE_TRAPS		0x60000000UL
#define NATIVE_TRAP_SIZE	4096UL
/* Threads that share work, at most. */
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

/* Have @fn called before the code of this tree is patched, with the command patch. */
#define NATIVE_BOOT(fn)								\
	static void (*const native_boot_##fn)(struct native_request *r)		\
	__attribute__((used, section("native_boot_table"))) = fn

/*
 * Read by the link from the source text of glue and workloads. The objects of
 * a tree that the file needs, where the tree has their source:
 */
#define NATIVE_OBJECTS(...)		struct native_request
/* Static functions of these objects that the file calls: */
#define NATIVE_STATICS(...)		struct native_request
/* Functions whose calls do nothing in these objects, each as "object:function": */
#define NATIVE_LEFT_OUT(...)		struct native_request

/* The kernel code of one tree. */
struct native_tree {
	const char *name;
	unsigned long page_size;	/* of struct page */
	const struct native_command *commands, *commands_end;
	/* Patches the code as boot does; @sites are the addresses of its returns. */
	void (*patch)(struct native_request *r, const unsigned long *sites, unsigned long nr);
	/* The address to go on at after a fault at @ip, or 0. */
	unsigned long (*fixup)(unsigned long ip);
} __attribute__((aligned(64)));	/* as large as its place in the section */

/* The plain half's side of a call from kernel code has k_ before its name, as any stand-in. */
#ifdef __KERNEL__
#define NATIVE_SERVICE(name)
/* Objtool knows the kernel's own functions that do not return, and no others. */
#define NATIVE_NORETURN
#else
#define NATIVE_SERVICE(name)	__asm__("k_" #name)
#define NATIVE_NORETURN		__attribute__((noreturn))
#endif

/* An argument; the command is refused if it has none of that name. */
unsigned long native_number(struct native_request *r, const char *name)
	NATIVE_SERVICE(native_number);
/* An argument, or @otherwise if it is not given. */
unsigned long native_number_or(struct native_request *r, const char *name,
			       unsigned long otherwise) NATIVE_SERVICE(native_number_or);
/* The index among @nr @names, which may have gaps, of an argument; other words are refused. */
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

/* Nanoseconds since some time. */
long native_now(void) NATIVE_SERVICE(native_now);
/* Refuse the command unless the memmap of these pages is mapped. */
void native_need_memmap(struct native_request *r, unsigned long pfn, unsigned long pages)
	NATIVE_SERVICE(native_need_memmap);
/* Refuse the command unless these pages themselves are mapped. */
void native_need_memory(struct native_request *r, unsigned long pfn, unsigned long pages)
	NATIVE_SERVICE(native_need_memory);
/* Zeroed memory, for good. */
void *native_alloc(unsigned long size) NATIVE_SERVICE(native_alloc);
/* End the program: kernel code came to a place where no stand-in helps. Does not return. */
void native_fail(const char *what, unsigned long addr)
	NATIVE_SERVICE(native_fail) NATIVE_NORETURN;

/* Have so many threads, the calling one among them. */
void native_have_threads(unsigned int threads) NATIVE_SERVICE(native_have_threads);
/* Hand work to another thread; take it back, or wait for its end. */
void native_queue(void *work, void (*fn)(void *work)) NATIVE_SERVICE(native_queue);
void native_cancel(void *work) NATIVE_SERVICE(native_cancel);
/* Pieces of work that were queued so far. */
unsigned long native_work_queued(void) NATIVE_SERVICE(native_work_queued);

/* Calls of memory_failure_queue() since the last reset, and the PFN of the first. */
struct native_poisoned {
	unsigned long nr, first_pfn;
};
struct native_poisoned *native_poisoned(void) NATIVE_SERVICE(native_poisoned);

/* The time at which online_pages() called its notifiers, or 0. */
long *native_going_online(void) NATIVE_SERVICE(native_going_online);
/* Whether the memory that is brought up has yet to be accepted. */
int *native_unaccepted(void) NATIVE_SERVICE(native_unaccepted);

/* Have the next fast string that faults stop @early bytes short; count faults from 0. */
void native_expect_faults(unsigned long early) NATIVE_SERVICE(native_expect_faults);
unsigned long native_faults(void) NATIVE_SERVICE(native_faults);

/* The functions that streaming_test.c tests. */
struct native_streaming;
unsigned long native_streaming_test(const struct native_streaming *s)
	NATIVE_SERVICE(native_streaming_test);

/*
 * The order in which folios are copied: folio i of nr, a power of two, comes from
 * native_source() and goes to native_target(). No prefetcher guesses it, and the
 * distances vary, since memory is slower at some.
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
