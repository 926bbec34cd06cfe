# SPDX-License-Identifier: GPL-2.0-only
"""Shows results: on the terminal, and as a page of plots."""
