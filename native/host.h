/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PAGEMINT_HOST_H
#define PAGEMINT_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "native.h"

/* One init_pageblock_migratetype(). */
struct block {
	unsigned long pfn;
	unsigned int migratetype;
	int isolate;
};

/* Calls so far; those below max are kept. */
struct block_log {
	size_t nr, max;
	struct block *entry;
};

extern struct block_log block_log;
extern unsigned long host_page_size;

/* The kernel code of one tree. Its symbols have a prefix in the program. */
struct variant {
	const char *name;
	struct native_tables tables;
	void (*patch)(const struct native_tables *t);
	void (*trace)(void);
	void (*init)(const struct native_case *c);
	int (*mode_set)(const char *name);	/* none in an unpatched tree */
	unsigned long (*page_size)(void);
	unsigned long *events;
};

/* From the link. */
extern const struct variant variants[];
extern const char *const trap_names[];
extern const size_t trap_count;

/* Nanoseconds since some time. */
int64_t host_now(void);

void host_die(const char *why) __attribute__((noreturn));

/* A plain loop that fills memory with streaming stores. */
struct limit {
	const char *name;
	const char *feature;	/* as __builtin_cpu_supports() has it */
	void (*fill)(void *dst, size_t bytes);
};

extern const struct limit limits[];

#endif
