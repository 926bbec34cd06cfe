# SPDX-License-Identifier: GPL-2.0-only
"""Facts of the memmap that several parts of the lab need."""

PAGE = 4096
"""Bytes that one struct page stands for."""

STRUCT_PAGE = 64
"""Bytes of a struct page in every configuration that is timed."""

SECTION = (128 << 20) // PAGE
"""Pages of a section on x86-64."""

MODES = ("slow", "cached", "streaming", "published")
"""The values of memmap_init= in a kernel with all topics."""

SHARED = "shared"
"""The name of a memmap that the sections of a device share until their pages are used."""

MOST_THREADS = 4
"""Threads among which the kernel shares a memmap, at most."""
