# SPDX-License-Identifier: GPL-2.0-only
"""The size of the machine: of its memory and CPUs, the part that limits leave to this process."""

from pathlib import Path

import pytest

from pagemint.base import machine

_GB = 10**9
_FREE = 8 * 1024**3  # bytes of MemAvailable
_V2 = "29 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
_V1 = (
    "31 22 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 22 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
)


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


def _v2(**groups: object) -> dict[str, str]:
    """Return a tree of version 2: the process is in /a/b c; the keys are FILE_GROUP."""
    files = {"proc/self/cgroup": "0::/a/b c\n", "proc/self/mountinfo": _V2}
    for key, value in groups.items():
        file, group = key.rsplit("_", 1)
        where = {"a": "a", "b": "a/b c"}[group]
        files[f"sys/fs/cgroup/{where}/{file.replace('_', '.')}"] = f"{value}\n"
    return files


def _v1(**groups: object) -> dict[str, str]:
    """Return a tree of version 1, with the process in /a/b of both controllers."""
    files = {
        "proc/self/cgroup": "4:memory:/a/b\n3:cpu,cpuacct:/a/b\n0::/\n",
        "proc/self/mountinfo": _V1,
    }
    for key, value in groups.items():
        file, group = key.rsplit("_", 1)
        folder = "memory" if file.startswith("memory") else "cpu,cpuacct"
        where = f"sys/fs/cgroup/{folder}/{'a/b' if group == 'b' else 'a'}"
        files[f"{where}/{file.replace('_', '.', 1)}"] = f"{value}\n"
    return files


_MEMORY = {
    "no cgroup": ({}, _FREE, ""),
    "v2 max": (_v2(memory_max_b="max", memory_current_b=1), _FREE, ""),
    "v2": (_v2(memory_max_b=4 * _GB, memory_current_b=_GB), 3 * _GB, "/a/b c"),
    "v2, the one above is smaller": (
        _v2(memory_max_a=2 * _GB, memory_current_a=_GB)
        | _v2(memory_max_b=4 * _GB, memory_current_b=0),
        *(_GB, "/a"),
    ),
    "v2, slowed down before its limit": (
        _v2(memory_max_a="max", memory_high_a=_GB, memory_current_a=0),
        *(_GB, "/a"),
    ),
    "v2, files are cached": (
        _v2(
            memory_max_b=4 * _GB,
            memory_current_b=3 * _GB,
            memory_stat_b=f"anon 5\ninactive_file {_GB}\nactive_file {_GB}",
        ),
        *(3 * _GB, "/a/b c"),
    ),
    "v2, over its limit": (_v2(memory_max_b=_GB, memory_current_b=2 * _GB), 0, "/a/b c"),
    "v2, more than there is": (_v2(memory_max_b=100 * _GB, memory_current_b=0), _FREE, ""),
    "v1, no limit": (
        _v1(memory_limit_in_bytes_b=2**63 - 4096, memory_usage_in_bytes_b=0),
        *(_FREE, ""),
    ),
    "v1, the one above is smaller": (
        _v1(
            memory_limit_in_bytes_a=400_000_000,
            memory_usage_in_bytes_a=100_000_000,
            memory_limit_in_bytes_b=_GB,
            memory_usage_in_bytes_b=0,
            memory_stat_a="inactive_file 7\ntotal_inactive_file 50000000",
        ),
        *(350_000_000, "/a"),
    ),
    "v1, the mount begins at the cgroup of a container": (
        {
            "proc/self/cgroup": "4:memory:/docker/123\n",
            "proc/self/mountinfo": _V1.replace(" / /sys", " /docker/123 /sys", 1),
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{_GB}\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "0\n",
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
    "v2 max": (_v2(cpu_max_b="max 100000"), 8),
    "v2": (_v2(cpu_max_b="350000 100000"), 3),
    "v2, half a CPU": (_v2(cpu_max_b="50000 100000"), 1),
    "v2, above": (_v2(cpu_max_a="40000 20000", cpu_max_b="max 100000"), 2),
    "v1, no limit": (_v1(cpu_cfs_quota_us_b=-1, cpu_cfs_period_us_b=10**5), 8),
    "v1, above": (_v1(cpu_cfs_quota_us_a=300_000, cpu_cfs_period_us_a=10**5), 3),
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
