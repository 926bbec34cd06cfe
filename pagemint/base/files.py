# SPDX-License-Identifier: GPL-2.0-only
"""The directories of the parts of pagemint that are not Python."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
"""The package itself, whose parent a guest needs in its PYTHONPATH."""

# An installed package has what lies beside it in a checkout in its directory `shipped`.
_SHIPPED = PACKAGE / "shipped"
_ROOT = _SHIPPED if _SHIPPED.is_dir() else PACKAGE.parent

KERNEL = _ROOT / "kernel"
"""The kernel part: new files, at their places in a kernel tree, and under series/ the patches."""

BENCH = PACKAGE / "bench"
"""The C of the host program, in host/, glue/ and workloads/."""

GUESTS = PACKAGE / "guests"
"""Code and kernel modules for guests, and the fragments that configure guest kernels."""

STOCK = _ROOT / "stock"
"""The module for stock kernels."""

RESULTS = _ROOT / "docs/results"
"""One kept result for each CPU generation."""
