# SPDX-License-Identifier: GPL-2.0-only
"""Debian's stock kernels: an image with its modules, and the headers to build modules against.

Nothing is installed: the packages are unpacked in the cache.
"""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pagemint.base import cache, disk, files
from pagemint.base.errors import Failure
from pagemint.base.progress import step
from pagemint.base.run import run
from pagemint.trees import trees
from pagemint.trees.debian import apt, toolchain
from pagemint.trees.debian.apt import Package
from pagemint.trees.image import Kernel

_ROOM = 1_500_000_000  # bytes: the packages, and their files
_HEADERS = (
    Path("include/linux/memfill_streaming.h"),
    Path("arch/x86/include/asm/memfill_streaming.h"),
)
"""The headers of the kernel part that the module includes."""

_PROBES, _STOCK = "probes", "stock"  # the directories in which the modules are built


@dataclass(frozen=True)
class StockKernel(Kernel):
    """A stock kernel to boot; `built` is the directory with its unpacked packages.

    Attributes:
        release: the output of `uname -r` in it.
    """

    release: str

    @property
    def image(self) -> Path:
        """The image that QEMU boots."""
        return self.built / f"boot/vmlinuz-{self.release}"

    @property
    def headers(self) -> Path:
        """The directory against which modules for it are built."""
        return self.built / f"usr/src/linux-headers-{self.release}"


def kernel(line: str, *, fault: bool = False) -> StockKernel:
    """Return Debian's newest kernel of a line ("6.12") that modules can be built for.

    Args:
        line: two numbers.
        fault: build the module with the parameter `fault`, which makes it fail, and a livepatch
            that takes the function which the module hooks.

    Raises:
        Failure: the mirror has no such kernel or cannot be reached, its compiler cannot be had,
            the disk is full, or a module does not build.
    """
    if not re.fullmatch(r"[0-9]+\.[0-9]+", line):
        raise Failure(f"{line!r} is not a kernel line", "give two numbers, such as 6.12")
    number = re.escape(line)
    # One regular expression for all of these, so that apt reads its lists once for them.
    packages = apt.packages(rf"linux-(headers|image|binary|modules|kbuild)-{number}[.0-9].*")
    packages += apt.packages(rf"linux-kbuild-{number}")
    headers = choose(packages, line)
    release = headers.name.removeprefix("linux-headers-")
    wanted = closure(packages, headers)

    def unpack(work: Path) -> None:
        disk.need_space(work, _ROOM, f"Debian's Linux {headers.version}")
        with (
            apt.downloaded(wanted, f"fetching Debian's Linux {headers.version}") as debs,
            step(f"unpacking Debian's Linux {headers.version}"),
        ):
            for deb in debs:
                run(["dpkg-deb", "-x", deb, work], what=f"unpacking {deb.name}")
        _relocate(work / "usr/src" / headers.name)
        _move_image(work, release)

    root = cache.entry("stock", headers.version, unpack)
    what = f"Debian's Linux {headers.version}"
    make = _make_here
    compiler = _compiler(headers)
    codename = toolchain.release_of(headers.name)
    if codename and not shutil.which(compiler):
        make = partial(toolchain.argv, toolchain.toolchain(codename, compiler), root)
    bench, filler = modules(root / "usr/src" / headers.name, what, make, fault=fault)
    return StockKernel("stock", root, bench, filler, release)


def _make_here(headers: Path, work: Path, folder: str) -> list[str | Path]:
    return ["make", "-s", "-C", headers, f"M={work / folder}"]


