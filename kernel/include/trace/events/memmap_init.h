/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM memmap_init

#if !defined(_TRACE_MEMMAP_INIT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_MEMMAP_INIT_H

#include <linux/tracepoint.h>
#include <linux/types.h>

TRACE_EVENT(memmap_init_zone_device,
	    TP_PROTO(unsigned long pfn, unsigned long nr_pages, s64 us,
		     const char *mode, bool chosen, unsigned int ratio),
	    TP_ARGS(pfn, nr_pages, us, mode, chosen, ratio),
	    TP_STRUCT__entry(__field(unsigned long, pfn)
			     __field(unsigned long, nr_pages)
			     __field(s64, us)
			     __string(mode, mode)
			     __field(bool, chosen)
			     __field(unsigned int, ratio)),
	    TP_fast_assign(__entry->pfn = pfn;
			   __entry->nr_pages = nr_pages;
			   __entry->us = us;
			   __assign_str(mode);
			   __entry->chosen = chosen;
			   __entry->ratio = ratio;),
	    TP_printk("pfn=0x%lx nr_pages=%lu us=%lld mode=%s auto=%d ratio=%u.%02u",
		      __entry->pfn, __entry->nr_pages, __entry->us,
		      __get_str(mode), __entry->chosen,
		      __entry->ratio / 100, __entry->ratio % 100)
);

#endif /* _TRACE_MEMMAP_INIT_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
