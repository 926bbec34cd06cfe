# SPDX-License-Identifier: GPL-2.0-only
"""Results: rows, reader, statistics."""
