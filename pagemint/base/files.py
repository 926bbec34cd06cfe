# SPDX-License-Identifier: GPL-2.0-only
"""Where the parts of pagemint that are not Python stand."""

from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent.parent

KERNEL = _ROOT / "kernel"
"""The kernel part: new files as they stand in a tree, and under series/ the steps."""

NATIVE = _ROOT / "native"
"""The C of the native host."""

GUEST = _ROOT / "guest"
"""Code that runs inside a guest, and the fragments that its kernels are configured with."""

MODULE = _ROOT / "module"
"""The module for stock kernels."""

RESULTS = _ROOT / "docs/results"
"""One kept result for each CPU generation."""
