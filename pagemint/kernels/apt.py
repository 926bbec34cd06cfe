# SPDX-License-Identifier: GPL-2.0-only
"""Packages from the machine's Debian mirror, through an apt state of pagemint's own.

Everything apt keeps (lists, index caches, downloads) lies in the cache directory, so no root is
needed and the machine's own state stays as it is. The mirror and the ways to reach it (proxies,
credentials) are the machine's. apt checks the signatures with Debian's keyring.
"""

import hashlib
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pagemint.base import cache
from pagemint.base.errors import Failure
from pagemint.base.progress import bar, step
from pagemint.base.run import run

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_ALIASES = (
    "oldstable",
    "oldstable-backports",
    "stable",
    "stable-backports",
    "testing",
    "unstable",
    "experimental",
)
_STAMP = "updated"
_FRESH = 3600.0  # seconds for which the lists count as up to date
_TARGET_FIELDS = ("REPO_URI", "RELEASE", "COMPONENT", "ORIGIN")


@dataclass(frozen=True)
class Repository:
    """One suite on one mirror, as the machine's apt is configured; suite may be a codename."""

    uri: str
    suite: str


@dataclass(frozen=True)
class Package:
    """One version of a package on the mirror; size in bytes, sha256 in hex.

    Of alternatives that it depends on, the first counts; versions do not.
    """

    name: str
    version: str
    size: int
    sha256: str
    depends: tuple[str, ...] = ()


def packages(pattern: str) -> list[Package]:
    """Return every version of every package whose whole name matches the regular expression.

    Raises:
        Failure: the machine has no Debian mirror, or it cannot be reached.
    """
    with cache.locked(_state(), "the package lists"):
        environment = _update()
        names = run(["apt-cache", "pkgnames"], env=environment, what="reading the package lists")
        wanted = sorted(name for name in names.split() if re.fullmatch(pattern, name))
        if not wanted:
            (_state() / _STAMP).unlink(missing_ok=True)  # look again next time
            return []
        text = run(
            ["apt-cache", "show", *wanted], env=environment, what="reading the package lists"
        )
    return parse_packages(text)


def download(wanted: Iterable[Package], what: str) -> list[Path]:
    """Fetch packages and return their .deb files, in order; an interrupted download is resumed.

    The files are the caller's to delete.

    Raises:
        Failure: the mirror does not deliver, or a file is not the one in its lists.
    """
    wanted = list(wanted)
    directory = _state() / "archives"
    directory.mkdir(parents=True, exist_ok=True)
    argv = ["apt-get", "-q", "download", *(f"{p.name}={p.version}" for p in wanted)]
    try:
        with _watched(directory, wanted, what):
            run(argv, cwd=directory, env=_environment(), what=what)
    except Failure as failure:
        # The lists, or the way to the mirror, may be out of date: the next run takes them anew.
        (_state() / _STAMP).unlink(missing_ok=True)
        raise Failure(failure.message, "check the network and run again") from failure
    return [_verified(directory, package) for package in wanted]


def download_closure(names: Iterable[str], architecture: str, directory: Path, what: str) -> None:
    """Fetch packages of an architecture, with all that they depend on, into `directory`.

    They are those of the machine's own suites, chosen and checked by apt.

    Raises:
        Failure: the mirror does not have them, or does not deliver.
    """
    with cache.locked(_state(), "the package lists"):
        _configure(architecture, _machine_repositories(), architecture)
        with step(f"looking for {architecture} packages on the Debian mirror"):
            problem = _apt_update(architecture)
        (directory / "partial").mkdir(parents=True, exist_ok=True)
        argv = ["apt-get", "-q", "-y", "--no-install-recommends", "--download-only"]
        argv += ["-o", f"Dir::Cache::archives={directory}", "install", *names]
        try:
            with step(what):
                run(argv, env=_environment(architecture), what=what)
        except Failure as failure:
            raise Failure(problem or failure.message, "check the network and /etc/apt") from failure


def version_key(version: str) -> tuple[object, ...]:
    """Return a key that sorts Debian versions as dpkg does (Debian Policy 5.6.12)."""
    epoch, colon, rest = version.partition(":")
    if not colon:
        epoch, rest = "0", version
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "0")
    return int(epoch), _part_key(upstream), _part_key(revision)


