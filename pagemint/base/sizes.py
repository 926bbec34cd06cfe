# SPDX-License-Identifier: GPL-2.0-only
"""Sizes in the form that people write: 100GB, 1.5 GiB."""

import re
from decimal import Decimal

from pagemint.base.errors import Failure

_UNITS = {"b": 1, "bytes": 1}
_UNITS |= {f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)}
_UNITS |= {f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)}
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([a-z]+)", re.IGNORECASE)
_REMEDY = "write a number and a unit, such as 100GB or 64GiB"


def parse_size(text: str) -> int:
    """Return the bytes that `text` names, rounded down to a whole byte.

    Units are kB MB GB TB (powers of 1000), KiB MiB GiB TiB (of 1024), B and bytes, in any case.

    Raises:
        Failure: `text` is not a size, or is less than one byte.
    """
    match = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise Failure(f"{text!r} is not a size", _REMEDY)
    size = int(Decimal(match[1]) * unit)
    if size == 0:
        raise Failure(f"{text!r} is less than one byte", _REMEDY)
    return size


def format_size(size: int) -> str:
    """Return `size` bytes in the largest decimal unit that fits, to one decimal: 100 GB, 1.6 GB."""
    for unit in ("TB", "GB", "MB", "kB"):
        scale = _UNITS[unit.lower()]
        if size >= scale:
            return f"{size / scale:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} B"


def format_power(size: int) -> str:
    """Return a power of two of bytes, 1 KiB or more, in whole binary units: 64 KiB, 2 MiB."""
    unit = min((size.bit_length() - 1) // 10, 4)
    return f"{size >> 10 * unit} {'KMGT'[unit - 1]}iB"
