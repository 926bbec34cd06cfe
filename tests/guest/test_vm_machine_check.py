# SPDX-License-Identifier: GPL-2.0-only
"""Machine checks while a folio is copied, injected through QEMU: a part of `make check-vm`."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from guest_records import LONG, guest_kernel
from stand_ins import Patch

from pagemint.guests.outside.binds import FOLIO
from pagemint.guests.outside.guest import Guest
from pagemint.guests.outside.lab import FRAGMENTS
from pagemint.guests.outside.scenarios import Record
from pagemint.trees.image import Kernel
from pagemint.words import PAGE

pytestmark = LONG

EHWPOISON = 133
DIRECT_MAP = 0xFFFF888000000000  # the direct map of a kernel with nokaslr and 4-level paging
COPY = "copy_mc_enhanced_fast_string"
LENGTH = 16  # bytes of COPY, up to the end of its copying
# An error in bank 1: a data load from which software must recover before the CPU goes on. The
# address is exact to the page.
BANK, STATUS, MCG_STATUS, MISC = 1, 0xBD80000000000134, 0x7, 0x8C


@dataclass(frozen=True)
class Place:
    """The place of the CPU in a copy.

    Attributes:
        length: bytes of the whole copy.
        left: bytes that are left to copy.
        address: physical address of the next byte to read.
    """

    length: int
    left: int
    address: int


class Monitor:
    """QEMU's monitor, through a socket."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(30)
        self._socket.connect(str(path))
        self._stream = self._socket.makefile("rw")
        self._stream.readline()
        self.ask("qmp_capabilities")

    def ask(self, command: str, **arguments: str) -> object:
        self._stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._stream.flush()
        for line in self._stream:
            answer = json.loads(line)
            # Skip events, which come between answers.
            if "event" not in answer:
                return answer["return"]
        raise EOFError

    def tell(self, line: str) -> str:
        return str(self.ask("human-monitor-command", **{"command-line": line}))

    def registers(self) -> dict[str, int]:
        text = self.tell("info registers")
        return {name: int(value, 16) for name, value in re.findall(r"(R\w\w?) *=(\w{16})", text)}


@dataclass
class Poison:
    """Poison in the source of a copy: a machine check when the CPU reads it.

    QEMU's machine check comes once, and once it was taken the page reads well again. So for poison
    that stays, the guest is stopped again and again, and has a machine check where its copy stands.
    After one in a run, the kernel copies a page or two again by themselves. That may be over before
    the next stop: then they read well, and the copy ends all the same.

    Attributes:
        symbol: the address of COPY.
        stays: whether each read has a machine check, instead of the first one alone.
        hits: the places of the machine checks.
        error: the reason of a failure.
    """

    symbol: int
    stays: bool
    hits: list[Place] = field(default_factory=list)
    error: str = ""

    def lie(self, directory: Path, ended: threading.Event) -> None:
        """Hit the guest, whose records and socket are in `directory`, unless it has `ended`."""
        try:
            pfn = self._wait(directory, ended)
            monitor = Monitor(directory / "monitor")
            # A guest that shuts down must not be stopped: QEMU may not answer any more.
            while not (ended.is_set() or self._is_over() or _recorded(directory, "result")):
                monitor.ask("stop")
                place = self._place(monitor.registers(), pfn)
                if place and self._is_due(place):
                    self.hits.append(place)
                    address = place.address // PAGE * PAGE
                    answer = monitor.tell(
                        f"mce 0 {BANK} {STATUS:#x} {MCG_STATUS:#x} {address:#x} {MISC:#x}"
                    )
                    if answer:
                        raise RuntimeError(answer)
                monitor.ask("cont")
                time.sleep(0.001)
        except (ConnectionError, EOFError) as error:
            # After a hit the guest may be done, and gone.
            self.error = "" if self.hits else repr(error)
        except Exception as error:
            self.error = repr(error)

    def _is_over(self) -> bool:
        """Return whether there is no more to hit: a copy of a single page ends with the hit."""
        return bool(self.hits) and (self.hits[-1].length == PAGE or not self.stays)

    def _wait(self, directory: Path, ended: threading.Event) -> int:
        """Return the PFN of the source once the guest copies it."""
        while not ended.wait(0.1):
            if pfn := _recorded(directory, "pfn"):
                return pfn
        raise EOFError

    def _place(self, registers: dict[str, int], pfn: int) -> Place | None:
        """Return where the CPU is in a copy of the source, or None if it is elsewhere."""
        address = registers["RSI"] - DIRECT_MAP
        inside = 0 <= registers["RIP"] - self.symbol < LENGTH
        if not inside or not pfn * PAGE <= address < pfn * PAGE + FOLIO or not registers["RCX"]:
            return None
        return Place(registers["RDX"], registers["RCX"], address)

    def _is_due(self, place: Place) -> bool:
        # The same place as the last hit: that machine check has not come yet.
        if self.hits and self.hits[-1] == place:
            return False
        # Only early in a run: the rest of the copy must last until the machine check comes.
        return place.length == PAGE or place.left > place.length // 2


def _recorded(directory: Path, name: str) -> int:
    """Return a number that the guest has written in a record; 0 if it has not yet."""
    for records in directory.glob("pagemint-vm-*/records"):
        if match := re.search(rf'"{name}": (-?\d+)', records.read_text()):
            return int(match[1])
    return 0


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    return {name: guest_kernel(name, *FRAGMENTS) for name in ("base", "patched")}


Copy = Callable[..., tuple[list[Place], Record]]
"""Poisons a copy in a guest; returns the hits and the guest's record."""

BOTH = pytest.mark.parametrize("variant", ["base", "patched"])


@pytest.fixture
def copy(kernels: dict[str, Kernel], tmp_path: Path, monkeypatch: Patch) -> Copy:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return lambda variant, *, stays: poisoned(kernels[variant], tmp_path, stays=stays)


def poisoned(kernel: Kernel, directory: Path, *, stays: bool) -> tuple[list[Place], Record]:
    symbols = (kernel.built / "System.map").read_text()
    match = re.search(rf"^(\w+) T {COPY}$", symbols, re.MULTILINE)
    assert match
    poison = Poison(int(match[1], 16), stays)
    ended = threading.Event()
    hitting = threading.Thread(target=poison.lie, args=(directory, ended))
    hitting.start()
    # A kernel recovers from a machine check only on a CPU of this vendor.
    options = (
        f"-cpu max,vendor=GenuineIntel,la57=off -qmp unix:{directory}/monitor,server=on,wait=off"
    )
    guest = Guest("tcg", 1 << 27, 900, cpus=1, options=options)
    try:
        (record,), _ = guest.run(kernel, "machine-check", 2, 1 << 27)
    finally:
        ended.set()
        hitting.join()
    assert not poison.error
    assert record["result"] == -EHWPOISON
    assert record["queued"] == 1
    # The page that failed by itself, or else that in which the run stopped.
    assert record["pfn"] == poison.hits[-1].address // PAGE
    assert record["handled"]
    return poison.hits, record


@BOTH
def test_a_copy_survives_a_machine_check(variant: str, copy: Copy) -> None:
    hits, record = copy(variant, stays=True)
    assert all(hit.length == PAGE for hit in hits) == (variant == "base")
    # If no page failed by itself, the page behind was copied once more, too.
    assert record["exact"] or hits[-1].length != PAGE


@BOTH
def test_a_copy_fails_though_the_page_reads_well_again(variant: str, copy: Copy) -> None:
    hits, _ = copy(variant, stays=False)
    assert [hit.length == PAGE for hit in hits] == [variant == "base"]
