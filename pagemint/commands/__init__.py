# SPDX-License-Identifier: GPL-2.0-only
"""The subcommands, one module for each."""
