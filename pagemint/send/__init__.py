# SPDX-License-Identifier: GPL-2.0-only
"""Makes branches of the patch series, and tells which kept results are current."""
