# SPDX-License-Identifier: GPL-2.0-only
"""The lines that commands print on stderr."""

import re

_STAGE = re.compile(r" \.\.\.( \d+\.\d s)?$")


def without_progress(stderr: str) -> list[str]:
    """Return the lines, without those of stages that take long on a busy machine."""
    return [line for line in stderr.splitlines() if not _STAGE.search(line)]
