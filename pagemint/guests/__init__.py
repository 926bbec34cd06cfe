# SPDX-License-Identifier: GPL-2.0-only
"""Boots virtual machines, runs scenarios in them, and judges the records that they write."""
