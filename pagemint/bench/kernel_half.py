# SPDX-License-Identifier: GPL-2.0-only
"""The C files that are compiled as kernel code, and what they declare; see host/native.h."""

import re
from collections.abc import Sequence
from pathlib import Path

from pagemint.base import files
from pagemint.base.errors import Failure


class KernelHalf:
    """Glue, the lab's workloads and the user's.

    Attributes:
        own: the workload files of the user, and the names of the workloads in each.
        workloads: all workload files.
        sources: all C files.
        headers: the headers that they include.
    """

    def __init__(self, own: Sequence[Path] = ()) -> None:
        """Add the workload files `own` to those of the lab.

        Raises:
            Failure: a file cannot be read, has the name of another one, or has no workload.
        """
        glue = sorted(files.BENCH.glob("glue/*.c"))
        self.workloads = (*sorted(files.BENCH.glob("workloads/*.c")), *own)
        self.sources = (*glue, *self.workloads)
        self.headers = (*files.BENCH.glob("host/*.h"), *files.BENCH.glob("glue/*.h"))
        self._texts = {file: _text(file) for file in self.sources}
        stems = [file.stem for file in self.sources]
        for file in own:
            if stems.count(file.stem) > 1:
                raise Failure(
                    f"--workload {file}: the name {file.name} is taken", "rename the file"
                )
        self.own = {file: _workload_names(file, self._texts[file]) for file in own}

    @property
    def objects(self) -> list[str]:
        """The kernel objects that they need, such as mm/mm_init.o."""
        return self.declared("OBJECTS")

    def declared(self, what: str, *sources: Path) -> list[str]:
        """Return the strings in all NATIVE_<what>() of some C files, or of all, each once."""
        strings: list[str] = []
        for file in sources or self.sources:
            declared = rf"^NATIVE_{what}\(([^)]*)\);"
            for arguments in re.findall(declared, self._texts[file], re.MULTILINE):
                strings += re.findall(r'"([^"]+)"', arguments)
        return list(dict.fromkeys(strings))


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}", "name a C file") from error


def _workload_names(file: Path, text: str) -> list[str]:
    """Return the names in the NATIVE_WORKLOAD() of a file."""
    if not re.fullmatch(r"[\w-]+\.c", file.name):
        raise Failure(f"{file.name!r} is not a name that make can build", "rename it to letters.c")
    names = re.findall(r"^NATIVE_WORKLOAD\(\s*(\w{1,60})\s*\)", text, re.MULTILINE)
    if not names:
        raise Failure(f"{file} has no NATIVE_WORKLOAD()", "see docs/compare.md")
    return names
