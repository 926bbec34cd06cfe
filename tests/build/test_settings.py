# SPDX-License-Identifier: GPL-2.0-only
"""Systems that forbid what pagemint needs, and outputs that cannot be written."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import stand_ins
from kernel_lines import LINES
from memmaps import program_for
from stand_ins import ARGV, Patch

from pagemint.base import cache, files, machine
from pagemint.base.errors import Failure, OutOfMemory
from pagemint.bench import process
from pagemint.bench.link import Program
from pagemint.bench.process import Host
from pagemint.bench.workload import Settings
from pagemint.bench.workloads import known
from pagemint.commands import bench_plan, bench_room, doctor


def _refuse_cache(home: Path, monkeypatch: Patch) -> Failure:
    """Return the refusal to write to a cache, after a look that the doctor says the same."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    with pytest.raises(Failure) as refused:
        cache.entry("kind", "key", lambda work: pytest.fail("something was made"))
    failure, judged = refused.value, doctor.check_cache()
    assert (judged.ok, judged.found, judged.remedy) == (False, failure.message, failure.remedy)
    assert str(home) in judged.found
    return failure


@pytest.mark.parametrize("name", ["a b", "a:b", "a\tb", "a#b", "$a", "a'b", "a\\b", "a%b", "(a)"])
def test_a_cache_where_no_kernel_builds_is_refused(
    tmp_path: Path, monkeypatch: Patch, name: str
) -> None:
    refusal = _refuse_cache(tmp_path / name, monkeypatch)
    assert "kernels do not build there; set XDG_CACHE_HOME" in str(refusal)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["a-b", "a+b", "ä", "a,b@c=d^e~f"])
def test_a_cache_with_other_characters_is_used(
    tmp_path: Path, monkeypatch: Patch, name: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    assert cache.entry("kind", "key", lambda work: None).is_dir()
    assert doctor.check_cache().ok


def test_a_cache_whose_programs_may_not_run_is_refused(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_NOEXEC))
    assert "mounted noexec" in str(_refuse_cache(tmp_path, monkeypatch))


def test_a_cache_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: Patch) -> None:
    (tmp_path / "file").touch()
    # Not even root can write to /proc/sys.
    for home in (tmp_path / "file", Path("/proc/sys")):
        refusal = _refuse_cache(home, monkeypatch)
        assert str(refusal).endswith("; set XDG_CACHE_HOME to another directory of yours")


def _host(tmp_path: Path, script: str) -> Host:
    stand_ins.program(tmp_path / "host", f"read line\n{script}")
    return Host(Program(tmp_path, {}))


def _error(host: Host) -> Failure:
    with host, pytest.raises(Failure) as failed:
        host.ask("map")
    return failed.value


@pytest.mark.parametrize("kind", process._REMEDIES)
def test_the_remedy_depends_on_the_kind_of_an_error_alone(tmp_path: Path, kind: str) -> None:
    text = "the command has no stand-in: fault at memory"
    failure = _error(_host(tmp_path, f"echo 'error {kind}: {text}'"))
    assert failure.message == f"the native host failed at 'map': {text}"
    assert failure.remedy == process._REMEDIES[kind]


def test_each_kind_of_error_has_a_remedy() -> None:
    text = "".join(file.read_text() for file in (files.BENCH / "host").glob("*.c"))
    kinds = set(re.findall(r'text\), "([\w-]+): ', text))  # of faults in kernel code
    kinds |= set(re.findall(r'command_refuse\(r, (?:[^"]*\? )?"([\w-]+)"', text))
    died = re.findall(r'host_die\("(?:([\w-]+): )?', text)
    refusals = {"command", "execmem", "refused"}  # named by variables
    assert kinds | set(died) | refusals == set(process._REMEDIES)


@pytest.mark.usefixtures("in_user_cache")
def test_a_system_that_forbids_writable_code_has_a_remedy_of_its_own(tmp_path: Path) -> None:
    real = program_for(LINES[-1], "mask").at
    for name in ("traps", "sites"):
        (tmp_path / name).symlink_to(real / name)
    wrapper = tmp_path / "host"
    # 65 is PR_SET_MDWE, which MemoryDenyWriteExecute= of systemd sets, too.
    wrapper.write_text(
        f"#!{sys.executable}\nimport ctypes, os, sys\n"
        "if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):\n    os._exit(77)\n"
        f"os.execv('{real}/host', ['{real}/host', *sys.argv[1:]])\n"
    )
    wrapper.chmod(0o755)
    with Host(Program(tmp_path, {})) as host, pytest.raises(Failure) as failed:
        host.patch("plain")
    if "status 77" in failed.value.message:
        pytest.skip("Linux before 6.3 has no PR_SET_MDWE")
    assert failed.value.message.endswith("the command patch fails: code cannot be made writable")
    assert failed.value.remedy == process._REMEDIES["execmem"]


@pytest.mark.parametrize(
    ("kills", "cgroup", "message"),
    [
        ((3, 4), "", "probably for want of memory"),
        ((3, 3), "/a", "probably for want of memory"),
        ((3, 3), "", "it was killed; find out who sent SIGKILL"),
    ],
)
def test_a_host_that_was_killed_says_why(
    tmp_path: Path, monkeypatch: Patch, kills: Sequence[int], cgroup: str, message: str
) -> None:
    counts = iter(kills)
    monkeypatch.setattr(machine, "oom_kills", lambda: next(counts))
    monkeypatch.setattr(machine, "confines", lambda: cgroup)
    assert message in str(_error(_host(tmp_path, "kill -KILL $$")))


def test_a_size_that_fits_is_named_after_a_kill(monkeypatch: Patch) -> None:
    monkeypatch.setattr(machine, "free", lambda: 10**9)
    workload, asked = known()["fsdax"], Settings(100 * 10**9)
    with pytest.raises(OutOfMemory) as failed, bench_plan.smaller_size(workload, asked):
        raise OutOfMemory("it was killed", "buy memory")
    size = re.fullmatch(r"it was killed; --size (\d+)GB fits", str(failed.value))
    assert size
    assert workload.memory(Settings(int(size[1]) * 10**9)) <= bench_room.free()


_STREAMS = {
    ">&-": "standard output is closed; redirect it to a file or /dev/null",
    ">/dev/full": "cannot write standard output: No space left on device",
}


@pytest.mark.parametrize("streams", _STREAMS)
@pytest.mark.parametrize("command", ["source list", "cache", "bench --expect x"])
def test_an_output_that_cannot_be_written_is_one_line(streams: str, command: str) -> None:
    program = (
        "import sys, types\nfrom pagemint import cli\n"
        "def main(request): print('data'); return 0\n"
        f"name = {command.split()[0]!r}\nmodule = cli._module(name)\nmodule.main = main\n"
        f"sys.exit(cli.main({command.split()!r}))\n"
    )
    argv = ["sh", "-c", f'exec "$@" {streams}', "sh", ARGV[0], "-c", program]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ended = subprocess.run(argv, stderr=subprocess.PIPE, text=True, env=env)
    assert ended.stderr.startswith(f"pagemint: {_STREAMS[streams]}")
    assert ended.stderr.count("\n") == 1
    # With --expect, 1 is an answer, so it must not stand for a failure.
    assert ended.returncode == (bench_plan.ABORTED if "--expect" in command else 1)


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full", "2>&- <&-"])
def test_an_error_that_cannot_be_written_keeps_its_status(streams: str) -> None:
    argv = ["sh", "-c", f'exec "$@" {streams}', "sh", *ARGV, "bench", "--size", "0"]
    ended = subprocess.run(argv, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "")
