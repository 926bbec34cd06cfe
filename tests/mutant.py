# SPDX-License-Identifier: GPL-2.0-only
"""The host that scripts/mutants wants judged, in place of the host of the series."""

import os
from pathlib import Path

import pytest

from pagemint.base import files
from pagemint.bench.link import Program

_HOST = os.environ.get("PAGEMINT_MUTANT")

JUDGED = bool(_HOST)
"""Whether there is one. It is of the newest kernel line, and of one configuration."""

KERNEL = Path(os.environ.get("PAGEMINT_MUTANT_KERNEL", files.KERNEL))
"""kernel/, or a copy that has the fault, too."""


def program(config: str) -> Program:
    """Return the host; the test is skipped if it wants another configuration."""
    assert _HOST
    if os.environ["PAGEMINT_MUTANT_CONFIG"] != config:
        pytest.skip("the mutant has another configuration")
    return Program(Path(_HOST), {})


def code(name: str) -> Path:
    """Return a kernel object of the host, such as mm/memmap_template.o."""
    assert _HOST
    return Path(_HOST) / "t2" / name.replace("/", "-")
