/* SPDX-License-Identifier: GPL-2.0-only */
/* The interface between the halves of the test: kernel.c has the kernel's types, user.c the libc's. */
#ifndef WORLD_H
#define WORLD_H

#define ARENA_PHYS	(1UL << 30)	/* ordinary memory, a memfd */
#define ARENA_BYTES	(640UL << 20)
#define DEVICE_PHYS	(64UL << 30)	/* has no memory, only struct pages */
#define SECTIONS	40UL		/* more than one batch */
#define SECTION_PAGES	(1UL << 15)
#define BLOCK_BYTES	(2UL << 20)	/* of struct pages of a section */
#define DIRECT_MAP	0x100000000000UL
#define VMEMMAP		0x200000000000UL

#define DATA_WORD	4	/* of a struct page: zone_device_data */
#define MAGIC_WORD	5
#define MAGIC		0x5eed5eed5eedUL

enum { NOIO, NOFS, KERNEL };

/* user.c */
extern void *arena_alloc(unsigned int order, int io, int fs, int may_fail);
extern void arena_free(void *address, unsigned int order);
extern void stall(void);
extern void released(void);
extern void fail(const char *what, unsigned long number);

/* kernel.c */
extern void kernel_setup(void *(*table)(void));
extern int kernel_bind(void);
extern int kernel_populate(unsigned long page, unsigned long nr, int flags, int may_fail, int by_pfn);
extern int kernel_get(void);
extern void kernel_put(void);
extern void kernel_kill(void);
extern void kernel_unbind(void);
extern int kernel_is_shared(unsigned long section);
extern unsigned long kernel_pmd(unsigned long section);
extern unsigned long kernel_pte(unsigned long section, unsigned int i);
extern int kernel_is_leaf(unsigned long pmd);
extern unsigned long kernel_phys(unsigned long entry);
extern int kernel_is_writable(unsigned long entry);
#endif
