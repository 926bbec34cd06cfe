// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies 2 MiB folios in the kernel, in a guest or on a bare machine. Files in
 * debugfs, under pagemint_folio:
 *
 *   copy           write "FUNCTION NR": evict NR folios from the cache, copy
 *                  them with folio_copy() or folio_mc_copy(), compare them;
 *                  read: nanoseconds of the copies, and bytes
 *   machine_check  write "SECONDS": call folio_mc_copy() on one folio, again
 *                  and again, until it fails or the time is over;
 *                  read: PFN of the source, or 0 before there is one; the last
 *                  result; number of calls of memory_failure_queue(), and the
 *                  PFN of the first; whether the copy holds all pages before
 *                  that PFN and nothing behind it
 *
 * Works on kernels with and without the series.
 */
#include <linux/debugfs.h>
#include <linux/jiffies.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <asm/cacheflush.h>

#define FOLIO_ORDER	9
#define FOLIO_BYTES	(PAGE_SIZE << FOLIO_ORDER)
#define NR_MOST		512

static DEFINE_MUTEX(lock);

/* Fills a folio with data that differs from every other folio's. */
static void fill(struct folio *folio)
{
	static u64 state = 0x9e3779b97f4a7c15;
	u64 *word = folio_address(folio);
	unsigned long i;

	for (i = 0; i < FOLIO_BYTES / sizeof(*word); i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		word[i] = state;
	}
}

static void put_folios(struct folio **folios, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (folios[i])
			folio_put(folios[i]);
}

static struct {
	u64 ns, bytes;
} copied;

/* @folios: @nr sources, then @nr destinations */
static int time_copies(struct folio **folios, unsigned int nr, bool mc)
{
	unsigned int i;
	ktime_t start;
	int err = 0;

	for (i = 0; i < nr; i++) {
		fill(folios[i]);
		memset(folio_address(folios[nr + i]), 0, FOLIO_BYTES);
	}
	for (i = 0; i < 2 * nr; i++)
		clflush_cache_range(folio_address(folios[i]), FOLIO_BYTES);

	start = ktime_get();
	for (i = 0; i < nr && !err; i++) {
		if (mc)
			err = folio_mc_copy(folios[nr + i], folios[i]);
		else
			folio_copy(folios[nr + i], folios[i]);
	}
	copied.ns = ktime_to_ns(ktime_sub(ktime_get(), start));
	copied.bytes = nr * FOLIO_BYTES;

	for (i = 0; i < nr && !err; i++)
		if (memcmp(folio_address(folios[nr + i]), folio_address(folios[i]), FOLIO_BYTES))
			err = -EIO;
	return err;
}

static int copy_folios(unsigned int nr, bool mc)
{
	struct folio **folios = kcalloc(2 * nr, sizeof(*folios), GFP_KERNEL);
	unsigned int i;
	int err = 0;

	if (!folios)
		return -ENOMEM;
	for (i = 0; i < 2 * nr && !err; i++) {
		folios[i] = folio_alloc(GFP_KERNEL, FOLIO_ORDER);
		if (!folios[i])
			err = -ENOMEM;
	}
	if (!err)
		err = time_copies(folios, nr, mc);
	put_folios(folios, 2 * nr);
	kfree(folios);
	return err;
}

static int copy_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "%llu %llu\n", copied.ns, copied.bytes);
	return 0;
}

static ssize_t copy_write(struct file *file, const char __user *from,
			  size_t count, loff_t *pos)
{
	char text[32] = "", name[16];
	unsigned int nr;
	bool mc;
	int err;

	if (count >= sizeof(text) || copy_from_user(text, from, count))
		return -EINVAL;
	if (sscanf(text, "%15s %u", name, &nr) != 2 || !nr || nr > NR_MOST)
		return -EINVAL;
	mc = !strcmp(name, "folio_mc_copy");
	if (!mc && strcmp(name, "folio_copy"))
		return -EINVAL;
	mutex_lock(&lock);
	err = copy_folios(nr, mc);
	mutex_unlock(&lock);
	return err ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(copy);

/* machine_check_show() reads this while a check is running. */
static struct {
	unsigned long pfn;
	int result;
	unsigned int queued;
	unsigned long first_pfn;
	bool exact;
} found;

static int queue_enter(struct kprobe *probe, struct pt_regs *regs)
{
	if (!found.queued++)
		found.first_pfn = regs_get_kernel_argument(regs, 0);
	return 0;
}

static bool copied_up_to(struct folio *dst, struct folio *src, unsigned long nr)
{
	const void *behind = folio_address(dst) + (nr + 1) * PAGE_SIZE;

	return nr < 1 << FOLIO_ORDER && !memcmp(folio_address(dst), folio_address(src), nr * PAGE_SIZE) &&
	       !memchr_inv(behind, 0, folio_address(dst) + FOLIO_BYTES - behind);
}

static int await_machine_check(unsigned int seconds)
{
	struct kprobe probe = {
		.symbol_name = "memory_failure_queue",
		.pre_handler = queue_enter,
	};
	const unsigned long end = jiffies + seconds * HZ;
	struct folio *folios[2];
	int err = 0;

	folios[0] = folio_alloc(GFP_KERNEL, FOLIO_ORDER);
	folios[1] = folio_alloc(GFP_KERNEL, FOLIO_ORDER);
	if (!folios[0] || !folios[1])
		err = -ENOMEM;
	if (!err)
		err = register_kprobe(&probe);
	if (err)
		goto out_put;

	fill(folios[0]);
	memset(&found, 0, sizeof(found));
	WRITE_ONCE(found.pfn, folio_pfn(folios[0]));
	do {
		memset(folio_address(folios[1]), 0, FOLIO_BYTES);
		found.result = folio_mc_copy(folios[1], folios[0]);
	} while (!found.result && time_before(jiffies, end) && !signal_pending(current));
	found.exact = found.queued &&
		      copied_up_to(folios[1], folios[0], found.first_pfn - found.pfn);
	unregister_kprobe(&probe);
	/* A page marked as poisoned must not go back to the allocator. */
	if (found.result)
		return 0;
out_put:
	put_folios(folios, ARRAY_SIZE(folios));
	return err;
}

static int machine_check_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "%lu %d %u %lu %d\n", READ_ONCE(found.pfn), found.result,
		   found.queued, found.first_pfn, found.exact);
	return 0;
}

static ssize_t machine_check_write(struct file *file, const char __user *from,
				   size_t count, loff_t *pos)
{
	unsigned int seconds;
	int err = kstrtouint_from_user(from, count, 0, &seconds);

	if (err)
		return err;
	mutex_lock(&lock);
	err = await_machine_check(seconds);
	mutex_unlock(&lock);
	return err ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(machine_check);

static struct dentry *dir;

static int __init pagemint_folio_init(void)
{
	dir = debugfs_create_dir("pagemint_folio", NULL);
	debugfs_create_file("copy", 0600, dir, NULL, &copy_fops);
	debugfs_create_file("machine_check", 0600, dir, NULL, &machine_check_fops);
	return 0;
}
module_init(pagemint_folio_init);

static void __exit pagemint_folio_exit(void)
{
	debugfs_remove_recursive(dir);
}
module_exit(pagemint_folio_exit);

MODULE_DESCRIPTION("Times copies of folios, and has them meet a machine check");
MODULE_LICENSE("GPL");
