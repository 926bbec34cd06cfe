# SPDX-License-Identifier: GPL-2.0-only
"""The hosts of a bench, one after the other, with the memory of their workloads."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from pagemint.base.progress import note, step
from pagemint.base.sizes import format_size
from pagemint.bench.link import Program
from pagemint.bench.process import Host
from pagemint.bench.workload import Settings, Workload


class Hosts(ExitStack):
    """The hosts of a bench; workloads with the same setup share one.

    Attributes:
        huge_bytes: the most memory of a host that was in huge pages.
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        """Start hosts of `programs` in turn; the `with` statement ends the last one."""
        super().__init__()
        self._programs = itertools.cycle(programs)
        self._held: tuple[object, ...] | None = None
        self._host: Host | None = None
        self.huge_bytes = 0

    def of(self, workload: Workload, settings: Settings) -> Iterator[Host]:
        """Yield hosts for the workload, a new one each time that it needs another process."""
        while True:
            key = (workload.setup, workload.memory(settings))
            if self._host is None or self._host.failed or self._held != key or workload.rounds:
                self._start(workload, settings)
                self._held = key
            assert self._host
            self._host.patch(settings.returns)
            yield self._host

    def _start(self, workload: Workload, settings: Settings) -> None:
        # The memory may not suffice for two hosts at once.
        self.close()
        self._host = self.enter_context(Host(next(self._programs)))
        size = workload.memory(settings)
        with step(f"touching {format_size(size)} of memory"):
            huge = workload.setup(self._host, settings)
        if not self._held and huge < size * 0.9:
            note("pagemint: few huge pages, so times differ from a kernel's; see 'pagemint doctor'")
        self.huge_bytes = max(self.huge_bytes, huge)
