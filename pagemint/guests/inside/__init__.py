# SPDX-License-Identifier: GPL-2.0-only
"""Runs inside a guest, or on a bare machine; needs the standard library alone."""
