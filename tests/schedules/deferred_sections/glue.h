/* SPDX-License-Identifier: GPL-2.0-only */
/* The interface between the kernel's half and the user's half of the test. */
#ifndef GLUE_H
#define GLUE_H

#define NR_SECTIONS	24UL	/* sections of the zone, from FIRST_SECTION on */
#define FIRST_SECTION	8UL
#define SECTION_PAGES	32768UL
#define CHUNK_PAGES	1024UL
#define CHUNKS		(SECTION_PAGES / CHUNK_PAGES)
#define FIRST_PFN	(FIRST_SECTION * SECTION_PAGES)
#define MIN_WMARK	3000L
#define LOW_WMARK	6000L
#define HOLE		5UL	/* a section of the zone that boot has initialised */

/* The kernel's half, for the user's half. */
void glue_boot(void);		/* set sections apart, and let them be initialised */
void glue_thread(void);		/* the kernel's thread; returns when all is done */
long glue_free(void), glue_deferred(void), glue_managed(void), glue_mark(void);
void glue_add_free(long nr);
int glue_has_deferred(void);
int glue_is_deferred(unsigned long pfn);
/* One try of get_page_from_freelist(): 1 if pages were taken, 0 if the zone was passed over. */
int glue_try(unsigned int order, int atomic, int nolock);
int glue_grow(void), glue_wait(void);
void glue_init_range(unsigned long pfn, unsigned long end_pfn);
int glue_poison(unsigned long pfn);
int glue_page_poisoned(unsigned long pfn), glue_page_count(unsigned long pfn);
void glue_irq_work(void *work);
unsigned long glue_irq_works(void);
int glue_preempt_count(void);

/* The user's half, for the kernel's half. */
void user_write(unsigned long pfn, unsigned long nr);
void user_free(unsigned long pfn, unsigned long nr);
void user_online(unsigned long pfn);
void user_offline(unsigned long pfn);
void user_sleep(const char *what);	/* the kernel would sleep */
void user_may_sleep(void);		/* the kernel says that it may sleep here */
void user_lock(int on);
void *user_zalloc(unsigned long size);
void user_fail(const char *what);
#endif
