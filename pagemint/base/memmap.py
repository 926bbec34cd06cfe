# SPDX-License-Identifier: GPL-2.0-only
"""Facts of the memmap that several parts of the lab need."""

PAGE = 4096
"""Bytes that one struct page stands for."""

STRUCT_PAGE = 64
"""Bytes of a struct page in every configuration that is timed."""

SECTION_BYTES = 128 << 20
"""Bytes of memory that a section describes, on x86-64."""

SECTION = SECTION_BYTES // PAGE
"""Pages of a section."""

MODES = ("slow", "cached", "streaming", "published")
"""The values of memmap_init= in a kernel with all topics."""

SHARED = "shared"
"""The name of a memmap that the sections of a device share until their pages are used."""

MOST_THREADS = 4
"""Threads among which the kernel shares a memmap, at most."""
