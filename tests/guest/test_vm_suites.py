# SPDX-License-Identifier: GPL-2.0-only
"""The suites that only the user has, by stand-ins for them: a part of `make check-vm`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from guest_records import LONG, guest_kernel

from pagemint.guests.outside import lab
from pagemint.guests.outside.checks import checks_of
from pagemint.guests.outside.guest import Guest

pytestmark = LONG

DEVICE = 3 << 29  # bytes; xfs needs 300 MB of each half
NDCTL = (
    *("dax-dev", "dax-ext4.sh", "dax-xfs.sh", "mmap.sh"),
    *("device-dax", "device-dax-fio.sh", "revoke-devmem"),
    *("sub-section.sh", "daxctl-devices.sh"),
    *("multi-dax.sh", "daxdev-errors.sh", "daxctl-create.sh"),
)
CHECK = r"""#!/bin/sh
# Uses the two devices as the real suite does, and says how three tests ended.
set -e
. "$HOST_OPTIONS"
mount -t $FSTYP $TEST_FS_MOUNT_OPTS $TEST_DEV "$TEST_DIR"
mkfs.$FSTYP -q $MKFS_OPTIONS $SCRATCH_DEV
mount -t $FSTYP $MOUNT_OPTIONS $SCRATCH_DEV "$SCRATCH_MNT"
test "$(grep -cE "^/dev/pmem[01] .* $FSTYP .*dax=always" /proc/mounts)" = 2
test "$1 $2" = '-R xunit'
cat >"$RESULT_BASE/result.xml" <<END
<testsuite>
<testcase name="$3"/>
<testcase name="$4"><skipped message="no such thing"/></testcase>
<testcase name="$5"><failure message="- output mismatch"/></testcase>
</testsuite>
END
umount "$SCRATCH_MNT" "$TEST_DIR"
exit 1
"""


ENDS = {
    "xfstests": [("pass", ""), ("skip", "no such thing"), ("fail", "- output mismatch")] * 2,
    "ndctl": [("skip" if name.endswith(".sh") else "pass", "") for name in NDCTL for _ in "12"],
}


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    suite, build = tmp_path / "xfstests", tmp_path / "ndctl"
    suite.mkdir()
    (suite / "check").write_text(CHECK)
    (suite / "check").chmod(0o755)
    (build / "meson-info").mkdir(parents=True)
    script = 'test -x "$NDCTL"; test "$CXL" = "$0/cxl/cxl"; case $1 in *.sh) exit 77;; esac\n'
    # Each of the mocked drivers loads, and finds what it should.
    script += "modprobe nfit_test; modprobe cxl_test; ls -d /sys/bus/nd/devices/ndbus3"
    tests = [
        {
            "name": name,
            "cmd": ["sh", "-e", "-c", script, str(build), name],
            "env": {"NDCTL": "/bin/true"},
        }
        for name in NDCTL
    ]
    (build / "meson-info/intro-tests.json").write_text(json.dumps(tests))
    return Guest("tcg", DEVICE, 900, directories={"xfstests": suite, "ndctl": build})


@pytest.mark.usefixtures("in_user_cache")
@pytest.mark.parametrize("suite", ["xfstests", "ndctl"])
def test_a_suite_of_the_user_is_run(suite: str, guest: Guest) -> None:
    base = guest_kernel("base", *lab.FRAGMENTS, *lab.SUITES[suite].fragments)
    records, _ = replace(guest, **lab.SUITES[suite].guest).run(base, suite, 2, DEVICE)
    ends = {check.name: (check.outcome, check.said) for check in checks_of("base", records)}
    assert list(ends.values()) == ENDS[suite]
