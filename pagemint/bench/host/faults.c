// SPDX-License-Identifier: GPL-2.0-only
/* Faults: if kernel code touched a symbol without a stand-in, prints its name. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "host.h"

static struct {
	char **name;
	size_t nr;
} traps;

/* The symbol whose trap is at @addr, or NULL. */
static const char *trap_name(unsigned long addr)
{
	size_t trap = (addr - NATIVE_TRAPS) / NATIVE_TRAP_SIZE;

	return addr >= NATIVE_TRAPS && trap < traps.nr ? traps.name[trap] : NULL;
}

/* The static key without a stand-in on whose branch the int3 at @ip is, or NULL. */
static const char *key_name(unsigned long ip)
{
	const struct native_tree *tree;
	unsigned long key = 0;

	for (size_t i = 0; !key && (tree = tree_at(i)); i++)
		key = tree->branch_key(ip);
	return trap_name(key);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	unsigned long ip = regs[REG_RIP], cx = regs[REG_RCX];
	unsigned long addr = (unsigned long)info->si_addr;
	const char *name = trap_name(addr);
	char text[256];

	if (sig == SIGSEGV && memory_fixup(addr, &ip, &cx)) {
		regs[REG_RIP] = ip;
		regs[REG_RCX] = cx;
		return;
	}
	/* Per-CPU data: the address is that of the trap, plus the base of %gs. */
	if (!name)
		name = trap_name(addr - NATIVE_GS);
	if (sig == SIGSEGV && name)
		snprintf(text, sizeof(text), "stand-in: %s has no stand-in", name);
	else if (sig == SIGTRAP && (name = key_name(ip - 1)))	/* behind the int3 */
		snprintf(text, sizeof(text), "stand-in: the static key %s has no stand-in", name);
	else
		snprintf(text, sizeof(text), "fault: %s at %#lx, address %#lx",
			 sig == SIGILL ? "BUG or WARN" :
			 sig == SIGTRAP ? "a call without a stand-in" :
			 strsignal(sig), ip, addr);
	host_die(text);
}

static void read_traps(const char *file)
{
	char *line = NULL;
	size_t room = 0;
	FILE *f = fopen(file, "r");

	if (!f)
		host_die("system: cannot read the names of the traps");
	while (getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		traps.name = realloc(traps.name, (traps.nr + 1) * sizeof(*traps.name));
		if (!traps.name || !(traps.name[traps.nr++] = strdup(line)))
			host_die("memory: out of memory");
	}
	free(line);
	fclose(f);
}

void faults_catch(const char *file)
{
	static char stack[1 << 16];
	const stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) };
	const struct sigaction action = {
		.sa_sigaction = on_fault,
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	};
	const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE };

	read_traps(file);
	sigaltstack(&alt, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &action, NULL);
	/* Map the traps twice: for accesses without %gs, and for accesses through it. */
	fixed_map(NATIVE_TRAPS, (traps.nr + 1) * NATIVE_TRAP_SIZE, 0);
	fixed_map(NATIVE_TRAPS + NATIVE_GS, (traps.nr + 1) * NATIVE_TRAP_SIZE, 0);
}
