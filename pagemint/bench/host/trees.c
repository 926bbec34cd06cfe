// SPDX-License-Identifier: GPL-2.0-only
/* The trees in this program; glue/tree.c puts an entry for each into a section. */
#include <string.h>

#include "host.h"

extern const struct native_tree __start_native_trees[], __stop_native_trees[];

const struct native_tree *tree_at(size_t i)
{
	return __start_native_trees + i < __stop_native_trees ? __start_native_trees + i : NULL;
}

const struct native_tree *tree_named(const char *name)
{
	const struct native_tree *tree;

	for (size_t i = 0; (tree = tree_at(i)) && strcmp(tree->name, name);)
		i++;
	return tree;
}
