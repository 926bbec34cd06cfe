// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes functions of the streaming copies and fills, for the tests. Compiled as
 * kernel code for the host, and with host/shim for a program with sanitizers.
 * A tree may lack the copies and fills.
 */
#include "native.h"

#if __has_include(<linux/memfill_streaming.h>)
#include <linux/memfill_streaming.h>

#include "streaming.h"

#if __has_include(<linux/memcpy_streaming.h>)
#include <linux/memcpy_streaming.h>

/* As in the kernel's engine, the size of struct page is a compile-time constant. */
static void native_copy(void *dst, const void *src, size_t n)
{
	if (n == 64)
		memcpy_streaming(dst, src, 64);
	else
		memcpy_streaming(dst, src, n);
}

static int native_flushcache(void *dst, const void *src, size_t n)
{
#ifdef __KERNEL__
#define CASE(size) case size: memcpy_flushcache(dst, src, size); return 1
	switch (n) {
	CASE(4); CASE(8); CASE(16); CASE(24); CASE(32); CASE(40); CASE(48);
	CASE(56); CASE(64); CASE(72); CASE(80); CASE(88); CASE(96); CASE(104);
	}
#undef CASE
#endif
	return 0;
}
#else
#define native_copy		NULL
#define native_flushcache	NULL
#endif

static void native_cached(void *dst, u64 *image, const u64 *step, size_t size, size_t nr)
{
	if (size == 64)
		memfill_cached(dst, image, step, 64, nr);
	else
		memfill_cached(dst, image, step, size, nr);
}

static void native_stream(void *dst, u64 *image, const u64 *step, size_t size, size_t nr)
{
	if (size == 64)
		memfill_streaming(dst, image, step, 64, nr);
	else
		memfill_streaming(dst, image, step, size, nr);
}

static void native_drain(void)
{
	memfill_streaming_drain();
}

const struct native_streaming native_streaming = {
	native_copy, native_flushcache, native_cached, native_stream, native_drain,
};

#ifdef __KERNEL__
/* streaming tree=: tests the functions above. Answers checks=, or refuses. */
NATIVE_COMMAND(streaming)
{
	unsigned long checks = native_streaming_test(&native_streaming);

	if (!checks)
		native_refuse(r, "found a wrong byte");
	native_answer(r, "checks", checks);
}
#endif
#endif
