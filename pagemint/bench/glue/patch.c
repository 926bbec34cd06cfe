// SPDX-License-Identifier: GPL-2.0-only
/*
 * Patches the code as boot does for a CPU: alternatives, static branches, ftrace
 * sites and returns. It uses the kernel's own tables and the kernel's own types.
 */
#include <linux/jump_label.h>
#include <linux/pgtable.h>

#include <asm/alternative.h>
#include <asm/cpufeature.h>
#include <asm/nospec-branch.h>
#include <asm/paravirt.h>
#include <asm/processor.h>
#include <asm/text-patching.h>

#include "patch.h"

NATIVE_OBJECTS("arch/x86/lib/retpoline.o");

/* Classes of CPUs, for which the kernel chooses different copies. */
enum native_class {
	NATIVE_THIS_CPU,
	NATIVE_ERMS,		/* enhanced rep movsb, and the feature below */
	NATIVE_REP_GOOD,	/* rep movsq is good */
	NATIVE_UNROLLED,	/* none of these features */
};

static const char *const class_names[] = {
	[NATIVE_THIS_CPU] = "this",
	[NATIVE_ERMS] = "erms",
	[NATIVE_REP_GOOD] = "rep_good",
	[NATIVE_UNROLLED] = "none",
};

/* The returns of a kernel after boot, which depend on the CPU. */
enum native_returns {
	NATIVE_RET_PLAIN,	/* ret */
	NATIVE_RET_SAFE,	/* AMD Zen 1 to 4, and VMs not told that the CPU lacks the flaw */
	NATIVE_RET_UNTRAINED,	/* AMD Zen 1 and 2, if they do not use Safe RET */
};

static const char *const returns_names[] = {
	[NATIVE_RET_PLAIN] = "plain",
	[NATIVE_RET_SAFE] = "safe",
	[NATIVE_RET_UNTRAINED] = "untrained",
};

struct cpuinfo_x86 boot_cpu_data;

static const u8 nops[][8] = {
	[1] = { 0x90 },
	[2] = { 0x66, 0x90 },
	[3] = { 0x0f, 0x1f, 0x00 },
	[4] = { 0x0f, 0x1f, 0x40, 0x00 },
	[5] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 },
	[6] = { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 },
	[7] = { 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00 },
	[8] = { 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 },
};

/* Not memcpy(): it is checked against the size of the field that holds the site. */
static void put(u8 *at, const u8 *bytes, unsigned int n)
{
	while (n--)
		*at++ = *bytes++;
}

static void put_nops(u8 *at, unsigned int n)
{
	for (; n > 8; n -= 8, at += 8)
		put(at, nops[8], 8);
	if (n)
		put(at, nops[n], n);
}

static void cpuid_word(unsigned int word, u32 leaf, u32 subleaf, unsigned int reg)
{
	u32 r[4];

	asm volatile("cpuid"
		     : "=a" (r[0]), "=b" (r[1]), "=c" (r[2]), "=d" (r[3])
		     : "a" (leaf), "c" (subleaf));
	boot_cpu_data.x86_capability[word] = r[reg];
}

enum { EAX, EBX, ECX, EDX };

/*
 * Set the features that the CPU reports, and the kernel's own that every 64-bit
 * CPU has. Take the features that choose a copy from @class.
 */
static void identify_cpu(enum native_class class)
{
	unsigned long *caps = (unsigned long *)boot_cpu_data.x86_capability;

	cpuid_word(CPUID_1_EDX, 1, 0, EDX);
	cpuid_word(CPUID_1_ECX, 1, 0, ECX);
	cpuid_word(CPUID_8000_0001_EDX, 0x80000001, 0, EDX);
	cpuid_word(CPUID_8000_0001_ECX, 0x80000001, 0, ECX);
	cpuid_word(CPUID_7_0_EBX, 7, 0, EBX);
	cpuid_word(CPUID_7_ECX, 7, 0, ECX);
	cpuid_word(CPUID_7_EDX, 7, 0, EDX);
	cpuid_word(CPUID_7_1_EAX, 7, 1, EAX);
	__set_bit(X86_FEATURE_ALWAYS, caps);
	__assign_bit(X86_FEATURE_REP_GOOD, caps, class <= NATIVE_REP_GOOD);
	if (class != NATIVE_THIS_CPU) {
		__clear_bit(X86_FEATURE_FSRM, caps);
		__assign_bit(X86_FEATURE_ERMS, caps, class <= NATIVE_ERMS);
	}
	boot_cpu_data.x86_clflush_size = 64;
}

/* The functions that paravirt calls go to. */
#ifdef CONFIG_PARAVIRT
struct paravirt_patch_template pv_ops = {
#ifdef CONFIG_PARAVIRT_XXL
	.mmu.set_pmd = native_set_pmd,
#endif
};
#endif

/* Replace "call *pv_ops+n(%rip)" by a direct call, or by an int3 if there is no function. */
static void patch_paravirt_call(u8 *instr)
{
	const u8 *fn;
	s32 disp;

	put((u8 *)&disp, instr + 2, sizeof(disp));
	fn = *(const u8 **)(instr + 6 + disp);
	if (!fn) {
		*instr = 0xcc;
		return;
	}
	disp = fn - (instr + 5);
	*instr = 0xe8;
	put(instr + 1, (u8 *)&disp, sizeof(disp));
	put_nops(instr + 5, 1);
}

