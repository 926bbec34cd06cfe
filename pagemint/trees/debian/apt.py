# SPDX-License-Identifier: GPL-2.0-only
"""Fetches packages from the machine's Debian mirror, with apt and a state directory of its own.

All state of apt (lists, index caches, downloads) lies in the cache directory, so pagemint needs no
root and does not change the machine's own state. The mirror and the ways to reach it (proxies,
credentials) are those that the machine is configured with. apt checks the signatures with Debian's
keyring.
"""

import hashlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cmp_to_key
from pathlib import Path

from pagemint.base import cache
from pagemint.base.errors import Failure, MachineFailure
from pagemint.base.progress import step
from pagemint.base.run import run

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_ALIASES = (
    *("oldstable", "oldstable-backports", "stable", "stable-backports"),
    *("testing", "unstable", "experimental"),
)
_STAMP = "updated"
_FRESH = 3600.0  # seconds for which the lists count as up to date
_ORIGINS = {"Debian", "Debian Backports"}
_FOLDERS = {"debian", "debian-security"}
_TARGET = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)"  # as parse_targets() reads it


@dataclass(frozen=True)
class Repository:
    """One suite on one mirror, from the configuration of the machine's apt.

    Attributes:
        uri: the mirror.
        suite: its name, an alias or a codename.
    """

    uri: str
    suite: str


@dataclass(frozen=True)
class Package:
    """One version of a package on the mirror; size in bytes, sha256 in hex.

    `depends` has names without versions, and only the first of several alternatives.
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
        _update()
        environment, what = _environment(), "reading the package lists"
        names = run(["apt-cache", "pkgnames"], env=environment, what=what)
        wanted = sorted(name for name in names.split() if re.fullmatch(pattern, name))
        if not wanted:
            (_state() / _STAMP).unlink(missing_ok=True)  # the next run fetches the lists again
            return []
        text = run(["apt-cache", "show", *wanted], env=environment, what=what)
    return parse_packages(text)


@contextmanager
def downloaded(wanted: Iterable[Package], what: str) -> Iterator[list[Path]]:
    """Fetch packages, give their .deb files in order, and delete them if all went well.

    An interrupted download is resumed. Others that download wait until the files are deleted.

    Raises:
        Failure: the download fails, or a file is not the one in the mirror's lists.
    """
    wanted = list(wanted)
    directory = _state() / "archives"
    directory.mkdir(parents=True, exist_ok=True)
    argv = ["apt-get", "-q", "download", *(f"{p.name}={p.version}" for p in wanted)]
    with cache.locked(directory, "a download"):
        try:
            with _watched(directory, wanted, what):
                run(argv, cwd=directory, env=_environment(), what=what)
        except Failure as failure:
            # The lists or apt's settings may be out of date: the next run makes them again.
            (_state() / _STAMP).unlink(missing_ok=True)
            raise MachineFailure(failure.message, "check the network and run again") from failure
        debs = [_verified(directory, package) for package in wanted]
        yield debs
        for deb in debs:
            deb.unlink()


def mirror(suite: str | None) -> list[str]:
    """Return lines for apt with the machine's suites, or another suite on its mirror.

    Raises:
        Failure: apt knows no mirror of the main archive.
    """
    repositories = _machine_repositories()
    if suite:
        uri = _uri(repositories)
        if not uri:
            raise MachineFailure(
                f"apt on this machine knows no mirror that has Debian's {suite}",
                "add Debian's main archive to /etc/apt/sources.list.d",
            )
        repositories = [Repository(uri, suite)]
    return [_line(repository) for repository in repositories]


def reach() -> str:
    """Return the machine's settings of how to reach a mirror, such as its proxies."""
    # Leave out its hooks and other targets.
    machine = run(["apt-config", "dump", "Acquire"], what="reading apt's configuration")
    left_out = ("Acquire::IndexTargets", "Acquire::Languages")
    return "".join(
        line for line in machine.splitlines(keepends=True) if not line.startswith(left_out)
    )


