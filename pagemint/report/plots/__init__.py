# SPDX-License-Identifier: GPL-2.0-only
"""Draws plots, a module for each kind, as SVGs that follow light and dark and as PNGs."""
