# SPDX-License-Identifier: GPL-2.0-only
"""Makes branches and mails of the patch series."""