def _compare(one: str, other: str) -> int:
    """Return -1 if dpkg sorts a Debian version before another; sorting asks for no more."""
    return -1 if subprocess.call(["dpkg", "--compare-versions", one, "lt", other]) == 0 else 1


version_key = cmp_to_key(_compare)
"""Returns a key that sorts Debian versions as dpkg does."""


def parse_targets(text: str) -> list[Repository]:
    """Return Debian's repositories among the lines of `apt-get indextargets`, each once.

    A line is uri|suite|component|origin. apt prints a placeholder for an origin that it does not
    know, as for a repository that was never updated. The path of the uri then decides.
    """
    repositories: dict[Repository, None] = {}
    for line in text.splitlines():
        uri, suite, component, origin = line.split("|")
        known = not origin.startswith("$(")
        here = {origin} if known else set(uri.rstrip("/").split("/"))
        names = _ORIGINS if known else _FOLDERS
        if here & names and component == "main":
            repositories[Repository(uri, suite)] = None
    return list(repositories)


def parse_packages(text: str) -> list[Package]:
    """Return the packages that `apt-cache show` prints; the same one in two suites counts once."""
    versions: dict[tuple[str, str], Package] = {}
    for stanza in re.split(r"\n{2,}", text.strip()):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", stanza, re.MULTILINE))
        if {"Package", "Version", "Size", "SHA256"} <= fields.keys():
            name, version = fields["Package"], fields["Version"]
            depends = re.findall(r"(?:^|, *)([^ ,:]+)", fields.get("Depends", ""))
            size, sha256 = int(fields["Size"]), fields["SHA256"]
            versions[name, version] = Package(name, version, size, sha256, tuple(depends))
    return list(versions.values())


def parse_problem(output: str) -> str:
    """Return the first complaint of `apt-get update`; its last one is only a summary."""
    match = re.search(r"^[EW]: (.*)$", output, re.MULTILINE)
    return match[1].strip() if match else "apt-get update failed"


def parse_codename(release: str) -> tuple[str, str] | None:
    """Return (suite, codename) of a Release file, or None if it lacks them."""
    fields = dict(re.findall(r"^(Suite|Codename): (\S+)$", release, re.MULTILINE))
    return (fields["Suite"], fields["Codename"]) if len(fields) == 2 else None


def _state() -> Path:
    return cache.root() / "apt"


def _environment(lists: str = "lists") -> dict[str, str]:
    configuration = _state() / f"{lists}.conf"
    return {**os.environ, "APT_CONFIG": str(configuration), "LC_ALL": "C.UTF-8"}


def _update() -> None:
    """Bring the lists up to date."""
    stamp = _state() / _STAMP
    if stamp.exists() and time.time() - stamp.stat().st_mtime < _FRESH:
        return
    if not _KEYRING.exists():
        raise MachineFailure(
            f"Debian's keyring {_KEYRING} is missing",
            "install it: apt-get install debian-archive-keyring",
        )
    machine = _machine_repositories()
    with step("looking for kernels on the Debian mirror"):
        uri = _uri(machine)
        _configure("aliases", [Repository(uri, alias) for alias in _ALIASES] if uri else [])
        # Only the Release files: they name the codename of each alias.
        _apt_update("aliases", "-o", "Acquire::IndexTargets::deb::Packages::DefaultEnabled=false")
        releases = [path.read_text() for path in (_state() / "aliases").glob("*Release")]
        codenames = dict(filter(None, map(parse_codename, releases)))
        _configure("lists", _with_codenames(machine, codenames))
        problem = _apt_update("lists")
    if not any((_state() / "lists").glob("*_Packages*")):
        raise MachineFailure(
            f"no package list came from the Debian mirror ({problem or 'it has none for amd64'})",
            "check the network and /etc/apt, or give a kernel tree with --ksrc DIR",
        )
    stamp.touch()


