# SPDX-License-Identifier: GPL-2.0-only
"""The code that each workload times, as digests: its times stay true while the code stays."""

import re
from pathlib import Path

from pagemint.base import files
from pagemint.bench.kernel_half import KernelHalf
from pagemint.bench.workload import Workload
from pagemint.bench.workloads import known
from pagemint.trees import edited
from pagemint.trees.edited import Edited

_OBJECTS = re.compile(r"^NATIVE_OBJECTS\([^)]*\);", re.MULTILINE)  # their code counts instead


def digests(line: str) -> dict[str, str]:
    """Return a digest for each of the lab's workloads, by its name, on a kernel line."""
    half, code = KernelHalf(), edited.edited(line)
    return {
        name: edited.digest_of(linked(code, half, workload)) for name, workload in known().items()
    }


def linked(code: Edited, half: KernelHalf, workload: Workload) -> dict[str, str]:
    """Return the code that a workload times, by file.

    That is its own C, and the code of the series from which the kernel objects that it names are
    compiled. Glue and the plain half do not count.
    """
    texts = {file.name: _OBJECTS.sub("", file.read_text()) for file in sources(workload)}
    own = {name: "\n".join(edited.lines_of_code(name, text)) for name, text in texts.items()}
    objects = half.declared("OBJECTS", *sources(workload))
    return own | code.linked(objects, "\n".join(own.values()))


def sources(workload: Workload) -> tuple[Path, ...]:
    """Return the C files of a workload: its own, and those whose commands it asks."""
    names = (workload.file, *workload.uses)
    return tuple(files.BENCH / f"workloads/{name}.c" for name in names)
