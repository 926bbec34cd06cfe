# SPDX-License-Identifier: GPL-2.0-only
"""Makes single faults in the kernel part, and counts those that the native suites miss."""
