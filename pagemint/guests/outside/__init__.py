# SPDX-License-Identifier: GPL-2.0-only
"""Boots guests, and judges what they record."""
