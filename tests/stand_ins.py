# SPDX-License-Identifier: GPL-2.0-only
"""Stand-ins for what tests need of a machine: programs, and an identity for git."""

from pathlib import Path

WHO = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada Tester"), ("EMAIL", "ada@example.org"))
}
"""Variables with which git knows who commits."""


def program(path: Path, script: str) -> Path:
    """Write a program in the shell, and return it."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
