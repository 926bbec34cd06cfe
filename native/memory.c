// SPDX-License-Identifier: GPL-2.0-only
/* The commands that bring up ordinary memory. */
#include <stdio.h>
#include <string.h>

#include "host.h"

/* A variant, or NULL; @n is how far @args has been read. */
static const struct variant *read_memory(const char *args, struct native_memory *m, int *n)
{
	char name[16];

	if (sscanf(args, "%15s %lu %lu %u %d%n", name, &m->start_pfn, &m->nr_pages, &m->nid,
		   &unaccepted_memory, n) != 5 || !mapped(m->start_pfn, m->nr_pages))
		return NULL;
	return find_variant(name);
}

static void start(const struct variant *v, const struct native_memory *m)
{
	begin_init(v, m->start_pfn, m->nr_pages);
	v->zone(m);
}

void do_hotplug(const char *args)
{
	int64_t begun, init = 0, walk = 0;
	unsigned long block, left;
	const struct variant *v;
	struct native_memory m;
	int n;

	v = read_memory(args, &m, &n);
	if (!v || sscanf(args + n, "%lu %u", &block, &m.driver) != 2 || !block) {
		printf("error usage\n");
		return;
	}
	start(v, &m);
	for (left = m.nr_pages; left; left -= m.nr_pages, m.start_pfn += m.nr_pages) {
		m.nr_pages = block - m.start_pfn % block;
		if (m.nr_pages > left)
			m.nr_pages = left;
		going_online = 0;
		begun = host_now();
		v->online(&m);
		walk += host_now() - going_online;
		init += going_online - begun;
	}
	printf("%ld %ld %lu\n", (long)init, (long)walk, *v->events);
}

void do_boot(const char *args)
{
	enum { MAX = sizeof(((struct native_memory *)0)->free) / sizeof(unsigned long[2]) };
	const struct variant *v;
	struct native_memory m;
	int64_t begun, ended;
	int n, more;

	v = read_memory(args, &m, &n);
	for (m.nr_free = 0; v && m.nr_free < MAX; m.nr_free++, n += more) {
		unsigned long *range = m.free[m.nr_free];

		if (sscanf(args + n, "%lu %lu%n", &range[0], &range[1], &more) != 2)
			break;
	}
	if (!v || !m.nr_free) {
		printf("error usage\n");
		return;
	}
	start(v, &m);
	begun = host_now();
	v->boot(&m);
	ended = host_now();
	printf("%ld %lu\n", (long)(ended - begun), *v->events);
}

/* Its bytes in words of 16 digits would be a long line, so their hash (FNV-1a). */
void do_zone(const char *args)
{
	const unsigned char *bytes = (const unsigned char *)NATIVE_PGDAT;
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < NATIVE_PGDAT_SIZE; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3;
	printf("%016lx\n", hash);
}
