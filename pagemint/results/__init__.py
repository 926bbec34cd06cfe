# SPDX-License-Identifier: GPL-2.0-only
"""Results: their definition, reader, writer and statistics."""
