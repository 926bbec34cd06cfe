# SPDX-License-Identifier: GPL-2.0-only
"""The devices of this machine, as guest/inventory.py lists them."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.base.run import run

ROOT = Path("/")
"""The directory that contains sys, proc and dev."""


@dataclass(frozen=True)
class Device:
    """A device of this machine.

    Attributes:
        name: in the kernel's device model, such as pfn0.0 or dax0.0.
        kind: fsdax or devdax.
        size: bytes.
        in_use: the use that keeps it from being rebound; "" if there is none.
    """

    name: str
    kind: str
    size: int
    in_use: str


def devices() -> list[Device]:
    """Return the fsdax and devdax devices that are bound to their drivers."""
    argv: list[str | Path] = [sys.executable, files.GUEST / "inventory.py", "--root", ROOT]
    lines = run(argv, what="looking for devices").splitlines()
    return [Device(**json.loads(line)) for line in lines]


def choose(found: list[Device], name: str) -> Device:
    """Return the device of that name.

    Raises:
        Failure: there is none, or it is in use.
    """
    free = [device.name for device in found if not device.in_use]
    other = f"choose from {', '.join(free)}" if free else "leave --device out for private memory"
    for device in found:
        if device.name == name:
            if device.in_use:
                raise Failure(f"{name} is {device.in_use}", f"end that, or {other}")
            return device
    raise Failure(f"{name} is not an fsdax or devdax device that is bound to its driver", other)
