/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of the plain half, each with the functions that others call. */
#ifndef PAGEMINT_HOST_H
#define PAGEMINT_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "native.h"

#define PAGE	4096UL

/* fatal.c */
void host_die(const char *why) __attribute__((noreturn));

/* command.c */
void command_run(char *line);
/* Add NAME=WORD to the answer. */
void answer_word(struct native_request *r, const char *name, const char *word);

/* trees.c: the trees, in the order of the link. */
const struct native_tree *tree_at(size_t i);	/* NULL behind the last */
const struct native_tree *tree_named(const char *name);

/* fixed.c: memory at an address, which cannot be touched if it is not writable. */
void fixed_map(unsigned long addr, unsigned long size, int writable);

/* gs.c: data of the CPU, to which %gs points; see NATIVE_GS. */
#define PER_CPU __attribute__((section("per_cpu")))
extern unsigned long k___ref_stack_chk_guard;
void gs_set(void);

/* faults.c: @traps is a file with the names of the symbols without a stand-in. */
void faults_catch(const char *traps);

/* code.c: @sites is a file with a tree and the address of a return in each line. */
void code_read_sites(const char *sites);

/* window.c: the memmap. */
void *window_page(unsigned long pfn);

/* huge.c: bytes of the mapping at @base that lie in huge pages. */
unsigned long huge_bytes(const void *base);

/* memory.c: the memory of the pages. */
void *memory_page(unsigned long pfn);
/* Whether a fault at @addr is one to go on after; sets registers if so. */
int memory_fixup(unsigned long addr, unsigned long *ip, unsigned long *cx);

/* cpu.c: whether the CPU has a feature, named as __builtin_cpu_supports() takes it. */
int cpu_has(const char *feature);

/* threads.c: call @fn for pieces of memory in several threads. */
void threads_share(void (*fn)(void *dst, size_t bytes), void *dst, size_t bytes,
		   unsigned int threads);

#endif
