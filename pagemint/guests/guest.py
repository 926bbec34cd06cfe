# SPDX-License-Identifier: GPL-2.0-only
"""Guests: booted on a kernel of the VM lab, watched to their end, and not believed too soon."""

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagemint.base import cache, files
from pagemint.base.errors import Failure
from pagemint.base.progress import note, step
from pagemint.base.run import run
from pagemint.guests import arm64, arm64_root
from pagemint.kernels import trees
from pagemint.kernels.image import Kernel

_LOW = 2 << 30  # bytes of guest memory below 4 GiB
_DEVICE_START = 4 << 30
_HIGH = 4 << 30  # bytes of guest memory behind the device
_TAIL = 12  # lines of the console to show
_TROUBLE = re.compile(
    r"WARNING: |BUG: |Oops|Kernel panic|general protection|KASAN|possible .* lock"
    r"|suspicious RCU|blocked for more than|stalls? on CPU|new suspected memory leaks"
    r"|^ *not ok \d"
)

_INSIDE = {trees.X86: (sys.executable, Path("/")), trees.ARM64: ("python3", arm64_root.HOST)}
"""What runs Python in a guest, and where it sees the files of this machine."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Guest:
    """How guests are run.

    Attributes:
        accel: kvm or tcg.
        device: bytes of the emulated pmem.
        limit: seconds that a guest may take.
        selftests: where the programs of the kernel's own tests are, if any of them are run.
        cpus: how many, the first of them below the device and the others behind it.
        options: more of QEMU's.
        append: more of the kernel's command line.
    """

    accel: str
    device: int
    limit: float
    selftests: Path | None
    cpus: int = 2
    options: str = ""
    append: str = ""

    def run(
        self, kernel: Kernel, scenarios: str, rebinds: int, private: int
    ) -> tuple[list[Record], str]:
        """Boot `kernel`, run guest/scenarios.py in it, and return its records and the console.

        Args:
            kernel: what to boot.
            scenarios: names in guest/scenarios.py, separated by commas.
            rebinds: how many in each mode.
            private: bytes of device-private memory.

        Raises:
            Failure: the guest hangs, panics, or ends without a result; names the kernel and the
                scenario, and shows the end of the console. What it said stays in a directory that
                the message names.
        """
        shared = Path(tempfile.mkdtemp(prefix="pagemint-vm-"))
        records, console = shared / "records", shared / "console"
        python, host = _INSIDE[kernel.arch]
        command = scenarios_command(kernel, scenarios, rebinds, private, records, python, host)
        command += ["--selftests", self.selftests or "none"]
        argv = self._argv(kernel, command, shared)
        what = f"the guest with the {kernel.variant} kernel"
        ended = ""
        try:
            run(argv, env=_vng_environment(), log=console, limit=self.limit, what=what)
        except Failure as failure:
            # Of vng's status nothing follows: the guest itself says whether it came to its end.
            ended = failure.message.removeprefix(f"{what} ").removeprefix("failed: ")
        said = read_records(records)
        text = console.read_text() if console.exists() else ""
        errors = [record["error"] for record in said if "error" in record]
        trouble = [line for line in text.splitlines() if _TROUBLE.search(line)]
        if errors or trouble or not said or "done" not in said[-1]:
            for line in text.splitlines()[-_TAIL:]:
                note(f"  | {line}")
            why = (errors + trouble + [ended or "it ended without a result"])[0]
            raise Failure(
                f"{what} failed in {_under_way(said, scenarios)}: {why}",
                f"its whole console log is {console}",
            )
        shutil.rmtree(shared)
        return [record for record in said[:-1] if "running" not in record], text

    def _argv(self, kernel: Kernel, command: list[str | Path], shared: Path) -> list[str | Path]:
        """Return what boots `kernel`, runs `command` in the guest, and ends."""
        if kernel.arch == trees.ARM64:
            return arm64.argv(
                kernel.image,
                command,
                shared,
                device=self.device,
                cpus=self.cpus,
                options=self.options,
                append=self.append,
            )
        region = f"memmap={self.device >> 20}M!{_DEVICE_START >> 20}M"
        # What was built here is found there.
        command = ["env", f"XDG_CACHE_HOME={cache.root().parent}", *command]
        return [
            *("vng", "-r", kernel.image, "--force-9p", "--verbose", "--cpus", str(self.cpus)),
            *(["--disable-kvm"] if self.accel == "tcg" else []),
            *("--memory", f"{sum(self._nodes()) >> 20}M", f"--qemu-opts={self._machine(kernel)}"),
            *("--append", f"{region} nokaslr panic=-1 {self.append}"),
            *(f"--rwdir={shared}", "--", shlex.join(map(str, command))),
        ]

    def _nodes(self) -> tuple[int, int, int]:
        """Return the bytes of each node: below the device, the device, and behind it.

        The device is a node of its own, so that the memory it becomes can be asked for.
        """
        return _LOW, self.device, _HIGH

    def _machine(self, kernel: Kernel) -> str:
        """Return what QEMU is told of the machine."""
        # The machine decides how much memory is below 4 GiB.
        options = ["-machine q35"]
        if self.accel == "tcg":
            # With a thread for each CPU, QEMU 7.2 was seen to end in an assertion of a PCI device
            # as one CPU looked for devices.
            options.append("-accel tcg,thread=single")
        others = f",cpus=1-{self.cpus - 1}" if self.cpus > 1 else ""
        cpus = ",cpus=0", "", others
        if kernel.filler:
            # A stock kernel warns of CPUs of one package on two nodes.
            cpus = f",cpus=0-{self.cpus - 1}", "", ""
        for node, (size, cpu) in enumerate(zip(self._nodes(), cpus, strict=True)):
            # The host's memory is taken where it is touched.
            backend = f"memory-backend-ram,id=node{node},size={size},reserve=off"
            options.append(f"-object {backend} -numa node,memdev=node{node}{cpu}")
        return " ".join([*options, self.options])


def scenarios_command(
    kernel: Kernel,
    scenarios: str,
    rebinds: int,
    private: int,
    records: Path,
    python: str = sys.executable,
    host: Path = Path("/"),
) -> list[str | Path]:
    """Return the command that runs guest/scenarios.py, and writes to the file `records`.

    Args:
        kernel: that it runs on.
        scenarios: names, separated by commas.
        rebinds: how many in each mode.
        private: bytes of device-private memory.
        records: the file, as this machine sees it.
        python: what runs it.
        host: where it sees the files of this machine.
    """
    command: list[str | Path] = [
        *(python, files.GUEST / "scenarios.py", "--scenario", scenarios),
        *("--rebinds", str(rebinds), "--private-size", str(private)),
        *("--module", kernel.module, "--output", records),
        *("--folio-module", kernel.folio_module, "--hmm-module", kernel.hmm_module),
        *("--headers", kernel.headers),
    ]
    command += ["--stock-module", kernel.filler] if kernel.filler else []
    return [host / str(word).lstrip("/") if isinstance(word, Path) else word for word in command]


def read_records(file: Path) -> list[Record]:
    """Return what guest/scenarios.py wrote so far; nothing, if the file is not there."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def choose_accel(asked: str, kernel: Kernel) -> str:
    """Return kvm where a guest boots under it, else tcg: /dev/kvm can be there and not work.

    Raises:
        Failure: KVM was asked for and does not work.
    """
    if asked == "tcg":
        return asked
    works = False
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        argv: list[str | Path] = ["vng", "-r", kernel.image, "--force-9p", "--", "true"]
        try:
            with step("trying KVM"):
                run(argv, env=_vng_environment(), limit=60, what="a guest under KVM")
            works = True
        except Failure:
            note("a guest does not boot under KVM here; emulation is used instead")
    if asked == "kvm" and not works:
        raise Failure("KVM does not work on this machine", "use --accel tcg, for correctness only")
    return "kvm" if works else "tcg"


def _under_way(said: list[Record], scenarios: str) -> str:
    """Say what a guest was at when it wrote the last of its records."""
    for record in reversed(said):
        if "running" in record:
            return f"{record['scenario']} ({record['running']})"
    return f"{scenarios} (booting)"


def _vng_environment() -> dict[str, str]:
    """Return this environment with vng, which looks for its own helpers, on the path."""
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path}
