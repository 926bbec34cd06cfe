# SPDX-License-Identifier: GPL-2.0-only
"""The emulated arm64 machine: its root is made of Debian's packages, and it has pmem."""

import shlex
from pathlib import Path

from pagemint.base.run import run
from pagemint.guests.outside import arm64_root

_RAM_START = 1 << 30  # where the memory of QEMU's machine begins
_LOW = 2 << 30  # bytes of ordinary memory, before the pmem
_PMEM_START = _RAM_START + _LOW


def argv(
    image: Path,
    shared: Path,
    *,
    device: int,
    cpus: int,
    options: str,
    append: str,
) -> list[str | Path]:
    """Return QEMU's command line for a guest that runs the script `command`, and ends.

    Writes a devicetree with the pmem into `shared`, and fetches the guest's root if need be.

    Args:
        image: the kernel's image.
        shared: a directory of this machine with the script, which the guest may write to.
        device: bytes of persistent memory.
        cpus: number of CPUs.
        options: further options of QEMU.
        append: further words of the kernel's command line.

    Raises:
        Failure: QEMU or fdtput is missing, or the packages of the root cannot be fetched.
    """
    size = _LOW + device
    qemu: list[str | Path] = [
        *("qemu-system-aarch64", "-cpu", "neoverse-n1", "-smp", str(cpus), "-m", f"{size >> 20}M"),
        # reserve=off: the guest touches little of it, so the host need not have all.
        *("-object", f"memory-backend-ram,id=ram,size={size},reserve=off"),
    ]
    machine = "virt,gic-version=3,memory-backend=ram"
    tree = shared / "devicetree"
    run([*qemu, "-machine", f"{machine},dumpdtb={tree}"], what="asking QEMU for a devicetree")
    _add_pmem(tree, _PMEM_START, device)
    # Without root= the kernel mounts /dev/root, and 9p takes that for the mount tag below.
    # mem= hides the memory behind _LOW; the kernel finds the pmem there in the devicetree.
    words = [f"mem={_LOW >> 20}M rootfstype=9p rootflags={arm64_root.OPTIONS} ro init=/init"]
    words += [f"{arm64_root.SHARED}={shared} console=ttyAMA0 nokaslr panic=-1", append]
    return [
        *(*qemu, "-machine", machine, "-dtb", tree, "-kernel", image),
        *("-append", " ".join(words), "-no-reboot"),
        *("-display", "none", "-monitor", "none", "-serial", "stdio"),
        *_share("/dev/root", arm64_root.root(), readonly=True),
        *_share("host", Path("/"), readonly=True),
        *_share("shared", shared, readonly=False),
        *shlex.split(options),
    ]


def _add_pmem(tree: Path, start: int, size: int) -> None:
    """Add pmem to a devicetree; its addresses and sizes have two cells each."""
    node = f"/pmem@{start:x}"
    cells = [f"{word >> shift & 0xFFFFFFFF:x}" for word in (start, size) for shift in (32, 0)]
    edits: list[list[str | Path]] = [
        ["-c", tree, node],
        ["-t", "s", tree, node, "compatible", "pmem-region"],
        ["-t", "x", tree, node, "reg", *cells],
    ]
    for options in edits:
        run(["fdtput", *options], what="adding pmem to the devicetree")


def _share(tag: str, path: Path, *, readonly: bool) -> list[str]:
    """Return QEMU's options that show a directory to the guest, as the 9p file system `tag`."""
    name = tag.rpartition("/")[2]
    quoted = str(path).replace(",", ",,")
    options = f"local,id={name},path={quoted},security_model=none,multidevs=remap"
    options += ",readonly=on" if readonly else ""
    return ["-fsdev", options, "-device", f"virtio-9p-pci,fsdev={name},mount_tag={tag}"]
