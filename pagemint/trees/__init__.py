# SPDX-License-Identifier: GPL-2.0-only
"""Kernel sources and trees, and the objects and images that are built from them."""
