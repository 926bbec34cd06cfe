# SPDX-License-Identifier: GPL-2.0-only
import hashlib
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import Mock

import pytest
from stand_ins import Capture, Patch

from pagemint import words
from pagemint.base.errors import Failure
from pagemint.trees import sources, trees
from pagemint.trees.debian import apt
from pagemint.trees.debian.apt import Package, Repository

# As apt-cache show prints it, shortened.
_SHOWN = """\
Package: linux-source-7.3
Source: linux
Version: 7.3.4-1~bpo13+1
Description: Linux kernel source for version 7.3 with Debian patches
 This package provides source code for the Linux kernel version 7.3.
 Version: not this one
Size: 166780612
SHA256: 703e369ddd4cce971452f5a593ee55df3a5c10c83caf0fa0df039633ed181ee3

Package: linux-source-7.3
Version: 7.3~rc7-1~exp1
Size: 166042412
SHA256: 8bf8ca5ea8b1b307ca698db982ba48d6d223263b4d3dfb1973d055e316c44e75

Package: linux-source-7.3
Version: 7.3.4-1~bpo13+1
Size: 166780612
SHA256: 703e369ddd4cce971452f5a593ee55df3a5c10c83caf0fa0df039633ed181ee3

"""

_RELEASE = """\
-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA256

Origin: Debian
Suite: stable
Version: 13.7
Codename: trixie
"""


def _package(line: str, version: str, kind: str = "source") -> Package:
    return Package(f"linux-{kind}-{line}", version, 1, "0" * 64)


def _tree(directory: Path, version: str = "7.3.4") -> Path:
    numbers = version.split(".")
    names = ("VERSION", "PATCHLEVEL", "SUBLEVEL")
    (directory / "mm").mkdir(parents=True)
    (directory / "mm/mm_init.c").touch()
    (directory / "Kconfig").touch()
    lines = [f"{name} = {number}" for name, number in zip(names, numbers, strict=True)]
    (directory / "Makefile").write_text("\n".join([*lines, "EXTRAVERSION =", "NAME = x"]) + "\n")
    return directory


def _cached(cache_home: Path, package_version: str, version: str) -> Path:
    entry = cache_home / "sources" / package_version
    _tree(entry / "linux", version)
    (entry / "config").touch()
    (entry / ".complete").touch()
    return entry


@pytest.fixture
def mirror(monkeypatch: Patch) -> list[Package]:
    """The packages that the mirror has; no apt runs."""
    held: list[Package] = []
    monkeypatch.setattr(
        apt, "packages", lambda pattern: [p for p in held if re.fullmatch(pattern, p.name)]
    )
    return held


def test_packages_are_read_once_each() -> None:
    assert [(p.version, p.size, p.sha256[:4]) for p in apt.parse_packages(_SHOWN)] == [
        ("7.3.4-1~bpo13+1", 166780612, "703e"),
        ("7.3~rc7-1~exp1", 166042412, "8bf8"),
    ]


def test_codename_is_read_from_a_release_file() -> None:
    assert apt.parse_codename(_RELEASE) == ("stable", "trixie")
    assert apt.parse_codename("Origin: Debian\n") is None


def test_the_first_complaint_of_apt_is_told() -> None:
    output = "Err:1 x\nW: Failed to fetch x  Unable to connect\nE: Some index files failed\n"
    assert apt.parse_problem(output) == "Failed to fetch x  Unable to connect"
    assert apt.parse_problem("") == "apt-get update failed"


def test_debian_repositories_are_told_from_others() -> None:
    text = (
        "http://mirror.example/debian/|trixie|main|Debian\n"
        "http://mirror.example/debian/|trixie-extra|contrib|Debian\n"
        "http://mirror.example/debian/|trixie|main|Debian\n"
        "http://mirror.example/security/|trixie-security|main|Debian\n"
        "http://mirror.example/debian/|trixie-backports|main|Debian Backports\n"
        "http://vendor.example/linux/debian/|trixie|main|Vendor\n"
        # The address judges an unknown origin.
        "http://mirror.example/snapshot/debian/20260101T000000Z/|sid|main|$(ORIGIN)\n"
        "http://vendor.example/packages/|trixie|main|$(ORIGIN)\n"
    )
    assert apt.parse_targets(text) == [
        Repository("http://mirror.example/debian/", "trixie"),
        Repository("http://mirror.example/security/", "trixie-security"),
        Repository("http://mirror.example/debian/", "trixie-backports"),
        Repository("http://mirror.example/snapshot/debian/20260101T000000Z/", "sid"),
    ]


