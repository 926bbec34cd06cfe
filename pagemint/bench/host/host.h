/* SPDX-License-Identifier: GPL-2.0-only */
/* The files of the plain half, each with the functions that other files call. */
#ifndef PAGEMINT_HOST_H
#define PAGEMINT_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "native.h"

#define PAGE	4096UL

/* main.c: map memory at an address; unless @writable, any access to it faults. */
void fixed_map(unsigned long addr, unsigned long size, int writable);

/* command.c */
/* The tree whose code is being patched, or NULL; errors name it. */
extern const char *host_patching;
/*
 * Print an error and end the program. @why begins with the kind of the error and a
 * colon: command (the caller does not know it), refused (by its handler), stand-in
 * (there is none), fault (of kernel code), memory (there is too little), threads, execmem
 * (memory may not be writable and executable), or system. process.py has the remedies.
 */
void host_die(const char *why) __attribute__((noreturn));
void command_run(char *line);
/* Refuse the command with an error of this kind. */
void command_refuse(struct native_request *r, const char *kind, const char *why)
	__attribute__((noreturn));
/* Add NAME=WORD to the answer. */
void answer_word(struct native_request *r, const char *name, const char *word);
/* The trees, in the order of the link. */
const struct native_tree *tree_at(size_t i);	/* NULL after the last one */

/* Per-CPU data, which kernel code reaches through %gs; see NATIVE_GS. */
#define PER_CPU __attribute__((section("per_cpu")))
extern unsigned long k___ref_stack_chk_guard;

/* faults.c: catch faults; the file @traps names the symbols without a stand-in. */
void faults_catch(const char *traps);

/* code.c: read the file @sites, with a tree and the address of a return in each line. */
void code_read_sites(const char *sites);

/* late.c: the calling thread lets others run. */
void late_switch(void);

/* memory.c: the memory of the page @pfn, and its struct page. */
void *memory_page(unsigned long pfn);
void *window_page(unsigned long pfn);
/* Whether the exception table has a fixup for a fault at @addr; if so, set the registers. */
int memory_fixup(unsigned long addr, unsigned long *ip, unsigned long *cx);

/* threads.c: call @fn on pieces of memory, in several threads. */
void threads_share(void (*fn)(void *dst, size_t bytes), void *dst, size_t bytes,
		   unsigned int threads);

#endif
