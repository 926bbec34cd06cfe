# SPDX-License-Identifier: GPL-2.0-only
"""Runs suites that the user has on this machine: xfstests, and the tests of ndctl."""

import json
import shlex
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from pagemint.guests.inside.checks import Record, expect
from pagemint.guests.inside.devices import run
from pagemint.guests.inside.foreign import judged, ran
from pagemint.guests.inside.modes import permit_sharing

# Short tests of the groups "dax" and "mmap": a minute or two each in an emulated guest.
GENERIC = (
    *(29, 30, 80, 141, 215, 246, 248, 413, 428, 437, 452, 462, 499, 503, 511),
    *(605, 606, 607, 608, 623, 638, 647, 749),
)
OWN = {"ext4": ("ext4/031", "ext4/047"), "xfs": ("xfs/550", "xfs/551", "xfs/552")}
MAKE = {"ext4": ("-F", "-b", "4096"), "xfs": ("-f",)}  # options of mkfs
XFSTESTS_PATIENCE = 1700  # seconds for each file system
NDCTL_TESTS = (
    *("dax-dev", "dax-ext4.sh", "dax-xfs.sh", "mmap.sh"),
    *("device-dax", "device-dax-fio.sh", "revoke-devmem"),
    # These need an NVDIMM, or one that a mocked driver makes up.
    *("sub-section.sh", "daxctl-devices.sh"),
    *("multi-dax.sh", "daxdev-errors.sh", "daxctl-create.sh"),
)
DRIVERS = (
    *("nd_e820", "nfit", "nd_pmem", "dax_pmem", "device_dax", "kmem"),
    # daxctl-create.sh does not wait until udev has loaded these.
    *("cxl_port", "cxl_mem", "cxl_mock_mem", "dax_cxl"),
)
SKIPPED = (77,)  # the status of a test of ndctl that cannot run


def xfstests(suite: Path) -> Iterator[Record]:
    """Run tests of DAX and of mappings on fsdax, in each file system.

    Args:
        suite: the directory in which xfstests was built.
    """
    # Not two partitions: xfs uses DAX for one file system of a device only.
    for number in (0, 1):
        run("ndctl", "create-namespace", "-f", "-m", "fsdax", "-e", f"namespace{number}.0")
    for kind in OWN:
        yield {"running": f"xfstests on {kind}"}
        yield from _xfstests(suite, kind)


def _xfstests(suite: Path, kind: str) -> Iterator[Record]:
    tests = (*(f"generic/{number:03}" for number in GENERIC), *OWN[kind])
    with tempfile.TemporaryDirectory() as name:
        results, config = Path(name), Path(name, "config")
        settings = {
            "FSTYP": kind,
            "TEST_DEV": "/dev/pmem0",
            "TEST_DIR": results / "test",
            "SCRATCH_DEV": "/dev/pmem1",
            "SCRATCH_MNT": results / "scratch",
            "MKFS_OPTIONS": shlex.quote(shlex.join(MAKE[kind])),
            "MOUNT_OPTIONS": "'-o dax=always'",
            "TEST_FS_MOUNT_OPTS": "'-o dax=always'",
            "RESULT_BASE": results,
        }
        config.write_text("".join(f"export {name}={value}\n" for name, value in settings.items()))
        (results / "test").mkdir()
        (results / "scratch").mkdir()
        run(f"mkfs.{kind}", "-q", *MAKE[kind], "/dev/pmem0")
        done = ran(
            ["./check", "-R", "xunit", *tests],
            directory=suite,
            patience=XFSTESTS_PATIENCE,
            HOST_OPTIONS=str(config),
        )
        report = results / "result.xml"
        expect(report.exists(), f"xfstests wrote no result, but {done.stdout[-200:]!r}")
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            trouble = next((part for part in case if part.tag in ("skipped", "failure")), None)
            outcome = "pass" if trouble is None else "skip" if trouble.tag == "skipped" else "fail"
            reason = "" if trouble is None else trouble.get("message", "").strip()
            check = f"{case.get('name')} on {kind}"
            yield {"check": check, "outcome": outcome, "said": reason, "must_pass": False}


def ndctl(build: Path, modules: Path) -> Iterator[Record]:
    """Run the tests of ndctl that need DAX, without and with a shared memmap if the kernel can.

    Args:
        build: the build directory of ndctl, configured with its destructive tests.
        modules: the directory with lib/modules, which has the mocked drivers of the kernel's.
    """
    listing = (build / "meson-info/intro-tests.json").read_text()
    known = {test["name"]: test for test in json.loads(listing)}
    for name in NDCTL_TESTS:
        expect(
            name in known,
            f"ndctl has no test {name}: configure -Dtest=enabled -Ddestructive=enabled",
        )
    library = Path("/lib").resolve()
    layers = f"lowerdir={modules / 'lib'}:{library}"
    run("mount", "-t", "overlay", "none", "-o", layers, str(library))
    run("modprobe", "-a", *DRIVERS)
    # The NVDIMM is new: without labels its region has one namespace, of all its memory.
    for command in (("disable-region",), ("init-labels", "-f"), ("enable-region",)):
        run("ndctl", *command, "-b", "ACPI.NFIT", "all")
    for name in NDCTL_TESTS:
        for shared in (False, True):
            permit_sharing(shared)
            check = f"ndctl's {name}{', shared memmap' if shared else ''}"
            yield {"running": check}
            # The scripts look for cxl in the build directory, but write to their own.
            env = {**known[name]["env"], "CXL": str(build / "cxl/cxl")}
            yield judged(check, ran(known[name]["cmd"], **env), SKIPPED)