def _apt_update(lists: str, *options: str) -> str | None:
    """Run apt-get update and return its first complaint, such as a suite missing on a mirror."""
    argv = ["apt-get", "-q", "update", "--allow-releaseinfo-change"]
    argv += ["-o", "APT::Update::Error-Mode=any", *options]
    log = _state() / f"{lists}.log"
    try:
        run(argv, env=_environment(lists), log=log, what="apt-get update")
    except Failure:
        return parse_problem(log.read_text())
    return None


def _machine_repositories() -> list[Repository]:
    # Without the option apt leaves out repositories that were never updated.
    argv = ["apt-get", "indextargets", "--format", _TARGET]
    what = "reading apt's configuration"
    repositories = parse_targets(run([*argv, "Created-By: Packages"], what=what))
    repositories = repositories or parse_targets(
        run([*argv, "--no-release-info", "Created-By: Packages"], what=what)
    )
    if not repositories:
        raise MachineFailure(
            "apt on this machine knows no Debian mirror",
            "add one to /etc/apt/sources.list.d, or give a kernel tree with --ksrc DIR",
        )
    return repositories


def _uri(machine: list[Repository], *, security: bool = False) -> str | None:
    """Return the mirror of the main archive, or of the security suites."""
    return next((r.uri for r in machine if r.suite.endswith("-security") == security), None)


def _with_codenames(machine: list[Repository], codenames: Mapping[str, str]) -> list[Repository]:
    """Return the suites to search, each under its codename.

    On some mirrors the alias of a suite is older than its codename. Only `experimental` has its
    directory under the alias.
    """
    suites = dict.fromkeys(Repository(r.uri, codenames.get(r.suite, r.suite)) for r in machine)
    uri, security = _uri(machine), _uri(machine, security=True)
    for alias in _ALIASES if uri else ():
        name = codenames.get(alias)
        if uri and name:
            suites[Repository(uri, alias if alias == "experimental" else name)] = None
        if security and name and alias in ("oldstable", "stable"):
            suites[Repository(security, f"{name}-security")] = None
    return list(suites)


def _line(repository: Repository) -> str:
    return f"deb [signed-by={_KEYRING}] {repository.uri} {repository.suite} main"


def _configure(lists: str, repositories: list[Repository]) -> None:
    """Write the apt configuration and sources that keep their lists in the directory `lists`."""
    state = _state()
    for directory in (state / lists / "partial", state / "cache/archives/partial"):
        directory.mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    (state / f"{lists}.list").write_text("".join(f"{line}\n" for line in map(_line, repositories)))
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
        "APT::Architecture": "amd64",
        "APT::Architectures::": "amd64",
        # The user _apt may not have access to another user's cache directory.
        "APT::Sandbox::User": "root",
        "Acquire::Languages::": "none",
    }
    text = "".join(f'{key} "{value}";\n' for key, value in settings.items())
    (state / f"{lists}.conf").write_text(reach() + text)


def _deb(directory: Path, package: Package) -> Path | None:
    version = package.version.replace(":", "%3a")
    return next(directory.glob(f"{package.name}_{version}_*.deb"), None)


def _verified(directory: Path, package: Package) -> Path:
    path = _deb(directory, package)
    if path is None:
        raise MachineFailure(f"apt delivered no file for {package.name}", "run again")
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 != package.sha256:
        path.unlink()
        raise MachineFailure(
            f"{path.name} does not have the SHA256 in the package lists", "run again"
        )
    return path


@contextmanager
def _watched(directory: Path, wanted: list[Package], what: str) -> Iterator[None]:
    """Show how far apt-get download has come, from the sizes of the files it writes."""
    over = threading.Event()
    with step(what, sum(package.size for package in wanted)) as advance:

        def watch() -> None:
            seen = 0
            while not over.wait(0.2):
                files = [_deb(directory, package) for package in wanted]
                try:
                    size = sum(path.stat().st_size for path in files if path)
                except FileNotFoundError:
                    continue  # renamed meanwhile
                advance(size - seen)
                seen = size

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
