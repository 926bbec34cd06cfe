# SPDX-License-Identifier: GPL-2.0-only
"""Builds whole kernels for the VM lab, with the modules and test programs for their guests."""

import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from pagemint.base import cache, disk, files, machine
from pagemint.base.progress import step
from pagemint.base.run import run
from pagemint.trees import objects, patches, trees
from pagemint.trees.trees import Arch, Tree
from pagemint.words import DEFERRED_INIT, MODES, PATCHED

_SELFTESTS: tuple[str, ...] = ("hmm-tests", "migration")
# Further tests of memory. cow, for one, takes too long in an emulated guest.
_OTHERS = (
    *("droppable", "folio_split_race_test", "guard-regions", "gup_longterm", "hugetlb-madvise"),
    *("hugetlb-mmap", "hugetlb-mremap", "hugetlb-read-hwpoison", "hugetlb-shm"),
    *("hugetlb-soft-offline", "hugetlb_dio", "hugetlb_fault_after_madv", "hugetlb_madv_vs_map"),
    *("khugepaged", "madv_populate", "map_fixed_noreplace", "map_populate", "memory-failure"),
    *("merge", "mkdirty", "mremap_dontunmap", "mremap_test", "pagemap_ioctl"),
    *("prctl_thp_disable", "process_madv", "rmap", "split_huge_page_test"),
)
_KUNIT = re.compile(r"CONFIG_(\w+)_KUNIT_TEST=y$")  # an option that builds a suite
_SCRIPTS = ("memory-hotplug/mem-on-off-test.sh",)
_DAX = ("dax", "kselftest")  # folders of the kernel's test of devdax, and of its helpers
_MOCKS = "ndctl"
"""The file of guests/config with which drivers are modules, and have stand-ins for tests."""
_MOCKED = ("drivers/acpi/nfit", "drivers/cxl", "drivers/dax", "drivers/nvdimm")
_ROOM = 1_500_000_000  # bytes: a build directory of a whole small kernel


@dataclass(frozen=True)
class Kernel:
    """A kernel to boot.

    Attributes:
        variant: base, patched or stock.
        built: the build directory.
        module: pagemint_guest.ko for it.
        filler: pagemint.ko for it, if it is a stock kernel.
        modes: the values of its memmap_init=; none without the series.
        deferred_init: the values of its deferred_init=; without the topic background it always
            boots as with "eager".
        arch: the architecture that it was built for.
    """

    variant: str
    built: Path
    module: Path
    filler: Path | None
    modes: tuple[str, ...] = field(default=(), kw_only=True)
    deferred_init: tuple[str, ...] = field(default=DEFERRED_INIT[:1], kw_only=True)
    arch: Arch = field(default=trees.X86, kw_only=True)

    @property
    def image(self) -> Path:
        """The image that QEMU boots."""
        return self.built / self.arch.image

    @property
    def headers(self) -> Path:
        """The directory against which modules for it are built."""
        return self.built

    @property
    def folio_module(self) -> Path:
        """pagemint_folio.ko for it, which copies folios in a guest."""
        return self.module.with_name("pagemint_folio.ko")

    @property
    def hmm_module(self) -> Path:
        """test_hmm.ko for it, which the kernel's own tests of device-private memory need."""
        return self.built / "lib/test_hmm.ko"


