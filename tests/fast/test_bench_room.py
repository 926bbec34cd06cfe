# SPDX-License-Identifier: GPL-2.0-only
"""The memory for a bench or a guest: each size that a command suggests is accepted."""

import re
import shlex
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import Patch

from pagemint import cli
from pagemint.base import machine
from pagemint.base.errors import Failure
from pagemint.base.sizes import parse_size
from pagemint.bench.workload import Settings
from pagemint.bench.workloads import known
from pagemint.commands import bench_plan, bench_room, doctor
from pagemint.guests.outside import room


def _check(size: str, workloads: str | None) -> None:
    """Check, as bench does, that the memory is enough for some workloads; None is all.

    Raises:
        Failure: it is not.
    """
    names = workloads.split(",") if workloads else list(known())
    chosen = [known()[name] for name in names]
    bench_plan.check_machine(chosen, [Settings(parse_size(size))])


@given(available=st.integers(1 << 26, 1 << 34))
def test_bench_accepts_what_doctor_suggests(available: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "free", lambda: available)
        memory = doctor.check_memory(bench_room.free())
        if memory.ok:
            _check("100GB", None)
            return
        with pytest.raises(Failure):
            _check("100GB", None)
        options = shlex.split(memory.remedy.partition("run bench with ")[2])
        args = cli.parser(["bench"]).parse_args(["bench", *options])
        _check(args.size, args.workload)


@given(
    available=st.integers(1 << 24, 1 << 34),
    workload=st.sampled_from(["fsdax", "populate", "vmemmap", "hotplug"]),
)
def test_bench_accepts_the_size_that_it_suggests(available: int, workload: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "free", lambda: available)
        with pytest.raises(Failure) as refused:
            _check("16TB", workload)
        suggested = re.search(r"give --size (\w+) or less", str(refused.value))
        if suggested:
            _check(suggested[1], workload)
        else:
            assert "end some programs" in str(refused.value)


@given(free=st.integers(1 << 29, 1 << 36), accel=st.sampled_from(["kvm", "tcg"]))
def test_vm_accepts_the_size_that_it_suggests(free: int, accel: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "free", lambda: free)
        try:
            size = room.default(accel)
        except Failure as failure:
            assert "end some programs" in str(failure)
            return
        assert room.parse(f"{size}B") == size
        with pytest.raises(Failure) as refused:
            room.parse("100TB")
        remedy = re.search(r"give --size (\w+) or less", str(refused.value))
        assert remedy
        room.parse(remedy[1])


def test_a_workload_that_does_not_fit_is_named(monkeypatch: Patch) -> None:
    monkeypatch.setattr(machine, "free", lambda: 2_000_000_000)
    with pytest.raises(Failure) as refused:
        _check("1GB", "fsdax,folio")
    assert str(refused.value).startswith("folio takes 2.1 GB")
    assert str(refused.value).endswith("leave it out: --workload fsdax")


def test_a_quick_bench_times_memmaps_with_plain_returns_alone() -> None:
    ready = Mock(able=[known()["folio"], known()["fsdax"]], sizes=[1 << 30], threads=(1,))
    ready.kernel.returns, ready.settings = "safe", lambda workload, setting: setting
    quick, whole = (
        [(workload.name, setting.returns) for workload, setting in bench_plan.runs(ready)]
        for ready.quick in (True, False)
    )
    assert quick == [("fsdax", "plain"), ("folio", "safe")]
    assert whole == [*quick, ("fsdax", "safe")]


@pytest.mark.parametrize(("workload", "unit"), [("populate", 128 << 20), ("boot", 4 << 20)])
def test_a_workload_rounds_its_size_down_to_whole_units(workload: str, unit: int) -> None:
    memory = known()[workload].memory
    assert memory(Settings(unit)) > 0
    assert memory(Settings(unit - 4096)) == 0
