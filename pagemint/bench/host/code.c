// SPDX-License-Identifier: GPL-2.0-only
/* Patches the code of all trees as boot does, again for each command patch. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "host.h"

/* From the linker. */
extern char __executable_start[], etext[];

struct site {
	char tree[32];
	unsigned long address;
};

static struct {
	struct site *site;
	unsigned long *mine;	/* the addresses of one tree; has room for all */
	size_t nr;
} returns;

void code_read_sites(const char *file)
{
	FILE *f = fopen(file, "r");
	struct site site;

	if (!f)
		host_die("system: cannot read the return sites");
	while (fscanf(f, "%31s %lx", site.tree, &site.address) == 2) {
		returns.site = realloc(returns.site, (returns.nr + 1) * sizeof(site));
		if (!returns.site)
			host_die("memory: out of memory");
		returns.site[returns.nr++] = site;
	}
	fclose(f);
	returns.mine = native_alloc(returns.nr * sizeof(*returns.mine));
}

static size_t sites_of(const struct native_tree *tree)
{
	size_t nr = 0;

	for (size_t i = 0; i < returns.nr; i++)
		if (!strcmp(returns.site[i].tree, tree->name))
			returns.mine[nr++] = returns.site[i].address;
	return nr;
}

/*
 * patch ...: restores the code of every tree as it was linked, and patches it as
 * a boot with these arguments does. glue/patch.c and the workloads read the
 * arguments. Must be the first command, and can be repeated.
 */
NATIVE_COMMAND(patch)
{
	const unsigned long text = (unsigned long)__executable_start & -PAGE;
	const size_t size = (unsigned long)etext - text;
	static void *linked;
	const struct native_tree *tree;

	if (mprotect((void *)text, size, PROT_READ | PROT_WRITE | PROT_EXEC))
		command_refuse(r, errno == ENOMEM ? "memory" : "execmem",
			       "fails: code cannot be made writable");
	if (!linked)
		linked = memcpy(native_alloc(size), (void *)text, size);
	memcpy((void *)text, linked, size);
	for (size_t i = 0; (tree = tree_at(i)); i++) {
		host_patching = tree->name;
		tree->patch(r, returns.mine, sites_of(tree));
	}
	host_patching = NULL;
	mprotect((void *)text, size, PROT_READ | PROT_EXEC);
}
