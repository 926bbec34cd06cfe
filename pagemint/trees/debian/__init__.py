# SPDX-License-Identifier: GPL-2.0-only
"""Debian's packages: sources, toolchains, roots and stock kernels."""
