// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/wait_bit.h>

#include <asm/nops.h>

#include "fault.h"
#include "hook.h"

#ifdef ftrace_instruction_pointer_set	/* Linux 6.1 */
#define ftrace_regs_set_instruction_pointer ftrace_instruction_pointer_set
#endif

#ifndef CONFIG_X86_64
#error "only x86-64 is supported"
#endif
#ifndef CONFIG_DYNAMIC_FTRACE_WITH_ARGS
#error "needs a kernel with CONFIG_DYNAMIC_FTRACE_WITH_ARGS"
#endif

#define FUNCTION "memmap_init_zone_device"

DEFINE_STATIC_CALL_NULL(pagemint_original, memmap_init_zone_device);

static typeof(memmap_init_zone_device) *replacement;

/* Calls under way, which unloading waits for. */
static atomic_t under_way;

static void counted(struct zone *zone, unsigned long start_pfn,
		    unsigned long nr_pages, struct dev_pagemap *pgmap)
{
	atomic_inc(&under_way);
	replacement(zone, start_pfn, nr_pages, pgmap);
	if (atomic_dec_and_test(&under_way))
		wake_up_var(&under_way);
}

static void notrace hook(unsigned long ip, unsigned long parent_ip,
			 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	ftrace_regs_set_instruction_pointer(fregs, (unsigned long)counted);
}

static struct ftrace_ops hook_ops = {
	.func = hook,
	.flags = FTRACE_OPS_FL_IPMODIFY,
};

/*
 * Find the fentry of the function with a disabled kprobe, which changes nothing
 * and knows whether its address is an ftrace site.
 *
 * Return: its address, or an error.
 */
static void *find_entry(void)
{
	static const u8 nop[MCOUNT_INSN_SIZE] = { BYTES_NOP5 };
	struct kprobe probe = {
		.symbol_name = fault_at("function") ? "-" : FUNCTION,
		.flags = KPROBE_FLAG_DISABLED,
	};
	bool traced;
	u8 *entry;
	int err;

	err = register_kprobe(&probe);
	if (err) {
		pr_err("cannot find " FUNCTION "() in this kernel (%d)\n", err);
		return ERR_PTR(err);
	}
	entry = (u8 *)probe.addr;
	traced = kprobe_ftrace(&probe);
	unregister_kprobe(&probe);

	/* If the function is traced, its nop is a call now. */
	if (!traced || fault_at("entry") ||
	    (memcmp(entry, nop, sizeof(nop)) && *entry != CALL_INSN_OPCODE)) {
		pr_err(FUNCTION "() begins with %5ph, which ftrace cannot hook\n",
		       entry);
		return ERR_PTR(-EOPNOTSUPP);
	}
	return entry;
}

int add_hook(typeof(memmap_init_zone_device) *instead)
{
	void *entry = find_entry();
	int err;

	if (IS_ERR(entry))
		return PTR_ERR(entry);

	replacement = instead;
	static_call_update(pagemint_original, entry + MCOUNT_INSN_SIZE);
	err = fault_at("filter") ? -ENOMEM :
	      ftrace_set_filter_ip(&hook_ops, (unsigned long)entry, 0, 0);
	if (err) {
		pr_err("ftrace does not know " FUNCTION "() (%d)\n", err);
		return err;
	}

	err = fault_at("hook") ? -ENOMEM : register_ftrace_function(&hook_ops);
	if (err == -EBUSY)
		pr_err(FUNCTION "() is taken, by a livepatch or the like: remove that first\n");
	else if (err)
		pr_err("ftrace does not hook " FUNCTION "() (%d)\n", err);
	if (err)
		ftrace_set_filter_ip(&hook_ops, (unsigned long)entry, 1, 0);
	return err;
}

void remove_hook(void)
{
	if (WARN_ON(unregister_ftrace_function(&hook_ops))) {
		/* Ftrace has disabled itself and still calls hook(), so that must not go. */
		pr_emerg("ftrace does not let go: the module stays until reboot\n");
		for (;;) {
			set_current_state(TASK_IDLE);
			schedule();
		}
	}
	/* Every task past the hook is now in counted() and under_way has it. */
	synchronize_rcu_tasks();
	wait_var_event(&under_way, !atomic_read(&under_way));
	/* A task that is no longer counted may still be about to return from it. */
	synchronize_rcu_tasks();
	ftrace_free_filter(&hook_ops);
}
