/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MEMCPY_STREAMING_H
#define _LINUX_MEMCPY_STREAMING_H

#include <linux/align.h>
#include <linux/string.h>

/**
 * memcpy_streaming() - copy with stores that bypass the cache
 * @dst: destination
 * @src: source, not overlapping @dst
 * @n: bytes to copy
 *
 * Streams if the whole copy can be streamed: on x86-64, with @dst aligned to 8
 * bytes and @n a multiple of 8. Otherwise this is memcpy().
 *
 * Call memfill_streaming_drain() before anything depends on the data.
 */
static __always_inline void memcpy_streaming(void *dst, const void *src,
					     size_t n)
{
#if defined(CONFIG_X86_64) && !defined(CONFIG_KMSAN)
	if (n && IS_ALIGNED((unsigned long)dst | n, 8)) {
		memcpy_flushcache(dst, src, n);
		return;
	}
#endif
	memcpy(dst, src, n);
}

#endif /* _LINUX_MEMCPY_STREAMING_H */
