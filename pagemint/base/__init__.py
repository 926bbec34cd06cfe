# SPDX-License-Identifier: GPL-2.0-only
"""The ground floor: nothing here imports another folder of pagemint."""
