# SPDX-License-Identifier: GPL-2.0-only
"""The x86 machine, which virtme-ng runs: its command line, and the choice between KVM and TCG."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from pagemint.base import cache
from pagemint.base.errors import Failure
from pagemint.base.progress import note, step
from pagemint.base.run import run
from pagemint.guests.outside.settings import GuestSettings
from pagemint.trees.image import Kernel

_LOW = 2 << 30  # bytes of guest memory below 4 GiB
_DEVICE_START = 4 << 30
NO_INIT = "Kernel panic - not syncing: No working init found"
"""The last words of a kernel without user space."""

_PORTS = ((1, "sub"), (2, "big"))  # for virtio-mem devices; see inside/hotadd.py


def argv(kernel: Kernel, shared: Path, guest: GuestSettings) -> list[str | Path]:
    """Return the command line of virtme-ng for a guest that runs the script `command`, and ends.

    Args:
        kernel: the kernel.
        shared: a directory of this machine with the script, which the guest may write to.
        guest: its settings.
    """
    # The device is a node of its own: kmem and migrate ask for memory by the node.
    nodes = (_LOW, guest.device, *[guest.high // guest.behind] * guest.behind)
    size = guest.device // guest.regions
    words = [
        f"memmap={size - 2 * guest.inset >> 20}M!{start + guest.inset >> 20}M"
        for start in range(_DEVICE_START, _DEVICE_START + guest.regions * size, size)
    ]
    stock = kernel.filler is not None
    options = machine_options(nodes, guest.cpus, guest.accel, stock=stock)
    machine = " ".join([*options, guest.options])
    if guest.spare:
        machine += " " + _monitor_options(sum(nodes) + guest.spare, shared / "monitor")
    # The guest looks for builds in the cache of this machine.
    inside = ["env", f"XDG_CACHE_HOME={cache.root().parent}", "sh", str(shared / "command")]
    return [
        *("vng", "-r", kernel.image, "--force-9p", "--verbose", "--cpus", str(guest.cpus)),
        *(["--disable-kvm"] if guest.accel == "tcg" else []),
        *("--memory", f"{sum(nodes) >> 20}M", f"--qemu-opts={machine}"),
        *("--append", f"{' '.join(words)} nokaslr panic=-1 oops=panic {guest.append}"),
        *(f"--rwdir={shared}", "--", shlex.join(inside)),
    ]


def bare_argv(image: Path, memory: int, options: Sequence[str], append: str) -> list[str | Path]:
    """Return the command line of QEMU for an emulated guest without user space.

    It ends with NO_INIT on stdout, its console, when the kernel would start init.

    Args:
        image: the kernel's image.
        memory: bytes of its memory, all on one node.
        options: further options of QEMU.
        append: further words of the kernel's command line.
    """
    # A directory of the kernel's own initramfs, which it takes for an init and fails to execute.
    words = "rdinit=/root panic=-1 console=ttyS0 loglevel=5 nokaslr"
    # To calibrate its timers the kernel would wait, and execute instructions: KVM tells it their
    # frequency. Tracing would look at each of its events and functions, in more instructions than
    # all else.
    skipped = "trace_eval_init,trace_eval_sync,ftrace_check_for_weak_functions"
    words += f" nolapic_timer tsc_early_khz=1000000 initcall_blacklist={skipped}"
    # reserve=off: the guest touches little of it, so the host need not have all.
    backend = f"memory-backend-ram,id=memory,size={memory},reserve=off"
    return [
        *("qemu-system-x86_64", "-accel", "tcg,thread=single", "-nodefaults", "-no-reboot"),
        *("-machine", "q35,memory-backend=memory", "-object", backend, "-m", f"{memory >> 20}M"),
        *("-display", "none", "-serial", "stdio", *options),
        *("-kernel", image, "-append", f"{words} {append}"),
    ]


def machine_options(nodes: Sequence[int], cpus: int, accel: str, *, stock: bool) -> list[str]:
    """Return QEMU's options for the machine and its nodes.

    Args:
        nodes: bytes of each node: below the device, the device, and one or more behind it.
        cpus: number of CPUs.
        accel: kvm or tcg.
        stock: whether it is a stock kernel, which warns if one package has CPUs on two nodes.
    """
    # The machine type decides how much memory is below 4 GiB.
    # Linux warns about CPUs of one socket on several nodes.
    options = ["-machine q35", f"-smp {cpus},sockets={cpus},cores=1,threads=1"]
    if accel == "tcg":
        # With a thread for each CPU, QEMU 7.2 can fail an assertion of a PCI device while a CPU
        # enumerates the devices.
        options.append("-accel tcg,thread=single")
    on_nodes = [""] * len(nodes)
    on_nodes[0] = f",cpus=0-{cpus - 1}" if stock else ",cpus=0"
    if cpus > 1 and not stock:
        on_nodes[-1] = f",cpus=1-{cpus - 1}"
    for node, (size, cpu) in enumerate(zip(nodes, on_nodes, strict=True)):
        # reserve=off: the guest touches little of it, so the host need not have all.
        backend = f"memory-backend-ram,id=node{node},size={size},reserve=off"
        options.append(f"-object {backend} -numa node,memdev=node{node}{cpu}")
    return options


def _monitor_options(most: int, socket: Path) -> str:
    """Return QEMU's options for a guest that adds memory, up to `most` bytes.

    The guest controls QEMU through a serial port. QEMU connects that port with its own monitor,
    so nothing outside the guest takes part.
    """
    return " ".join(
        [
            f"-m slots=4,maxmem={most >> 20}M",
            # A PCI device can be added only behind such a port.
            *(f"-device pcie-root-port,id={name}-port,chassis={n}" for n, name in _PORTS),
            f"-chardev socket,id=monitor,path={socket},server=on,wait=off",
            "-mon chardev=monitor,mode=control",
            f"-chardev socket,id=guest,path={socket}",
            "-device virtserialport,chardev=guest,name=pagemint.monitor",
        ]
    )


def environment() -> dict[str, str]:
    """Return this environment with vng's directory in PATH, for the helpers that vng starts."""
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path}


def choose_accel(asked: str, image: Path) -> str:
    """Return kvm if a guest boots under it, else tcg: /dev/kvm can exist and not work.

    Args:
        asked: kvm, tcg or auto.
        image: a kernel to try it with.

    Raises:
        Failure: KVM was asked for and does not work.
    """
    if asked == "tcg":
        return asked
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        try:
            with step("trying KVM"):
                argv = ("vng", "-r", image, "--force-9p", "--", "true")
                run(argv, env=environment(), limit=60, what="a guest under KVM")
            return "kvm"
        except Failure:
            note("a guest does not boot under KVM here")
    if asked == "kvm":
        raise Failure("KVM does not work on this machine", "use --accel tcg, for correctness only")
    return "tcg"
