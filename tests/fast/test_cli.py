# SPDX-License-Identifier: GPL-2.0-only
import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from stand_ins import Capture, Patch, Refused, pagemint, program

from pagemint import cli
from pagemint.base.errors import Failure
from pagemint.commands import doctor


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (Failure("it is\nbroken", "mend it"), 1, "pagemint: it is broken; mend it\n"),
        (KeyboardInterrupt(), 130, "pagemint: interrupted; run again to continue\n"),
        (
            ValueError("two\nlines"),
            70,
            "pagemint: internal error: ValueError: two lines; "
            "please report this with PAGEMINT_DEBUG=1 output\n",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "/root/linux"),
            1,
            "pagemint: cannot use /root/linux: Permission denied; "
            "run as a user who may, or name another\n",
        ),
    ],
)
def test_each_error_is_one_line(
    error: BaseException, status: int, text: str, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setattr(doctor, "main", Mock(side_effect=error))
    assert cli.main(["doctor"]) == status
    assert capsys.readouterr() == ("", text)


def test_debug_shows_the_traceback(capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.setenv("PAGEMINT_DEBUG", "1")
    monkeypatch.setattr(doctor, "main", Mock(side_effect=ValueError("oops")))
    assert cli.main(["doctor"]) == 70
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("argv", ["", "nonsense", "--nonsense", "source", "doctor --x\ny"])
def test_usage_errors_are_one_line(argv: str, refused: Refused) -> None:
    assert "--help" in refused(*(argv.split(" ") if argv else ()), usage=True)


def test_source_gets_a_line_that_is_named(refused: Refused) -> None:
    for argv in (["get"], ["list", "7.3"]):
        assert "get takes a kernel line, and list none" in refused("source", *argv)


def test_missing_apt_is_one_line(monkeypatch: Patch, refused: Refused) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    line = refused("source", "get", "7.3")
    assert re.search("give a kernel tree with --ksrc DIR|debian-archive-keyring", line)


def _argv(work: str) -> list[str]:
    """Return the command line of a program whose command `doctor` does some work."""
    program = (
        "import sys, time\n"
        "from pagemint.cli import main\n"
        "from pagemint.commands import doctor\n"
        f"doctor.main = lambda request: {work} or 0\n"
        "sys.exit(main(['doctor']))\n"
    )
    return [sys.executable, "-c", program]


def _signalled(number: signal.Signals, seconds: int, *before: str) -> tuple[int, str]:
    """Send a signal to a program that takes some seconds; return its status and what it said."""
    argv = [*before, *_argv(f"print('ready', flush=True) or time.sleep({seconds})")]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(number)
        _, err = child.communicate(timeout=10)
    return child.returncode, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.usefixtures("default_signals")
def test_signals_end_it_in_one_line(number: signal.Signals) -> None:
    assert _signalled(number, 30) == (130, "pagemint: interrupted; run again to continue\n")


def test_nohup_keeps_it_running() -> None:
    status, err = _signalled(signal.SIGHUP, 1, "nohup")
    assert "interrupted" not in err
    assert status == 0


def test_closed_stdout_is_quiet() -> None:
    read, write = os.pipe()
    os.close(read)
    argv = _argv("print('data' * 50000)")
    ended = subprocess.run(argv, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_doctor_runs() -> None:
    ended = pagemint("doctor")
    assert ended.returncode in (0, 1)
    assert all(line.startswith("trying KVM") for line in ended.stderr.splitlines())
    for word in ("gcc", "avx512f", "returns", "KVM", "transparent huge", "memory", "disk"):
        assert word in ended.stdout


@pytest.mark.parametrize(("tool", "of"), [("objcopy", "binutils"), ("fio", "fio")])
def test_doctor_names_a_tool_that_is_missing(tool: str, of: str, monkeypatch: Patch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert doctor.main(doctor.Request()) == 1
    check = doctor.check_tool(tool)
    remedy = f"install it (Debian: {of}; Fedora: {of}; Arch: {of}; openSUSE: {of})"
    assert (check.ok, check.needed, check.remedy) == (False, tool == "objcopy", remedy)
    assert ("bench does not need it" in check.found) != check.needed


@pytest.mark.parametrize(("needed", "status"), [(True, 1), (False, 0)])
def test_doctor_fails_only_for_what_bench_needs(
    needed: bool, status: int, monkeypatch: Patch
) -> None:
    lack = doctor.Check("thing", False, "none", "get one", needed)
    monkeypatch.setattr(doctor, "checks", lambda: [lack])
    assert doctor.main(doctor.Request()) == status


def test_doctor_judges_huge_pages() -> None:
    texts = ["always [madvise] never\n", "[always] madvise never\n", "always madvise [never]\n", ""]
    assert [doctor.check_huge_pages(text).ok for text in texts] == [True, True, False, False]


def test_doctor_judges_the_processor() -> None:
    checked = doctor.check_processor("x86_64", "model name : M\nflags : sse2 erms")
    checks = {check.what: check for check in checked}
    assert checks["sse2"].ok and checks["erms"].ok and not checks["avx512f"].ok
    assert not checks["avx512f"].needed
    assert not doctor.check_processor("aarch64", "")[0].ok


def test_doctor_judges_returns() -> None:
    assert doctor.check_returns("safe", "").found == "Safe RET"
    other = doctor.check_returns("plain", "retbleed is 'Mitigation: Stuffing'")
    assert (other.ok, other.needed) == (False, False)
    assert "Stuffing" in other.found


@pytest.mark.parametrize(
    ("guest", "ok", "text"),
    [
        ("exit 33", True, "a guest runs"),
        ("exit 1", False, "no guest runs"),
        ("exec sleep 9", False, "hang or crawl"),
    ],
)
def test_doctor_tries_kvm(
    guest: str, ok: bool, text: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    program(tmp_path / "qemu-system-x86_64", guest)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(doctor, "_KVM_LIMIT", 1.0)
    check = doctor.check_kvm("/dev/null")
    assert (check.ok, check.needed) == (ok, False)
    assert text in check.found
    assert bool(check.remedy) != ok


def test_doctor_says_why_kvm_was_not_tried(monkeypatch: Patch) -> None:
    assert "no /nowhere" in doctor.check_kvm("/nowhere").found
    monkeypatch.setenv("PATH", "/nowhere")
    assert doctor.check_kvm("/dev/null").remedy.startswith("install it (Debian: qemu-system-x86; ")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "adduser" in doctor.check_kvm("/dev/null").remedy
