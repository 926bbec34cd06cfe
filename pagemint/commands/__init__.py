# SPDX-License-Identifier: GPL-2.0-only
"""The subcommands, a module for each, and what several of them do."""
