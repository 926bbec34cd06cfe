# SPDX-License-Identifier: GPL-2.0-only
"""Counts instructions and bytes of whole operations in QEMU."""
