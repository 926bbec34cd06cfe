# SPDX-License-Identifier: GPL-2.0-only
"""The files that the series touches also compile where it does not stream, or is switched off.

Only the newest line. Part of `make check-long`: up to a minute for each configuration.
"""

import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from kernel_lines import LONG

from pagemint.trees import objects, patches, sources, trees
from pagemint.trees.trees import Arch

pytestmark = pytest.mark.skipif(not LONG, reason="minutes of builds: run make check-long")

_RISCV = Arch("riscv64-linux-gnu-", "", ("ARCH=riscv", "CROSS_COMPILE=riscv64-linux-gnu-"))
_I386 = Arch("", "", ("ARCH=i386",))
_TOUCHED = (
    *("mm/mm_init.o", "mm/page_alloc.o", "mm/util.o"),
    *("mm/tests/copy_highpages_kunit.o", "lib/tests/memfill_streaming_kunit.o"),
)
_HOTPLUG = ("mm/memory_hotplug.o",)
_TEMPLATE = ("mm/memmap_template.o", "mm/tests/memmap_template_kunit.o")
_THREADS = ("mm/memmap_threads.o", "mm/tests/memmap_threads_kunit.o", "kernel/padata.o")
_ALWAYS = (
    "CONFIG_WERROR=y",
    "CONFIG_RUNTIME_TESTING_MENU=y",
    "CONFIG_KUNIT=y",
    "CONFIG_COPY_HIGHPAGES_KUNIT_TEST=y",
    "CONFIG_MEMFILL_STREAMING_KUNIT_TEST=y",
)
_WITH_HOTPLUG = (
    "CONFIG_MEMORY_HOTPLUG=y",
    "CONFIG_MEMORY_HOTREMOVE=y",
    "CONFIG_SPARSEMEM_VMEMMAP=y",
)
_WITH_TEMPLATE = ("CONFIG_MEMMAP_TEMPLATE=y", "CONFIG_MEMMAP_TEMPLATE_KUNIT_TEST=y")
# Only the memmap of devices is initialised by threads.
_WITH_THREADS = ("CONFIG_ZONE_DEVICE=y", "CONFIG_MEMMAP_THREADS_KUNIT_TEST=y")


@dataclass(frozen=True)
class Case:
    """A configuration, on top of the architecture's own.

    Attributes:
        arch: the architecture to build for.
        options: options that it must have.
        objects: objects to build.
        stores: the non-temporal store instruction, as objdump prints it; "" if there is none.
    """

    arch: Arch
    options: tuple[str, ...]
    objects: tuple[str, ...]
    stores: str


_WHOLE = (*_WITH_HOTPLUG, *_WITH_TEMPLATE, *_WITH_THREADS)
_ALL = (*_TOUCHED, *_HOTPLUG, *_TEMPLATE, *_THREADS)
_NO_DEVICE = "# CONFIG_ZONE_DEVICE is not set"
_NO_TEMPLATE = "# CONFIG_MEMMAP_TEMPLATE is not set"
_NO_HOTPLUG = (
    *("# CONFIG_MEMORY_HOTPLUG is not set", _NO_DEVICE, _NO_TEMPLATE),
    "# CONFIG_DEFERRED_STRUCT_PAGE_INIT is not set",
)
CASES = {
    "arm64": Case(trees.ARM64, _WHOLE, _ALL, "stnp"),
    "riscv64": Case(_RISCV, _WHOLE, _ALL, ""),
    "i386": Case(_I386, (_NO_TEMPLATE,), _TOUCHED, ""),
    "x86, no ZONE_DEVICE": Case(
        trees.X86,
        (*_WITH_HOTPLUG, _NO_DEVICE, *_WITH_TEMPLATE),
        (*_TOUCHED, *_HOTPLUG, *_TEMPLATE),
        "movnti",
    ),
    "x86, no hotplug": Case(trees.X86, _NO_HOTPLUG, _TOUCHED, "movnti"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_the_series_touches_compiles(case: Case, tmp_path: Path) -> None:
    _, patched = trees.pair(sources.get(patches.lines()[-1]))
    tree = replace(patched, arch=case.arch)
    objects.make(tree, tmp_path, "defconfig")
    options = (*_ALWAYS, *case.options)
    with (tmp_path / ".config").open("a") as config:
        config.writelines(f"{option}\n" for option in options)
    objects.make(tree, tmp_path, "olddefconfig")
    objects.check_config(tmp_path / ".config", "of the test", options)
    objects.make(tree, tmp_path, "prepare")
    # A warning is an error.
    objects.make(tree, tmp_path, *case.objects)
    built = tmp_path / "lib/tests/memfill_streaming_kunit.o"
    argv = [f"{case.arch.prefix}objdump", "-d", str(built)]
    code = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"\t(movnti|stnp)\b", code)) == ({case.stores} - {""})