def test_suites_are_taken_by_codename_but_experimental() -> None:
    machine = [Repository("u", "stable"), Repository("s", "trixie-security")]
    codenames = {"stable": "trixie", "unstable": "sid", "experimental": "rc-buggy"}
    assert apt._with_codenames(machine, codenames) == [
        Repository("u", "trixie"),
        Repository("s", "trixie-security"),
        Repository("u", "sid"),
        Repository("u", "experimental"),
    ]


@pytest.mark.parametrize(
    ("versions", "newest"),
    [
        (["7.3~rc7-1~exp1", "7.3.4-1~bpo13+1", "7.3.10-1~bpo13+1"], "7.3.10-1~bpo13+1"),
        (["7.4.1-1", "7.4.2~rc1-1"], "7.4.1-1"),
        (["7.4~rc2-1~exp1", "7.4~rc10-1~exp1"], "7.4~rc10-1~exp1"),
        (["7.4.1-1", "7.4.1-1~bpo13+1"], "7.4.1-1"),
    ],
)
def test_release_candidates_come_last(versions: list[str], newest: str) -> None:
    assert sources._newest_version(versions) == newest


def test_cached_line_needs_no_mirror(cache_home: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(apt, "packages", None)
    _cached(cache_home, "7.3.4-1~bpo13+1", "7.3.4")
    entry = _cached(cache_home, "7.3.10-1", "7.3.10")
    _cached(cache_home, "7.30.1-1", "7.30.1")
    (cache_home / "sources/7.3.99-1").mkdir()  # not complete
    got = sources.get("7.3")
    assert got == sources.Source("7.3.10", "7.3", "7.3.10-1", entry / "linux")
    assert sources.config_for("7.3") == entry / "config"


def test_get_unpacks_what_it_downloads(
    cache_home: Path, mirror: list[Package], monkeypatch: Patch, tmp_path: Path
) -> None:
    debs = _make_debs(tmp_path, "7.3")
    asked: list[list[str]] = []

    @contextmanager
    def downloaded(wanted: list[Package], what: str) -> Iterator[list[Path]]:
        asked.append([f"{p.name}={p.version}" for p in wanted])
        yield debs

    monkeypatch.setattr(apt, "downloaded", downloaded)
    mirror += [_package("7.3", "7.3.4-1"), _package("7.3", "7.3~rc7-1")]
    mirror += [_package("7.3", "7.3.4-1", "config"), _package("7.3", "7.3.5-1", "config")]
    got = sources.get("7.3")
    assert asked == [["linux-source-7.3=7.3.4-1", "linux-config-7.3=7.3.4-1"]]
    assert (got.version, got.package_version) == ("7.3.4", "7.3.4-1")
    assert sources.config_for("7.3").read_text() == "CONFIG_X=y\n"
    names = sorted(path.name for path in (cache_home / "sources/7.3.4-1").iterdir())
    assert names == [".complete", "config", "linux"]
    assert sources.get("7.3") == got
    assert len(asked) == 1


@pytest.mark.parametrize("used", [True, False])
def test_packages_are_deleted_once_they_are_used(monkeypatch: Patch, *, used: bool) -> None:
    package = Package("linux-config-7.3", "1", 4, hashlib.sha256(b"data").hexdigest())

    def run(argv: list[str], *, cwd: Path, **more: object) -> None:
        assert argv[-1] == "linux-config-7.3=1"
        (cwd / "linux-config-7.3_1_all.deb").write_bytes(b"data")

    monkeypatch.setattr(apt, "run", run)
    with suppress(ValueError), apt.downloaded([package], "fetching") as debs:
        assert [deb.read_bytes() for deb in debs] == [b"data"]
        if not used:
            raise ValueError
    assert [deb.exists() for deb in debs] == [not used]


def _make_debs(directory: Path, line: str) -> list[Path]:
    """Build a source and a configuration package as Debian lays them out, only smaller."""
    usr = directory / "source/usr/src"
    usr.mkdir(parents=True)
    _tree(directory / f"linux-source-{line}")
    archive = usr / f"linux-source-{line}.tar.xz"
    subprocess.run(["tar", "-cJf", archive, "-C", directory, f"linux-source-{line}"], check=True)
    configs = directory / f"config/usr/src/linux-config-{line}"
    configs.mkdir(parents=True)
    (configs / "config.amd64_none_amd64").write_text("CONFIG_X=y\n")
    subprocess.run(["xz", configs / "config.amd64_none_amd64"], check=True)
    debs = []
    for kind in ("source", "config"):
        (directory / kind / "DEBIAN").mkdir()
        control = f"Package: linux-{kind}-{line}\nVersion: 1\nArchitecture: all\n"
        control += "Maintainer: Nobody <nobody@example.org>\nDescription: test\n"
        (directory / kind / "DEBIAN/control").write_text(control)
        deb = directory / f"{kind}.deb"
        argv = ["dpkg-deb", "-Znone", "--root-owner-group", "-b", str(directory / kind), str(deb)]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        debs.append(deb)
    return debs


def test_unknown_line_names_those_there_are(mirror: list[Package]) -> None:
    mirror += [_package("6.12", "6.12.1-1"), _package("7.3", "7.3.4-1")]
    with pytest.raises(Failure) as caught:
        sources.get("9.9")
    assert "no Linux 9.9" in caught.value.message
    assert "6.12, 7.3" in caught.value.remedy


@pytest.mark.parametrize("line", ["", "7", "7.3.4", "seven", "../7.3", "7.3\n"])
def test_an_invalid_line_is_refused(line: str, mirror: list[Package]) -> None:
    with pytest.raises(Failure, match="not a kernel line"):
        sources.get(line)


def test_list_joins_cache_and_mirror(cache_home: Path, mirror: list[Package]) -> None:
    _cached(cache_home, "7.3.4-1", "7.3.4")
    mirror += [_package("7.10", "7.10.1-1"), _package("7.3", "7.3.5-1"), _package("6.12", "6.12-1")]
    assert sources.available() == [
        ("6.12", "6.12-1", False),
        ("7.3", "7.3.4-1", True),
        ("7.10", "7.10.1-1", False),
    ]


def test_list_without_the_mirror(cache_home: Path, monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.setattr(apt, "packages", Mock(side_effect=Failure("the mirror is away", "wait")))
    with pytest.raises(Failure, match="away"):
        sources.available()
    _cached(cache_home, "7.3.4-1", "7.3.4")
    assert sources.available() == [("7.3", "7.3.4-1", True)]
    assert "away" in capsys.readouterr().err


def test_the_copy_of_an_own_tree_is_cleaned_and_nothing_else(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    tree = _tree(tmp_path / "mine", "7.3.1")
    (tree / ".config").touch()
    with (tree / "Makefile").open("a") as makefile:
        makefile.write('mrproper:\n\t@echo "$(KBUILD_OUTPUT)" >cleaned\n')
    monkeypatch.setenv("KBUILD_OUTPUT", "/somewhere")
    copied = trees.unpatched(words.BASE, sources.from_tree(tree))
    assert (copied.path / "cleaned").read_text() == "\n"


def test_an_incomplete_tree_is_refused(tmp_path: Path) -> None:
    tree = _tree(tmp_path / "mine")
    (tree / "Makefile").write_text("all:\n")
    with pytest.raises(Failure, match="names no version"):
        sources.from_tree(tree)
    for lack in ("mm/mm_init.c", "Kconfig", "Makefile"):
        (tree / lack).unlink()
        with pytest.raises(Failure, match=f"it has no {lack}"):
            sources.from_tree(tree)


def test_damaged_download_is_refused_and_removed(tmp_path: Path) -> None:
    deb = tmp_path / "linux-source-7.3_1%3a7.3.4-1_all.deb"
    deb.write_bytes(b"not it")
    with pytest.raises(Failure, match="does not have the SHA256"):
        apt._verified(tmp_path, _package("7.3", "1:7.3.4-1"))
    assert not deb.exists()


def test_a_suite_is_not_taken_from_other_mirrors(monkeypatch: Patch) -> None:
    security = [apt.Repository("https://mirror.example/debian-security", "stable-security")]
    monkeypatch.setattr(apt, "_machine_repositories", lambda: security)
    with pytest.raises(Failure, match="no mirror that has Debian's trixie"):
        apt.mirror("trixie")


def test_the_proxies_of_the_machine_are_kept(tmp_path: Path, monkeypatch: Patch) -> None:
    proxy = 'Acquire::http::Proxy::mirror.example "http://proxy.example:3128/";\n'
    (tmp_path / "apt.conf").write_text(proxy)
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    assert proxy in apt.reach() and "IndexTargets" not in apt.reach()
