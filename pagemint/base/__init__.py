# SPDX-License-Identifier: GPL-2.0-only
"""Helpers of the whole lab; nothing here imports another folder of pagemint."""
