# SPDX-License-Identifier: GPL-2.0-only
"""Installs, uses, upgrades and purges the package of the module for stock kernels.

All of it in an overlay over this machine's root, whose changes lie in the guest's memory.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pagemint.guests.inside.checks import Record, check, expect
from pagemint.guests.inside.devices import DRIVERS, Device, Namespace, run
from pagemint.guests.inside.modes import FILLER, counts

NAME = "pagemint-dkms"
RELEASE = os.uname().release
BUILT = Path("lib/modules", RELEASE, "updates/dkms")
LINK = ("/usr/share/pagemint/load.conf", "/etc/modprobe.d/pagemint.conf")
KEY = Path("root/signing")  # of the test, not of DKMS
OWNER = "a key of the test"
LEFT = ("usr/src/pagemint*", "var/lib/dkms/pagemint*", "usr/share/pagemint*", LINK[1].lstrip("/"))


def package(debs: Path, headers: str) -> Iterator[Record]:
    """Take the package through its life.

    Args:
        debs: a directory with two versions of the package: old.deb and new.deb.
        headers: the headers of the running kernel.
    """
    device = Namespace("pfn", "map=dev")
    with _overlay(headers) as root:
        yield from check("install", _install, root, debs / "old.deb")
        yield from check("use", _use, root, device)
        yield from check("not by itself", _reload, root, "nd_pmem", loads=False)
        yield from check("before nd_pmem", _before, root, "nd_pmem")
        yield from check("before device_dax", _before, root, "device_dax")
        yield from check("upgrade", _upgrade, root, debs / "new.deb")
        yield from check("purge", _purge, root)


@contextmanager
def _overlay(headers: str) -> Iterator[Path]:
    """Yield a root directory that can be changed, with the modules of the running kernel."""
    run("modprobe", "overlay")
    memory, root = Path("/tmp/changes"), Path("/tmp/root")
    for directory in (memory, root):
        directory.mkdir()
    run("mount", "-t", "tmpfs", "none", memory)
    modules = Path("/lib/modules", RELEASE).resolve()
    mounts: list[Path] = []
    for number, (below, at) in enumerate(
        ((Path("/"), root), (modules, root / "lib/modules" / RELEASE))
    ):
        upper, work = memory / f"upper{number}", memory / f"work{number}"
        upper.mkdir()
        work.mkdir()
        at.mkdir(parents=True, exist_ok=True)
        options = f"lowerdir={below},upperdir={upper},workdir={work}"
        run("mount", "-t", "overlay", "none", "-o", options, at)
        mounts.append(at)
    for name in ("dev", "proc", "sys"):
        run("mount", "--rbind", f"/{name}", root / name)
        mounts.append(root / name)
    build = root / "lib/modules" / RELEASE / "build"
    build.unlink(missing_ok=True)
    build.symlink_to(headers)
    yield root
    for at in reversed(mounts):
        run("umount", "-l", at)


def _inside(root: Path, *argv: str) -> str:
    return run("chroot", root, "env", "DEBIAN_FRONTEND=noninteractive", *argv)


def _apt(root: Path, deb: Path) -> None:
    """Install a package, whose dependencies this machine has."""
    (root / "root").mkdir(exist_ok=True)
    (root / "root" / deb.name).write_bytes(deb.read_bytes())
    _inside(root, "apt-get", "install", "-y", f"/root/{deb.name}")


def _install(root: Path, deb: Path) -> str:
    _apt(root, deb)
    _built(root)
    expect(not FILLER.exists(), "the package loaded the module")
    return _inside(root, "dkms", "status", "pagemint").strip()


def _built(root: Path) -> Path:
    """Return the module that DKMS installed, below `root`; some kernels have theirs compressed."""
    modules = list((root / BUILT).glob("pagemint.ko*"))
    expect(len(modules) == 1, f"DKMS has {len(modules)} modules in {BUILT}, not one")
    return modules[0].relative_to(root)


def _use(root: Path, device: Device) -> str:
    _inside(root, "modprobe", "pagemint")
    device.bind()
    filled = counts()["pages_filled"]
    device.unbind()
    _inside(root, "modprobe", "-r", "pagemint")
    expect(filled > 0, "it filled nothing")
    return f"{filled} pages filled"


def _reload(root: Path, driver: str, *, loads: bool) -> str:
    """Load a driver again, and look whether the module comes with it."""
    for name in (*DRIVERS.values(), "device_dax"):
        if Path("/sys/module", name).exists():
            _inside(root, "modprobe", "-r", name)
    expect(not Path("/sys/module", driver).exists(), f"{driver} does not go")
    _inside(root, "modprobe", driver)
    loaded = FILLER.exists()
    if loaded:
        _inside(root, "rmmod", "pagemint")
    expect(loaded == loads, f"{driver} was loaded {'with' if loaded else 'without'} the module")
    return f"{driver} came {'with' if loaded else 'without'} the module"


def _before(root: Path, driver: str) -> str:
    """Do as docs/stock.md tells administrators who want the module at boot."""
    _inside(root, "ln", "-sf", *LINK)
    return _reload(root, driver, loads=True)


def _upgrade(root: Path, deb: Path) -> str:
    """Install the next version, which DKMS signs with a key of the administrator's."""
    _make_key(root)
    _apt(root, deb)
    status = _inside(root, "dkms", "status", "pagemint").strip()
    expect(
        len(re.findall(f"{re.escape(RELEASE)}.*: installed", status)) == 1, f"DKMS says {status}"
    )
    version = _inside(root, "dpkg-query", "-W", NAME).split()[1]
    expect(version.endswith("+1"), f"it is version {version}")
    signer = _inside(root, "modinfo", "-F", "signer", f"/{_built(root)}").strip()
    expect(signer == OWNER, f"the signer is {signer!r}")
    return f"{version}, signed by {signer}"


def _make_key(root: Path) -> None:
    (root / KEY).mkdir(parents=True)
    key, certificate = (Path("/") / KEY / name for name in ("key.pem", "certificate.der"))
    argv = ["openssl", "req", "-new", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9"]
    argv += ["-subj", f"/CN={OWNER}/", "-outform", "DER"]
    _inside(root, *argv, "-keyout", str(key), "-out", str(certificate))
    settings = root / "etc/dkms/framework.conf.d/signing.conf"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f"mok_signing_key={key}\nmok_certificate={certificate}\n")


def _purge(root: Path) -> str:
    _inside(root, "apt-get", "purge", "-y", NAME)
    left = [str(path) for name in LEFT for path in root.glob(name)]
    left += [str(path) for path in (root / "lib/modules").rglob("pagemint.ko*")]
    expect(not left, f"it left {left}")
    return "nothing is left"
