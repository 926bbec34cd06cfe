# SPDX-License-Identifier: GPL-2.0-only
"""The hosts of a bench end with it."""

import time
from pathlib import Path

import pytest
from stand_ins import program

from pagemint.base.errors import Failure
from pagemint.bench.hosts import Hosts
from pagemint.bench.link import Program
from pagemint.bench.process import Host
from pagemint.bench.workload import Settings, Workload


def test_a_host_that_loops_is_killed_after_an_error(tmp_path: Path) -> None:
    answers = "read setup\necho huge=1\nread patch\necho\nexec sleep 600"
    script = program(tmp_path / "host", answers)
    workload = Workload(
        name="loops",
        memory=lambda asked: 1,
        setup=lambda host, asked: int(host.ask("map")["huge"]),
        tasks=lambda asked: (),
    )
    begun = time.monotonic()
    with (
        pytest.raises(KeyboardInterrupt),
        Hosts([Program(script, script, script, {})]) as hosts,
    ):
        next(hosts.of(workload, Settings(1)))
        raise KeyboardInterrupt
    assert time.monotonic() - begun < 60


def test_a_host_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    script = tmp_path / "host"
    script.write_text("")
    with pytest.raises(Failure, match=r"cannot start the native host .*: Permission denied"):
        Host(Program(script, script, script, {}))
