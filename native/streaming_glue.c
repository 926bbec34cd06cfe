// SPDX-License-Identifier: GPL-2.0-only
/*
 * The streaming stores as functions: compiled as kernel code for the host, and
 * with native/shim for a sanitised program.
 */
#include <linux/memcpy_streaming.h>

void native_copy(void *dst, const void *src, size_t n);
int native_flushcache(void *dst, const void *src, size_t n);
void native_fill(void *dst, const void *image, size_t size, size_t nr);
void native_fill_cached(void *dst, const void *image, size_t size, size_t nr);
void native_fill_cached_step(void *dst, u64 *image, const u64 *step, size_t size, size_t nr);
void native_fill_step(void *dst, u64 *image, const u64 *step, size_t size, size_t nr);
void native_drain(void);

/* The size of struct page is known where it counts, other sizes are not. */
void native_copy(void *dst, const void *src, size_t n)
{
	if (n == 64)
		memcpy_streaming(dst, src, 64);
	else
		memcpy_streaming(dst, src, n);
}

int native_flushcache(void *dst, const void *src, size_t n)
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

void native_fill(void *dst, const void *image, size_t size, size_t nr)
{
	if (size == 64)
		memfill_streaming(dst, image, 64, nr);
	else
		memfill_streaming(dst, image, size, nr);
}

void native_fill_cached(void *dst, const void *image, size_t size, size_t nr)
{
	if (size == 64)
		memfill_cached(dst, image, 64, nr);
	else
		memfill_cached(dst, image, size, nr);
}

void native_fill_cached_step(void *dst, u64 *image, const u64 *step, size_t size, size_t nr)
{
	if (size == 64)
		memfill_cached_step(dst, image, step, 64, nr);
	else
		memfill_cached_step(dst, image, step, size, nr);
}

void native_fill_step(void *dst, u64 *image, const u64 *step, size_t size, size_t nr)
{
	if (size == 64)
		memfill_streaming_step(dst, image, step, 64, nr);
	else
		memfill_streaming_step(dst, image, step, size, nr);
}

void native_drain(void)
{
	memcpy_streaming_drain();
}
