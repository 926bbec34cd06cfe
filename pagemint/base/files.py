# SPDX-License-Identifier: GPL-2.0-only
"""The directories of the parts of pagemint that are not Python.

An installed package has them in its directory `shipped`, a checkout beside the package.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
_SHIPPED = _PACKAGE / "shipped"
_ROOT = _SHIPPED if _SHIPPED.is_dir() else _PACKAGE.parent

KERNEL = _ROOT / "kernel"
"""The kernel part: new files, at their places in a kernel tree, and under series/ the patches."""

NATIVE = _ROOT / "native"
"""The C of the native host."""

GUEST = _ROOT / "guest"
"""Code that runs inside a guest, and the fragments that its kernels are configured with."""

MODULE = _ROOT / "module"
"""The module for stock kernels."""

RESULTS = _ROOT / "docs/results"
"""One kept result for each CPU generation."""
