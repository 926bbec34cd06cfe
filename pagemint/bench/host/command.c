// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands: finds the tree and the handler of a line, parses its arguments, prints the
 * answer, or the error that ends the program.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

enum { MAX_ARGUMENTS = 32 };

struct native_request {
	struct {
		const char *name, *value;
		int used;
	} argument[MAX_ARGUMENTS];
	unsigned int nr;
	const char *kind, *refusal;	/* of the error, and the reason, if the command is refused */
	const char *about;		/* the argument that is the reason, or NULL */
	jmp_buf refused;
	FILE *answer;
};

const char *host_patching;

/* Signal handlers call this, so it only formats into a buffer, writes and exits. */
void host_die(const char *why)
{
	char text[512];
	int n;

	if (host_patching)
		n = snprintf(text, sizeof(text), "error tree=%s %s\n", host_patching, why);
	else
		n = snprintf(text, sizeof(text), "error %s\n", why);
	_exit(write(STDOUT_FILENO, text, n) == n ? 3 : 4);
}

void native_fail(const char *what, unsigned long addr)
{
	char text[160];

	snprintf(text, sizeof(text), "fault: the host cannot go on: %s (%#lx)", what, addr);
	host_die(text);
}

extern const struct native_command __start_native_command_table[], __stop_native_command_table[];
/* glue/tree.c puts an entry for each tree into a section. */
extern const struct native_tree __start_native_trees[], __stop_native_trees[];

const struct native_tree *tree_at(size_t i)
{
	return __start_native_trees + i < __stop_native_trees ? __start_native_trees + i : NULL;
}

void command_refuse(struct native_request *r, const char *kind, const char *why)
{
	r->kind = kind;
	r->refusal = why;
	longjmp(r->refused, 1);
}

static void refuse(struct native_request *r, const char *why, const char *about)
{
	r->about = about;
	command_refuse(r, "command", why);
}

void native_refuse(struct native_request *r, const char *why)
{
	command_refuse(r, "refused", why);
}

static const char *find_argument(struct native_request *r, const char *name)
{
	for (unsigned int i = 0; i < r->nr; i++)
		if (!strcmp(r->argument[i].name, name)) {
			r->argument[i].used = 1;
			return r->argument[i].value;
		}
	return NULL;
}

const char *native_word(struct native_request *r, const char *name)
{
	const char *value = find_argument(r, name);

	if (!value)
		refuse(r, "lacks the argument", name);
	return value;
}

static unsigned long as_number(struct native_request *r, const char *name, const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end)
		refuse(r, "takes a number for", name);
	return value;
}

unsigned long native_number(struct native_request *r, const char *name)
{
	return as_number(r, name, native_word(r, name));
}

unsigned long native_number_or(struct native_request *r, const char *name,
			       unsigned long otherwise)
{
	const char *value = find_argument(r, name);

	return value ? as_number(r, name, value) : otherwise;
}

unsigned int native_choice(struct native_request *r, const char *name,
			   const char *const *names, unsigned int nr)
{
	const char *value = native_word(r, name);
	unsigned int i;

	for (i = 0; i < nr && !(names[i] && !strcmp(names[i], value)); i++)
		;
	if (i == nr)
		refuse(r, "does not know this value of", name);
	return i;
}

void native_answer(struct native_request *r, const char *name, long value)
{
	fprintf(r->answer, "%s=%ld ", name, value);
}

void native_answer_item(struct native_request *r, const char *name, const long *values,
			unsigned int nr)
{
	fprintf(r->answer, "%s=%ld", name, *values);
	while (--nr)
		fprintf(r->answer, ":%ld", *++values);
	fputc(' ', r->answer);
}

void answer_word(struct native_request *r, const char *name, const char *word)
{
	fprintf(r->answer, "%s=%s ", name, word);
}

/* Split a line at its blanks into the command and "name=value". */
static const char *parse(struct native_request *r, char *line)
{
	char *save, *command = strtok_r(line, " \n", &save), *word;

	while ((word = strtok_r(NULL, " ", &save))) {
		char *value = strchr(word, '=');

		if (!value)
			refuse(r, "takes NAME=VALUE, unlike", word);
		if (r->nr == MAX_ARGUMENTS)
			refuse(r, "has too many arguments", NULL);
		*value++ = 0;
		r->argument[r->nr].name = word;
		r->argument[r->nr++].value = value;
	}
	return command ? command : "";
}

static const struct native_command *find_command(struct native_request *r, const char *name)
{
	const struct native_command *c = __start_native_command_table, *end = __stop_native_command_table;
	const char *tree_name = find_argument(r, "tree");
	const struct native_tree *tree;

	if (tree_name) {
		for (size_t i = 0; (tree = tree_at(i)) && strcmp(tree->name, tree_name);)
			i++;
		if (!tree)
			refuse(r, "does not know the tree", tree_name);
		c = tree->commands;
		end = tree->commands_end;
	}
	while (c < end && strcmp(c->name, name))
		c++;
	if (c == end)
		refuse(r, "is unknown", NULL);
	return c;
}

static void check_used(struct native_request *r)
{
	for (unsigned int i = 0; i < r->nr; i++)
		if (!r->argument[i].used)
			refuse(r, "has no argument", r->argument[i].name);
}

/* Handle a line and print its answer. */
void command_run(char *line)
{
	static struct native_request r;
	static const char *name;
	static char *text;
	static size_t size;

	memset(&r, 0, sizeof(r));
	name = "this";
	r.answer = open_memstream(&text, &size);
	if (!r.answer)
		host_die("memory: out of memory");
	if (!setjmp(r.refused)) {
		line[strcspn(line, "\n")] = 0;
		name = parse(&r, line);
		find_command(&r, name)->run(&r);
		check_used(&r);
	}
	fclose(r.answer);
	if (r.refusal)
		printf("error %s: the command %s %s %s\n", r.kind, name, r.refusal,
		       r.about ? r.about : "");
	else
		printf("%s\n", text);
	free(text);
	fflush(stdout);
}