def modules(
    headers: Path,
    what: str,
    command: Callable[[Path, Path, str], list[str | Path]] = _make_here,
    *,
    fault: bool = False,
) -> tuple[Path, Path]:
    """Return pagemint_guest.ko and pagemint.ko, built if they are not in the cache.

    Args:
        headers: the headers of their kernel.
        what: the name of that kernel, for messages.
        command: returns the command that runs make in the headers, for a directory of modules: it
            gets the headers, the parent of the directory, and its name.
        fault: see kernel().

    Raises:
        Failure: a module does not build.
    """
    guest = [files.GUESTS / "probes/pagemint_guest.c"]
    if fault:
        guest.append(files.GUESTS / "probes/pagemint_livepatch.c")
    module = [files.STOCK / "Kbuild", *sources()]

    def make(work: Path) -> None:
        for source in module:
            _copy(source, work / _STOCK / source.name)
        for source in guest:
            _copy(source, work / _PROBES / source.name)
        for header in _HEADERS:
            # The module includes it by its place beside the module's own directory.
            _copy(files.KERNEL / header, work / "kernel" / header)
        names = " ".join(source.with_suffix(".o").name for source in guest)
        (work / _PROBES / "Kbuild").write_text(f"obj-m := {names}\n")
        with step(f"building modules for {what}"):
            for folder in (_PROBES, _STOCK):
                argv = command(headers, work, folder)
                argv += [*(["FAULT=1"] if fault else []), "modules"]
                log, doing = work / f"{folder}.log", f"building {folder} for {what}"
                run(argv, env=trees.environment(), log=log, what=doing)

    # These files identify the kernel: its functions, its configuration, its release and its build.
    generated = sorted(headers.glob("include/generated/*.h"))
    of = (headers / "Module.symvers", headers / ".config", *generated)
    parts = (*guest, *module, *(files.KERNEL / header for header in _HEADERS))
    key = cache.digest(*of, str(fault), _PROBES, _STOCK, *parts)
    made = cache.entry("stock-modules", key, make, in_place=True)
    return made / _PROBES / "pagemint_guest.ko", made / _STOCK / "pagemint.ko"


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def sources() -> list[Path]:
    """Return the C files and headers of the module, without the files that a build made there."""
    return sorted(file for file in files.STOCK.glob("*.[ch]") if not file.name.endswith(".mod.c"))


def choose(packages: list[Package], line: str) -> Package:
    """Return the newest headers of a line that have an image, and whose compiler is installed.

    If there are none, the newest that are for a known release, which has the compiler.

    Raises:
        Failure: there are none.
    """
    name = rf"linux-headers-{re.escape(line)}\.[0-9][0-9.]*(-[0-9]+|\+deb[0-9.]+)?-amd64"
    whole = {(package.name, package.version) for package in packages}
    headers = [
        package
        for package in packages
        # Headers can be on the mirror before the image, which takes longer: it has to be signed.
        if re.fullmatch(name, package.name) and (_image(package), package.version) in whole
    ]
    headers.sort(key=lambda package: apt.version_key(package.version))
    if not headers:
        raise Failure(
            f"the Debian mirror has no stock kernel {line} with headers",
            "choose another line, such as 6.1 or 6.12",
        )
    buildable = [package for package in headers if shutil.which(_compiler(package))]
    buildable = buildable or [package for package in headers if toolchain.release_of(package.name)]
    if not buildable:
        compilers = " or ".join(sorted({_compiler(package) for package in headers}))
        raise Failure(
            f"modules for Debian's Linux {line} need {compilers}, which this machine lacks",
            "install it, if its Debian has it, or choose another line",
        )
    return buildable[-1]


def closure(packages: list[Package], headers: Package) -> list[Package]:
    """Return all packages of the kernel that `headers` belong to, `headers` first."""
    same = {package.name: package for package in packages if package.version == headers.version}
    wanted, names = [headers], [*headers.depends, _image(headers)]
    for name in names:
        if name in same and same[name] not in wanted:
            wanted.append(same[name])
            names.extend(needed for needed in same[name].depends if needed not in names)
    return wanted


def _image(headers: Package) -> str:
    """Return the name of the image that headers are for."""
    return headers.name.replace("-headers-", "-image-", 1)


def _compiler(headers: Package) -> str:
    """Return the compiler that a kernel was built with, from the dependencies of its headers."""
    for name in headers.depends:
        compiler = re.fullmatch(r"(?:linux-compiler-)?(gcc-[0-9]+)(?:-x86|-for-host)?", name)
        if compiler:
            return compiler[1]
    return "gcc"


def _move_image(root: Path, release: str) -> None:
    """Link the image and its modules to their places before Linux 7.0."""
    image = Path("usr/lib/modules", release, "vmlinuz")
    if (root / image).exists():
        (root / "boot").mkdir(exist_ok=True)
        (root / "boot" / f"vmlinuz-{release}").symlink_to(Path("..", image))
        (root / "lib").symlink_to("usr/lib")


def _relocate(headers: Path) -> None:
    """Make headers refer to their common part where it is unpacked, not in /usr/src."""
    makefile = headers / "Makefile"
    text = makefile.read_text().replace(f"=/usr/src/{headers.name}", ":=$(CURDIR)")
    makefile.write_text(text.replace("include /usr/src/", "include ../"))
    # With vmlinux a build needs pahole, for type information that nobody uses here.
    (headers / "vmlinux").unlink(missing_ok=True)
