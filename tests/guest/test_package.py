# SPDX-License-Identifier: GPL-2.0-only
"""The Debian packages: what they contain, and the life of pagemint-dkms in a guest."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from guest_records import DEVICE, LONG, passed

from pagemint import __version__
from pagemint.guests.outside.guest import Guest
from pagemint.trees import stock

_ROOT = Path(__file__).parents[2]


def _run(*argv: str | Path) -> str:
    return subprocess.run(argv, cwd=_ROOT, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two versions of pagemint-dkms: old.deb and new.deb."""
    made = tmp_path_factory.mktemp("packages")
    _run("sh", "scripts/deb", "dkms", made)
    (old,) = made.glob("*.deb")
    _run("dpkg-deb", "-R", old, made / "new")
    control = made / "new/DEBIAN/control"
    control.write_text(re.sub(r"^(Version: .*)$", r"\1+1", control.read_text(), flags=re.MULTILINE))
    _run("dpkg-deb", "-b", made / "new", made / "new.deb")
    old.rename(made / "old.deb")
    return made


def test_all_versions_agree() -> None:
    changelog = (_ROOT / "debian/changelog").read_text()
    assert changelog.startswith(f"pagemint ({__version__}) ")
    assert f"\n## {__version__} (" in (_ROOT / "CHANGELOG.md").read_text()
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
    assert f'PACKAGE_VERSION="{__version__}"' in (_ROOT / "stock/dkms.conf").read_text()
    assert f'MODULE_VERSION("{__version__}")' in (_ROOT / "stock/main.c").read_text()


def test_a_missing_tool_is_one_line(tmp_path: Path) -> None:
    for name in ("dirname", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    env = {**os.environ, "PATH": str(tmp_path)}
    argv = ["/bin/sh", str(_ROOT / "scripts/deb")]
    ended = subprocess.run(argv, env=env, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "dpkg-buildpackage is missing: apt-get install" in ended.stderr


@LONG
def test_the_package_has_what_the_module_is_built_from(packages: Path) -> None:
    text = _run("dpkg-deb", "-c", packages / "old.deb")
    packed = set(
        re.findall(rf" \./usr/src/pagemint-{re.escape(__version__)}/(.*[^/\n])$", text, re.M)
    )
    module = {f"stock/{file.name}" for file in stock.sources() if file.name != "fault.c"}
    assert packed >= module | {"dkms.conf", "stock/Kbuild"}
    assert {name for name in packed if name.startswith("stock/")} == module | {"stock/Kbuild"}


@LONG
@pytest.mark.parametrize("line", ["6.1", "6.12"], ids=lambda line: f"linux-{line}")
@pytest.mark.usefixtures("in_user_cache")
def test_the_package_lives_and_goes(line: str, packages: Path) -> None:
    guest = Guest("tcg", DEVICE, 3600, directories={"packages": packages})
    records, _ = guest.run(stock.kernel(line), "stock-package", 2, DEVICE)
    assert list(passed(records)) == [
        "install",
        "use",
        "not by itself",
        "before nd_pmem",
        "before device_dax",
        "upgrade",
        "purge",
    ]
