# SPDX-License-Identifier: GPL-2.0-only
"""The native host: links kernel objects into one program and drives it."""
