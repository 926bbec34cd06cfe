# SPDX-License-Identifier: GPL-2.0-only
"""The emulated arm64 machine: its root is made of Debian's packages, and it has pmem."""

import shlex
from pathlib import Path

from pagemint.base import cache
from pagemint.base.run import run
from pagemint.guests.outside.settings import GuestSettings
from pagemint.trees.debian import roots
from pagemint.trees.image import Kernel

HOST = Path("/host")
"""The directory in which a guest sees the files of this machine."""

# Mount options of the file systems that a guest shares with this machine.
_OPTIONS = "trans=virtio,version=9p2000.L,msize=524288"
# The word of the kernel's command line that names the shared directory, which is writable.
_SHARED = "pagemint_shared"
_PACKAGES = ("busybox-static", "kmod", "ndctl", "python3")
_APPLETS = ("sh", "mount", "dmesg")
_MOUNTS = ("dev", "proc", "sys", "tmp", "run", HOST.name)
_ROOM = 400_000_000  # bytes: the packages, and their files
_INIT = f"""\
#!/bin/sh
# Mounts the file systems of a guest, runs its command, and powers it off.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t tmpfs none /tmp
mount -t tmpfs none /run
mount -t 9p -o ro,{_OPTIONS} host {HOST}
mount -t 9p -o {_OPTIONS} shared "{HOST}${_SHARED}"
sh "{HOST}${_SHARED}/command"
exec busybox poweroff -f
"""
_RAM_START = 1 << 30  # where the memory of QEMU's machine begins
_LOW = 2 << 30  # bytes of ordinary memory, before the pmem
_PMEM_START = _RAM_START + _LOW


def argv(kernel: Kernel, shared: Path, guest: GuestSettings) -> list[str | Path]:
    """Return QEMU's command line for a guest that runs the script `command`, and ends.

    Writes a devicetree with the pmem into `shared`, and fetches the guest's root if need be.

    Args:
        kernel: the kernel.
        shared: a directory of this machine with the script, which the guest may write to.
        guest: its settings.

    Raises:
        Failure: QEMU or fdtput is missing, or the packages of the root cannot be fetched.
    """
    size = _LOW + guest.device
    qemu: list[str | Path] = [
        *("qemu-system-aarch64", "-cpu", "neoverse-n1"),
        *("-smp", str(guest.cpus), "-m", f"{size >> 20}M"),
        # reserve=off: the guest touches little of it, so the host need not have all.
        *("-object", f"memory-backend-ram,id=ram,size={size},reserve=off"),
    ]
    machine = "virt,gic-version=3,memory-backend=ram"
    tree = shared / "devicetree"
    run([*qemu, "-machine", f"{machine},dumpdtb={tree}"], what="asking QEMU for a devicetree")
    _add_pmem(tree, _PMEM_START, guest.device)
    # Without root= the kernel mounts /dev/root, and 9p takes that for the mount tag below.
    # mem= hides the memory behind _LOW; the kernel finds the pmem there in the devicetree.
    words = [f"mem={_LOW >> 20}M rootfstype=9p rootflags={_OPTIONS} ro init=/init"]
    words += [f"{_SHARED}={shared} console=ttyAMA0 nokaslr panic=-1 oops=panic", guest.append]
    return [
        *(*qemu, "-machine", machine, "-dtb", tree, "-kernel", kernel.image),
        *("-append", " ".join(words), "-no-reboot"),
        *("-display", "none", "-monitor", "none", "-serial", "stdio"),
        *_share("/dev/root", _root(), readonly=True),
        *_share("host", Path("/"), readonly=True),
        *_share("shared", shared, readonly=False),
        *shlex.split(guest.options),
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


def _root() -> Path:
    """Return the root directory, made if it is not in the cache.

    Raises:
        Failure: the mirror has no such packages or cannot be reached, or the disk is full.
    """

    def make(work: Path) -> None:
        what = "the root of an arm64 guest"
        made = roots.unpack(work, _PACKAGES, "arm64", what, room=_ROOM, mounts=_MOUNTS)
        for name in _APPLETS:
            (made / "bin" / name).symlink_to("busybox")
        (made / "init").write_text(_INIT)
        (made / "init").chmod(0o755)

    return cache.entry("roots", cache.digest("arm64", *_PACKAGES, *_APPLETS, _INIT), make) / "root"
