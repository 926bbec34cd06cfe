# SPDX-License-Identifier: GPL-2.0-only
"""Virtual machines: booted, driven and judged."""
