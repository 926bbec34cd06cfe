# SPDX-License-Identifier: GPL-2.0-only
"""The lab of pagemint: builds, runs and measures the kernel part in kernel/."""

__version__ = "0.2.0"
