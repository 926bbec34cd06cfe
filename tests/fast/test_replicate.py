# SPDX-License-Identifier: GPL-2.0-only
"""`make replicate`: guests if KVM works, else the running kernel."""

import runpy
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from stand_ins import Capture, Patch

from pagemint import cli
from pagemint.base.errors import Failure
from pagemint.commands import doctor
from pagemint.guests.outside import binds, x86
from pagemint.results import cases
from pagemint.trees import image, patches

_SCRIPT = Path(__file__).parents[2] / "scripts/replicate.py"


@pytest.fixture
def ran(monkeypatch: Patch) -> list[list[str]]:
    """The command lines of pagemint that are run; nothing is built."""
    lines: list[list[str]] = []

    def run(argv: list[str]) -> int:
        lines.append(argv)
        return 0

    monkeypatch.setattr(cli, "main", run)
    monkeypatch.setattr(patches, "source_for", lambda line, own: None)
    monkeypatch.setattr("pagemint.trees.trees.pair", lambda source: (None, None))
    monkeypatch.setattr(image, "kernel", lambda tree, fragments: image.Kernel)
    monkeypatch.setattr("sys.argv", ["replicate.py", "--size", "32GB"])
    return lines


def _status() -> object:
    """Run the script, and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(_SCRIPT), run_name="__main__")
    return ended.value.code


@pytest.mark.parametrize(
    ("sector", "accel", "command"),
    [(False, "kvm", "host"), (True, "tcg", "host"), (True, "kvm", "vm")],
)
def test_guests_are_used_only_if_a_whole_kernel_boots(
    sector: bool, accel: str, command: str, ran: list[list[str]], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(doctor, "check_kvm", lambda device: doctor.Check("KVM", sector, ""))
    monkeypatch.setattr(x86, "choose_accel", lambda asked, image: accel)
    assert _status() == 0
    ((first, *rest),) = ran
    assert first == command
    assert rest[-2:] == ["--size", "32GB"]
    # The options are those of the command.
    cli.parser([command]).parse_args([first, *rest])


def test_a_wrong_option_is_refused_before_a_kernel_is_built(
    ran: list[list[str]], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(doctor, "check_kvm", lambda device: doctor.Check("KVM", True, ""))
    monkeypatch.setattr(image, "kernel", Mock(side_effect=AssertionError))
    monkeypatch.setattr("sys.argv", ["replicate.py", "--sice", "32GB"])
    assert (_status(), ran) == (2, [])


@pytest.mark.parametrize("accel", ["kvm", "tcg"])
def test_guests_are_used_if_they_are_asked_for(
    accel: str, ran: list[list[str]], monkeypatch: Patch
) -> None:
    monkeypatch.setattr("sys.argv", ["replicate.py", "--accel", accel, "--size", "1GiB"])
    monkeypatch.setattr(doctor, "check_kvm", lambda device: doctor.Check("KVM", False, ""))
    assert _status() == 0
    args = cli.parser(["vm"]).parse_args(ran[0])
    assert (args.accel, args.size, args.scenario) == (accel, "1GiB", "fsdax,devdax,private,boot")


def test_the_running_kernel_is_left_alone_while_kvm_was_not_tried(
    ran: list[list[str]], monkeypatch: Patch, capsys: Capture
) -> None:
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: str(path) == "/dev/kvm" or exists(path))
    monkeypatch.setattr("shutil.which", lambda program, path: None)
    assert _status() == 1
    assert "install them (Debian: qemu-system-x86 " in capsys.readouterr().err
    assert not ran


def test_a_failure_is_one_line(ran: list[list[str]], monkeypatch: Patch, capsys: Capture) -> None:
    failure = Failure("there is no mirror", "check the network")
    monkeypatch.setattr(doctor, "check_kvm", lambda device: doctor.Check("KVM", True, ""))
    monkeypatch.setattr(patches, "source_for", Mock(side_effect=failure))
    assert _status() == 1
    assert capsys.readouterr().err == "pagemint: there is no mirror; check the network\n"
    assert not ran


def test_each_value_of_deferred_init_has_the_boots_of_base_beside_it() -> None:
    def boots(tree: str, *times: tuple[str, float]) -> dict[str, Any]:
        return {tree: {mode: {"init_ms": ms} for mode, ms in times}}

    base, eager = ("base", 900.0), (("slow", 890.0), ("streaming", 500.0))
    turns = [
        boots("base", base) | boots("patched", *eager, ("background", 200.0), ("lazy", ms))
        for ms in (190.0, 195.0)
    ]
    rows = binds.boot_rows(turns, 8 << 30)
    told = [(row.case.operation, row.variant, row.runs_ms) for row in rows]
    patched = {"eager": [500.0] * 2, "background": [200.0] * 2, "lazy": [190.0, 195.0]}
    assert told == [
        row
        for mode, ms in patched.items()
        for row in ((mode, "base", [900.0] * 2), (mode, "patched", ms))
    ]
    assert not any(cases.is_step(row.case) for row in rows)  # their times are shown in ms
    older = boots("base", base) | boots("patched", *eager)
    assert {row.case.operation for row in binds.boot_rows([older], 8 << 30)} == {"eager"}