def parse_targets(text: str) -> list[Repository]:
    """Return Debian's repositories among the lines of `apt-get indextargets`, each once.

    A line is uri|suite|component|origin; what apt does not know stands there as the
    placeholder. Of a repository that was never updated, only the path of its uri tells.
    """
    found: dict[Repository, None] = {}
    for line in text.splitlines():
        uri, suite, component, origin = line.split("|")
        known = not origin.startswith("$(")
        segments = uri.rstrip("/").split("/")
        debian = (
            origin in ("Debian", "Debian Backports")
            if known
            else ("debian" in segments or "debian-security" in segments)
        )
        if debian and component == "main":
            found[Repository(uri, suite)] = None
    return list(found)


def parse_packages(text: str) -> list[Package]:
    """Return the packages that `apt-cache show` prints; the same one in two suites counts once."""
    found: dict[tuple[str, str], Package] = {}
    for stanza in re.split(r"\n{2,}", text.strip()):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", stanza, re.MULTILINE))
        if {"Package", "Version", "Size", "SHA256"} <= fields.keys():
            depends = re.findall(r"(?:^|, *)([^ ,:]+)", fields.get("Depends", ""))
            package = Package(
                name=fields["Package"],
                version=fields["Version"],
                size=int(fields["Size"]),
                sha256=fields["SHA256"],
                depends=tuple(depends),
            )
            found[package.name, package.version] = package
    return list(found.values())


def parse_problem(output: str) -> str:
    """Return the first thing that `apt-get update` complains about; the last is a mere summary."""
    match = re.search(r"^[EW]: (.*)$", output, re.MULTILINE)
    return match[1].strip() if match else "apt-get update failed"


def parse_codename(release: str) -> tuple[str, str] | None:
    """Return (suite, codename) of a Release file, or None if it does not say."""
    suite = re.search(r"^Suite: (\S+)$", release, re.MULTILINE)
    codename = re.search(r"^Codename: (\S+)$", release, re.MULTILINE)
    return (suite[1], codename[1]) if suite and codename else None


def _part_key(part: str) -> tuple[object, ...]:
    pairs = re.findall(r"(\D*)(\d*)", part)
    return tuple(((*map(_character_key, text), 0), int(digits or 0)) for text, digits in pairs)


def _character_key(character: str) -> int:
    if character == "~":
        return -1
    return ord(character) if character.isalpha() else ord(character) + 256


def _state() -> Path:
    return cache.root() / "apt"


def _environment(lists: str = "lists") -> dict[str, str]:
    configuration = _state() / f"{lists}.conf"
    return {**os.environ, "APT_CONFIG": str(configuration), "LC_ALL": "C.UTF-8"}


def _update() -> Mapping[str, str]:
    """Bring the lists up to date, and return the environment that has apt use them."""
    environment = _environment()
    stamp = _state() / _STAMP
    if stamp.exists() and time.time() - stamp.stat().st_mtime < _FRESH:
        return environment
    if not _KEYRING.exists():
        raise Failure(
            f"Debian's keyring {_KEYRING} is missing",
            "install it: apt-get install debian-archive-keyring",
        )
    machine = _machine_repositories()
    with step("looking for kernels on the Debian mirror"):
        _configure("aliases", _with_aliases(machine))
        # Release files alone: they tell which codename each alias stands for now.
        _apt_update("aliases", "Acquire::IndexTargets::deb::Packages::DefaultEnabled=false")
        releases = [path.read_text() for path in (_state() / "aliases").glob("*Release")]
        codenames = dict(filter(None, map(parse_codename, releases)))
        _configure("lists", _with_codenames(machine, codenames))
        problem = _apt_update("lists")
    if not any((_state() / "lists").glob("*_Packages*")):
        raise Failure(
            f"no package list came from the Debian mirror ({problem or 'it has none for amd64'})",
            "check the network and /etc/apt, or give a kernel tree with --ksrc DIR",
        )
    stamp.touch()
    return environment


def _apt_update(lists: str, *options: str) -> str | None:
    """Run apt-get update; returns what went wrong, which a suite missing on a mirror is, too."""
    argv = ["apt-get", "-q", "update", "--allow-releaseinfo-change"]
    argv += ["-o", "APT::Update::Error-Mode=any"]
    for option in options:
        argv += ["-o", option]
    log = _state() / f"{lists}.log"
    try:
        run(argv, env=_environment(lists), log=log, what="apt-get update")
    except Failure:
        return parse_problem(log.read_text())
    return None


