# SPDX-License-Identifier: GPL-2.0-only
"""The size of the machine: of its memory and CPUs, the part that limits leave to this process."""

from pathlib import Path

import pytest

from pagemint.base import machine

_GB = 10**9
_FREE = 8 * 1024**3  # bytes of MemAvailable
_MOUNT = "29 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"


def _tree(root: Path, files: dict[str, str]) -> Path:
    base = {
        "proc/meminfo": f"MemTotal: 16777216 kB\nMemAvailable: {_FREE // 1024} kB\n",
        "proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-7\n",
        "proc/self/mountinfo": "22 1 8:1 / / rw - ext4 /dev/vda rw\n",
    }
    for name, text in (base | files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def _cgroup(**groups: object) -> dict[str, str]:
    """Return a tree; the process is in /a/b c; the keys are FILE_GROUP."""
    files = {"proc/self/cgroup": "0::/a/b c\n", "proc/self/mountinfo": _MOUNT}
    for key, value in groups.items():
        file, group = key.rsplit("_", 1)
        where = {"a": "a", "b": "a/b c"}[group]
        files[f"sys/fs/cgroup/{where}/{file.replace('_', '.')}"] = f"{value}\n"
    return files


_MEMORY = {
    "no cgroup": ({}, _FREE, ""),
    "no limit in the cgroup": (_cgroup(memory_max_b="max", memory_current_b=1), _FREE, ""),
    "a limit": (_cgroup(memory_max_b=4 * _GB, memory_current_b=_GB), 3 * _GB, "/a/b c"),
    "the one above is smaller": (
        _cgroup(memory_max_a=2 * _GB, memory_current_a=_GB)
        | _cgroup(memory_max_b=4 * _GB, memory_current_b=0),
        *(_GB, "/a"),
    ),
    "slowed down before its limit": (
        _cgroup(memory_max_a="max", memory_high_a=_GB, memory_current_a=0),
        *(_GB, "/a"),
    ),
    "files are cached": (
        _cgroup(
            memory_max_b=4 * _GB,
            memory_current_b=3 * _GB,
            memory_stat_b=f"anon 5\ninactive_file {_GB}\nactive_file {_GB}",
        ),
        *(3 * _GB, "/a/b c"),
    ),
    "over its limit": (_cgroup(memory_max_b=_GB, memory_current_b=2 * _GB), 0, "/a/b c"),
    "more than there is": (_cgroup(memory_max_b=100 * _GB, memory_current_b=0), _FREE, ""),
    "the mount begins at the cgroup of a container": (
        {
            "proc/self/cgroup": "0::/docker/123\n",
            "proc/self/mountinfo": _MOUNT.replace(" / ", " /docker/123 ", 1),
            "sys/fs/cgroup/memory.max": f"{_GB}\n",
            "sys/fs/cgroup/memory.current": "0\n",
        },
        *(_GB, "/"),
    ),
}


@pytest.mark.parametrize(("files", "free", "name"), _MEMORY.values(), ids=_MEMORY)
def test_memory_is_what_the_least_limit_leaves(
    tmp_path: Path, files: dict[str, str], free: int, name: str
) -> None:
    root = _tree(tmp_path, files)
    assert (machine.free(root), machine.confines(root)) == (free, name)


_CPUS = {
    "no limit": ({}, 8),
    "affinity": ({"proc/self/status": "Cpus_allowed_list:\t0,2-3,9\n"}, 4),
    "no limit in the cgroup": (_cgroup(cpu_max_b="max 100000"), 8),
    "a limit": (_cgroup(cpu_max_b="350000 100000"), 3),
    "half a CPU": (_cgroup(cpu_max_b="50000 100000"), 1),
    "above": (_cgroup(cpu_max_a="40000 20000", cpu_max_b="max 100000"), 2),
}


@pytest.mark.parametrize(("files", "cpus"), _CPUS.values(), ids=_CPUS)
def test_cpus_are_those_that_affinity_and_quotas_leave(
    tmp_path: Path, files: dict[str, str], cpus: int
) -> None:
    assert machine.cpus(_tree(tmp_path, files)) == cpus


def test_kills_for_want_of_memory_are_counted(tmp_path: Path) -> None:
    root = _tree(tmp_path, {"proc/vmstat": "nr_free_pages 1\noom_kill 3\nother 4\n"})
    assert machine.oom_kills(root) == 3
    assert machine.oom_kills(tmp_path / "nowhere") == 0


def test_this_machine_can_be_read() -> None:
    assert 0 < machine.free() <= machine.memory()["MemTotal"]
    assert machine.cpus() >= 1
