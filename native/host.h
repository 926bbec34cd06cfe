/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PAGEMINT_HOST_H
#define PAGEMINT_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "native.h"

/* Calls of memory_failure_queue() so far, and the PFN of the first. */
struct poison_log {
	unsigned long nr, first_pfn;
};

extern struct poison_log poison_log;

/* Of what %gs points to: see NATIVE_GS. */
#define PER_CPU __attribute__((section("per_cpu")))

extern const char __start_per_cpu[], __stop_per_cpu[];

/* The canary of the stack. */
extern unsigned long k___ref_stack_chk_guard;

extern unsigned long host_page_size;

/* The kernel code of one tree. Its symbols have a prefix in the program. */
struct variant {
	const char *name;
	struct native_tables tables;
	void (*patch)(const struct native_tables *t);
	void (*init)(const struct native_case *c);
	unsigned int (*block)(unsigned long pfn);	/* its bits */
	void (*zone)(const struct native_memory *m);
	void (*online)(const struct native_memory *m);
	void (*boot)(const struct native_memory *m);
	int (*mode_set)(const char *name);	/* none in an unpatched tree */
	void (*threads)(unsigned int threads);	/* nor this */
	unsigned long (*page_size)(void);
	unsigned long *events;
	void (*skew)(unsigned long bytes);
	int (*copy)(const struct native_copy *c);
	unsigned long (*fixup)(const struct native_tables *t, unsigned long ip);
};

/* From the link. */
extern const struct variant variants[];
extern const char *const trap_names[];
extern const size_t trap_count;

/* The one with that name, or NULL. */
const struct variant *find_variant(const char *name);

/* The index of the last of @nr names that is @name, or -1. */
int find_name(const char *const *names, int nr, const char *name);

/* Whether the CPU has it; a name as __builtin_cpu_supports() takes. */
int has_feature(const char *name);

/* Nanoseconds since some time. */
int64_t host_now(void);

void host_die(const char *why) __attribute__((noreturn));

/* When online_pages() had initialised the memmap and called its notifiers. */
extern int64_t going_online;

/* Whether the memory that is brought up has yet to be accepted. */
extern int unaccepted_memory;

/* Whether the memory map of the pages is mapped. */
int mapped(unsigned long pfn, unsigned long pages);

/* What is initialised, whose pageblocks are to be told of; no bit of them is set. */
void begin_init(const struct variant *v, unsigned long pfn, unsigned long pages);

/* A plain loop that fills memory with streaming stores. */
struct limit {
	const char *name;
	const char *feature;
	void (*fill)(void *dst, size_t bytes);
};

extern const struct limit limits[];

/* Pieces of work that were queued for other threads so far. */
extern unsigned long work_queued;

/* Have as many threads as that, with the calling one. */
void host_threads(unsigned int threads);

/* Fills memory with one of those loops, in so many threads. */
void host_fill(void (*fill)(void *dst, size_t bytes), void *dst, size_t bytes,
	       unsigned int threads);

/* A plain loop that copies memory. */
struct copy_loop {
	const char *name;
	const char *feature;
	int streamed;
	void (*copy)(void *dst, const void *src, size_t bytes);
};

extern const struct copy_loop copy_loops[];

/* Commands on folios; see host.c. */
void do_memory(const char *args);
void do_hide(const char *args);
void do_evict(const char *args);
void do_copy(const char *args);
void do_loops(const char *args);
void do_loop(const char *args);

/* Commands on ordinary memory; see host.c. */
void do_hotplug(const char *args);
void do_boot(const char *args);
void do_zone(const char *args);

/* Whether a fault at @addr is one to go on after; sets registers if so. */
int folio_fixup(unsigned long addr, unsigned long *ip, unsigned long *cx);

#endif
