# SPDX-License-Identifier: GPL-2.0-only
"""The patch series as branches and as mails."""