def _machine_repositories() -> list[Repository]:
    line = "|".join(f"$({field})" for field in _TARGET_FIELDS)
    # Without the option apt leaves out what was never updated, with it the origin is unknown.
    argv = ["apt-get", "indextargets", "--format", line]
    what = "reading apt's configuration"
    found = parse_targets(run([*argv, "Created-By: Packages"], what=what))
    found = found or parse_targets(
        run([*argv, "--no-release-info", "Created-By: Packages"], what=what)
    )
    if not found:
        raise Failure(
            "apt on this machine knows no Debian mirror",
            "add one to /etc/apt/sources.list.d, or give a kernel tree with --ksrc DIR",
        )
    return found


def _archive(machine: list[Repository]) -> str | None:
    """Return the mirror of the archive proper, not of the security suites."""
    return next((r.uri for r in machine if not r.suite.endswith("-security")), None)


def _security(machine: list[Repository]) -> str | None:
    return next((r.uri for r in machine if r.suite.endswith("-security")), None)


def _with_aliases(machine: list[Repository]) -> list[Repository]:
    uri = _archive(machine)
    return [Repository(uri, alias) for alias in _ALIASES] if uri else []


def _with_codenames(machine: list[Repository], codenames: Mapping[str, str]) -> list[Repository]:
    """Return the suites to look in, each under its codename.

    Some mirrors serve an alias from an older state than the codename. `experimental` is the one
    directory whose codename is the alias.
    """
    found = dict.fromkeys(Repository(r.uri, codenames.get(r.suite, r.suite)) for r in machine)
    uri, security = _archive(machine), _security(machine)
    for alias in _ALIASES if uri else ():
        name = codenames.get(alias)
        if uri and name:
            found[Repository(uri, alias if alias == "experimental" else name)] = None
        if security and name and alias in ("oldstable", "stable"):
            found[Repository(security, f"{name}-security")] = None
    return list(found)


def _configure(lists: str, repositories: list[Repository], architecture: str = "amd64") -> None:
    """Write the apt configuration and sources that keep their lists in the directory `lists`."""
    state = _state()
    for directory in (state / lists / "partial", state / "cache/archives/partial"):
        directory.mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    (state / f"{lists}.list").write_text(
        "".join(
            f"deb [arch={architecture} signed-by={_KEYRING}] {r.uri} {r.suite} main\n"
            for r in repositories
        )
    )
    # How to reach the mirror is the machine's; its hooks and other targets are left out.
    machine = run(["apt-config", "dump", "Acquire"], what="reading apt's configuration")
    reach = [
        line
        for line in machine.splitlines()
        if not line.startswith(("Acquire::IndexTargets", "Acquire::Languages"))
    ]
    settings = {
        "Dir::Etc::main": "/dev/null",
        "Dir::Etc::parts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::Etc::sourcelist": str(state / f"{lists}.list"),
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": str(state),
        "Dir::State::lists": str(state / lists),
        "Dir::State::status": str(state / "status"),
        "Dir::Cache": str(state / "cache"),
        "Dir::Cache::srcpkgcache": "",
        "APT::Architecture": architecture,
        "APT::Architectures::": architecture,
        # The user _apt may not enter the cache directory of another.
        "APT::Sandbox::User": "root",
        "Acquire::Languages::": "none",
    }
    text = "\n".join([*reach, *(f'{key} "{value}";' for key, value in settings.items())])
    (state / f"{lists}.conf").write_text(text + "\n")


def _deb(directory: Path, package: Package) -> Path | None:
    version = package.version.replace(":", "%3a")
    return next(directory.glob(f"{package.name}_{version}_*.deb"), None)


def _verified(directory: Path, package: Package) -> Path:
    path = _deb(directory, package)
    if path is None:
        raise Failure(f"apt delivered no file for {package.name}", "run again")
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 != package.sha256:
        path.unlink()
        raise Failure(f"{path.name} is not what the mirror's lists promise", "run again")
    return path


@contextmanager
def _watched(directory: Path, wanted: list[Package], what: str) -> Iterator[None]:
    """Show how far apt-get download has come, from the sizes of the files it writes."""
    over = threading.Event()
    with bar(what, sum(package.size for package in wanted)) as advance:

        def watch() -> None:
            seen = 0
            while not over.wait(0.2):
                files = [_deb(directory, package) for package in wanted]
                try:
                    size = sum(path.stat().st_size for path in files if path)
                except FileNotFoundError:
                    continue  # renamed in between
                advance(size - seen)
                seen = size

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
