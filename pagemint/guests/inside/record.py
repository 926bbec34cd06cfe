# SPDX-License-Identifier: GPL-2.0-only
"""A record, which is what a scenario yields: inside/scenarios.py writes it for the lab, in JSON."""

from typing import Any

Record = dict[str, Any]
