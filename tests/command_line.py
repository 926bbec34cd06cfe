# SPDX-License-Identifier: GPL-2.0-only
"""Runs pagemint's command line in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ARGV = (sys.executable, "-c", "import sys; from pagemint.cli import main; sys.exit(main())")
"""The program, to be followed by arguments."""


def pagemint(*argv: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `pagemint` with arguments and further variables, and return what it said."""
    env = {**os.environ, **environment}
    return subprocess.run([*ARGV, *argv], capture_output=True, text=True, env=env)