static void patch_alternative(const struct alt_instr *a)
{
	u8 *instr = (u8 *)&a->instr_offset + a->instr_offset;
	const u8 *repl = (const u8 *)&a->repl_offset + a->repl_offset;
	s32 disp;

	if (test_cpu_cap(&boot_cpu_data, a->cpuid) == !!(a->flags & ALT_FLAG_NOT))
		return;
	if (a->flags & ALT_FLAG_DIRECT_CALL) {
		patch_paravirt_call(instr);
		return;
	}
	put(instr, repl, a->replacementlen);
	/* The target of a near call or jump is relative to its address. */
	if (a->replacementlen == 5 && (repl[0] == 0xe8 || repl[0] == 0xe9)) {
		put((u8 *)&disp, repl + 1, sizeof(disp));
		disp += repl - instr;
		put(instr + 1, (u8 *)&disp, sizeof(disp));
	}
	put_nops(instr + a->replacementlen, a->instrlen - a->replacementlen);
}

unsigned long native_branch_key(unsigned long ip)
{
	const struct jump_entry *e;

	for (e = native_jump; e < native_jump_end; e++)
		if (jump_entry_code(e) == ip)
			return (unsigned long)jump_entry_key(e);
	return 0;
}

/* Replace a nop of two or five bytes by a jump. */
static void put_jump(u8 *at, unsigned long target)
{
	bool near = *at == 0x0f;
	s32 disp = target - ((unsigned long)at + (near ? 5 : 2));

	*at = near ? 0xe9 : 0xeb;
	put(at + 1, (u8 *)&disp, near ? sizeof(disp) : 1);
}

static void patch_jump(const struct jump_entry *e)
{
	const struct static_key *key = jump_entry_key(e);
	u8 *code = (u8 *)jump_entry_code(e);
	bool jumps = *code == 0xeb || *code == 0xe9;

	/* A key without a stand-in has no known state: make the branch an int3. */
	if ((unsigned long)key >= NATIVE_TRAPS) {
		*code = 0xcc;
	} else if (!!key->enabled.counter == jump_entry_is_branch(e)) {
		/* Objtool has turned other jumps into nops of the same length. */
		if (jumps)
			put_nops(code, *code == 0xeb ? 2 : 5);
	} else if (!jumps) {
		put_jump(code, jump_entry_target(e));
	}
}

/* The target of returns, or NULL for plain ones. */
static const u8 *return_thunk(enum native_returns returns)
{
	u32 eax = 1, ebx, ecx, edx;

	asm volatile("cpuid" : "+a" (eax), "=b" (ebx), "=c" (ecx), "=d" (edx));
	/* Family 0x19 uses a different thunk. */
	if (returns == NATIVE_RET_SAFE && IS_ENABLED(CONFIG_MITIGATION_SRSO))
		return ((eax >> 8) & 0xf) + ((eax >> 20) & 0xff) == 0x19 ?
		       (u8 *)srso_alias_return_thunk : (u8 *)srso_return_thunk;
	if (returns == NATIVE_RET_UNTRAINED && IS_ENABLED(CONFIG_MITIGATION_UNRET_ENTRY))
		return (u8 *)retbleed_return_thunk;
	if (returns != NATIVE_RET_PLAIN)
		native_fail("this configuration lacks the mitigation of returns", returns);
	return NULL;
}

static void patch_return(u8 *site, const u8 *thunk)
{
	static const u8 ret[] = { 0xc3, 0xcc, 0xcc, 0xcc, 0xcc };
	s32 disp = thunk - (site + 5);

	/* A conditional jump to the unpatched thunk stays; there it ends in a trap. */
	if (*site != 0xe9)
		return;
	if (thunk)
		put(site + 1, (u8 *)&disp, sizeof(disp));
	else
		put(site, ret, sizeof(ret));
}

/*
 * patch returns= class= ...: patches the code as boot does on a CPU of that class,
 * with that kind of returns.
 */
void native_patch(struct native_request *r, const unsigned long *sites, unsigned long nr)
{
	const u8 *thunk = return_thunk(native_choice(r, "returns", returns_names,
						     ARRAY_SIZE(returns_names)));
	const struct jump_entry *jump;
	const struct alt_instr *alt;
	native_boot_fn *boot;
	const unsigned long *site;

	identify_cpu(native_choice(r, "class", class_names, ARRAY_SIZE(class_names)));
	for (boot = native_boots; boot < native_boots_end; boot++)
		(*boot)(r);
	/* Returns first: alternatives put a warning into the thunk of unpatched returns. */
	for (site = sites; site < sites + nr; site++)
		patch_return((u8 *)*site, thunk);
	for (alt = native_alt; alt < native_alt_end; alt++)
		patch_alternative(alt);
	for (jump = native_jump; jump < native_jump_end; jump++)
		patch_jump(jump);
	for (site = native_mcount; site < native_mcount_end; site++)
		if (*(u8 *)*site == 0xe8)
			put_nops((u8 *)*site, 5);
}
