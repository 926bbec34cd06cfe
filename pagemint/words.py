# SPDX-License-Identifier: GPL-2.0-only
"""Names and sizes that several parts of the lab share; guests import them, too.

This module needs the standard library alone.
"""

PAGE = 4096
"""Bytes that one struct page stands for."""

STRUCT_PAGE = 64
"""Bytes of a struct page in every configuration that is timed."""

SECTION_BYTES = 128 << 20
"""Bytes of memory that a section describes, on x86-64."""

SECTION = SECTION_BYTES // PAGE
"""Pages of a section."""

BASE = "base"
"""The name of the unpatched tree."""

AGAIN = "base2"
"""The name of base's code a second time, whose difference from base is noise."""

PATCHED = "patched"
"""The name of the tree with all topics of the series."""

PUBLISHED = "published"
"""The topic, tree and mode that stand for Linux 7.4, which is expected to have Li Zhe's series."""

OWN = (BASE, AGAIN, PATCHED, PUBLISHED, "stock")
"""The names of trees that the user does not choose; the last is that of a stock kernel."""

MODES = ("slow", "cached", "streaming")
"""The values of memmap_init= in the patched tree."""

DEFERRED_INIT = ("eager", "background", "lazy")
"""The values of deferred_init=. Only with the first does boot wait for all struct pages."""

PUBLISHED_WORKLOADS = ("fsdax", "devdax", "devdax-1g", "private", "vmemmap")
"""The workloads whose code that series changes. Elsewhere Linux 7.3 stands for 7.4."""

STOCK_MODES = ("module-off", "module")
"""The module for stock kernels, switched off and on."""

SHARED = "shared"
"""The name of a memmap that the sections of a device share until their pages are used."""

MOST_THREADS = 4
"""Threads among which the kernel shares a memmap, at most."""