def kernel(tree: Tree, fragments: tuple[str, ...]) -> Kernel:
    """Return the kernel of a tree, built in some five minutes if it is not in the cache.

    Args:
        tree: the tree to build.
        fragments: names of files in guests/config, on top of the kernel's tinyconfig. KUnit
            suites that the series does not have for the tree's line are left out.

    Raises:
        Failure: the build fails, or the configuration loses an option of a fragment.
    """
    fragment_files = [files.GUESTS / "config" / f"{name}.config" for name in fragments]
    lines = [line for file in fragment_files for line in file.read_text().splitlines()]
    # A later line overrides an earlier one.
    matches = ((re.match(r"(?:# )?(CONFIG_\w+)", line), line) for line in lines)
    wanted = list({symbol[1]: line for symbol, line in matches if symbol}.values())
    suites = patches.suites(tree.line)
    wanted = [
        line for line in wanted if not (kunit := _KUNIT.match(line)) or kunit[1].lower() in suites
    ]
    name = "+".join(fragments)
    key = cache.digest(tree.key, str(tree.path), *wanted, machine.compiler(tree.arch.prefix))

    def make_kernel(work: Path) -> None:
        disk.need_space(work, _ROOM, "a kernel for the VM lab")
        with step(f"configuring the {tree.name} kernel ({name})"):
            objects.make(tree, work, "tinyconfig")
            with (work / ".config").open("a") as config:
                config.writelines(f"{line}\n" for line in wanted)
            objects.make(tree, work, "olddefconfig")
            objects.check_config(work / ".config", name, wanted)
        with step(f"building the {tree.name} kernel ({name}), some five minutes"):
            objects.make(tree, work, Path(tree.arch.image).name, "modules")

    built = cache.entry("kernels", key, make_kernel, in_place=True)
    sources = [*sorted(files.GUESTS.glob("probes/*.c")), files.GUESTS / "probes/Kbuild"]

    def make_module(work: Path) -> None:
        for source in sources:
            shutil.copyfile(source, work / source.name)
        objects.make(tree, built, f"M={work}", "modules", jobs=1)
        if _MOCKS in fragments:
            _make_mocks(tree, built, work)

    module = cache.entry("modules", cache.digest(key, *sources), make_module)
    modes = MODES if tree.name == PATCHED else ()
    able = "CONFIG_DEFERRED_SECTIONS=y" in (built / ".config").read_text()
    return Kernel(
        tree.name,
        built,
        module / "pagemint_guest.ko",
        None,
        modes=modes,
        deferred_init=DEFERRED_INIT if able else DEFERRED_INIT[:1],
        arch=tree.arch,
    )


def _make_mocks(tree: Tree, built: Path, work: Path) -> None:
    """Install a kernel's modules in work/lib/modules, with its mocked NVDIMM and CXL drivers."""
    install = f"INSTALL_MOD_PATH={work}"
    objects.make(tree, built, install, "modules_install")
    # make writes beside the sources of the drivers, so it gets a copy of them.
    copy = work / "linux"
    tests = ("tools/testing/nvdimm", "tools/testing/cxl")
    for name in (*_MOCKED, *tests):
        shutil.copytree(tree.path / name, copy / name)
    for name in tests:
        objects.make(tree, built, f"M={copy / name}", "modules", jobs=1)
        objects.make(tree, built, f"M={copy / name}", install, "modules_install")
    shutil.rmtree(copy)


def selftests(tree: Tree, *, others: bool = False) -> Path:
    """Return the directory with the kernel's own test programs, built if it is not in the cache.

    Args:
        tree: the tree with their sources.
        others: whether its folder "others" has further tests of memory, as the tree has them.

    Raises:
        Failure: the build fails.
    """
    tests = Path("tools/testing/selftests")
    wanted = {"": _SELFTESTS}
    if others:
        there = (name for name in _OTHERS if (tree.path / tests / f"mm/{name}.c").exists())
        wanted["others"] = tuple(there)

    def make(work: Path) -> None:
        # make writes beside the sources of these tests, so it gets a copy of them.
        copy = work / "linux"
        for name in ("mm", "x86"):
            shutil.copytree(tree.path / tests / name, copy / tests / name)
        for folder in filter(Path.is_dir, (tree.path / tests).iterdir()):
            if not (copy / tests / folder.name).exists():
                (copy / tests / folder.name).symlink_to(folder)
        for pattern in ("*.h", "*.mk"):
            for file in (tree.path / tests).glob(pattern):
                shutil.copy(file, copy / tests)
        for link in ("include", "lib", "mm", "scripts", "tools/include"):
            (copy / link).symlink_to(tree.path / link)
        with step("building the kernel's own tests"):
            for out, programs in wanted.items():
                (work / out).mkdir(exist_ok=True)
                argv: list[str | Path] = ["make", "-s", "-C", copy / tests / "mm"]
                argv += [f"OUTPUT={work / out}", *(work / out / name for name in programs)]
                run(argv, env=trees.environment(), what="making the kernel's own tests")
        for script in _SCRIPTS if others else ():
            shutil.copy(tree.path / tests / script, work / "others")
        for name in _DAX if others and (tree.path / tests / "dax").exists() else ():
            shutil.copytree(tree.path / tests / name, work / name)
        shutil.rmtree(copy)

    names = (*wanted.values(), (*_SCRIPTS, *_DAX) if others else ())
    key = cache.digest(tree.key, *map(" ".join, names), machine.compiler())
    return cache.entry("selftests", key, make)
