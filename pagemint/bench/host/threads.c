// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that wait for work, as a kernel's workers do, and their locks. The stack
 * canary is the only per-CPU data that their code may use, since it is the same
 * for all threads; any other access ends in a trap.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t some, finished;
	struct { void *work; void (*fn)(void *work); } entry[NATIVE_MAX_THREADS];
	size_t nr;
	void *running[NATIVE_MAX_THREADS];	/* the work of each worker */
	unsigned int workers;
} queue = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.some = PTHREAD_COND_INITIALIZER,
	.finished = PTHREAD_COND_INITIALIZER,
};

static unsigned long queued;

static void take_out(size_t i)
{
	memmove(&queue.entry[i], &queue.entry[i + 1],
		(--queue.nr - i) * sizeof(*queue.entry));
}

static void *worker(void *slot)
{
	void **running = slot;

	pthread_mutex_lock(&queue.lock);
	for (;;) {
		while (!queue.nr)
			pthread_cond_wait(&queue.some, &queue.lock);

		__typeof__(*queue.entry) first = queue.entry[0];

		take_out(0);
		*running = first.work;
		pthread_mutex_unlock(&queue.lock);
		first.fn(first.work);
		late_switch();
		pthread_mutex_lock(&queue.lock);
		*running = NULL;
		pthread_cond_broadcast(&queue.finished);
	}
	return NULL;
}

unsigned long native_work_queued(void)
{
	return queued;
}

void native_have_threads(unsigned int threads)
{
	pthread_t thread;

	/* The calling thread counts, too. */
	for (; queue.workers + 1 < threads; queue.workers++)
		if (pthread_create(&thread, NULL, worker, &queue.running[queue.workers]))
			host_die("threads: no more threads can be started");
}

void native_queue(void *work, void (*fn)(void *work))
{
	pthread_mutex_lock(&queue.lock);
	if (queue.nr == NATIVE_MAX_THREADS)
		host_die("fault: too much work");
	queued++;
	queue.entry[queue.nr].work = work;
	queue.entry[queue.nr++].fn = fn;
	pthread_cond_signal(&queue.some);
	pthread_mutex_unlock(&queue.lock);
}

static int is_running(const void *work)
{
	for (unsigned int i = 0; i < queue.workers; i++)
		if (queue.running[i] == work)
			return 1;
	return 0;
}

/* Remove @work from the queue if it has not started, and wait for it if it has. */
void native_cancel(void *work)
{
	pthread_mutex_lock(&queue.lock);
	for (size_t i = queue.nr; i-- > 0;)
		if (queue.entry[i].work == work)
			take_out(i);
	while (is_running(work))
		pthread_cond_wait(&queue.finished, &queue.lock);
	pthread_mutex_unlock(&queue.lock);
}

/* spinlock_t is one word, 0 if it is free. Waiters yield: the holder may need their CPU. */

void k__raw_spin_lock(unsigned int *lock)
{
	while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

void k__raw_spin_unlock(unsigned int *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

void k__raw_spin_lock_bh(unsigned int *lock) __attribute__((alias("k__raw_spin_lock")));
void k__raw_spin_unlock_bh(unsigned int *lock) __attribute__((alias("k__raw_spin_unlock")));

/* Each thread takes the next piece of the work when it has finished one. */

#define PIECE	(16UL << 20)

struct share {
	void (*fn)(void *dst, size_t bytes);
	char *dst;
	size_t bytes, next;
};

static void run_pieces(void *work)
{
	struct share *f = work;
	size_t at;

	while ((at = __atomic_fetch_add(&f->next, PIECE, __ATOMIC_RELAXED)) < f->bytes)
		f->fn(f->dst + at, f->bytes - at < PIECE ? f->bytes - at : PIECE);
}

void threads_share(void (*fn)(void *dst, size_t bytes), void *dst, size_t bytes,
		   unsigned int threads)
{
	struct share f = { .fn = fn, .dst = dst, .bytes = bytes };

	if (threads == 1) {
		fn(dst, bytes);
		return;
	}
	for (unsigned int i = 1; i < threads; i++)
		native_queue(&f, run_pieces);
	run_pieces(&f);
	native_cancel(&f);
}
