# SPDX-License-Identifier: GPL-2.0-only
"""Where kernel trees come from, and what is built of them."""
