# SPDX-License-Identifier: GPL-2.0-only
"""The cache directory: entries that were fetched or built once, each complete or not there at all.

Locks: a process that makes or removes an entry holds `<entry>.lock`. Processes that use it share a
lock on its stamp file until they end. The stamp's modification time is the time of the last use.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pagemint.base import disk
from pagemint.base.errors import Failure
from pagemint.base.progress import note

_STAMP = ".complete"
_in_use: dict[Path, IO[bytes]] = {}


@dataclass(frozen=True)
class Entry:
    """A directory in the cache, complete or left over from a failure.

    Attributes:
        kind: the directory above it.
        path: the directory.
        used: when it was used last, in seconds since 1970.
        size: bytes on the disk, without hard links to files of entries that were used later.
    """

    kind: str
    path: Path
    used: float
    size: int


def root() -> Path:
    """Return the cache directory: $XDG_CACHE_HOME/pagemint, else ~/.cache/pagemint."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore relative paths.
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "pagemint"


def check() -> None:
    """Check that the cache can be written, that kernels build in it, and that their programs run.

    Raises:
        Failure: it cannot, or they do not. The message names the directory.
    """
    path = root()
    elsewhere = "set XDG_CACHE_HOME to another directory"
    # kbuild refuses blanks and colons; make and the shell read the others as their own.
    awkward = re.search(r"""[\s:#$%;&|<>*?()\[\]{}!`'"\\]""", str(path))
    if awkward:
        raise Failure(
            f"the cache {path} has {awkward[0]!r} in its name, and kernels do not build there",
            f"{elsewhere}, whose name has letters and digits: XDG_CACHE_HOME=/var/tmp/pagemint",
        )
    there = disk.existing(path)
    if os.statvfs(there).f_flag & os.ST_NOEXEC:
        raise Failure(
            f"the cache {path} is on a file system that is mounted noexec, so no program runs "
            "from it",
            f"{elsewhere} on a file system whose programs may run",
        )
    disk.check_directory(there, f"the cache {path}", f"{elsewhere} of yours")


def find(kind: str, key: str) -> Path | None:
    """Return the complete entry, or None; it does not count as used, and can be removed."""
    path = root() / kind / key
    return path if (path / _STAMP).exists() else None


def use(kind: str, key: str) -> Path | None:
    """Return the complete entry, or None; it is not removed while this process runs."""
    path = root() / kind / key
    stamp = path / _STAMP
    if path in _in_use and stamp.exists():
        return path
    with suppress(PermissionError):
        try:
            file = stamp.open("rb")
        except (FileNotFoundError, NotADirectoryError):
            return None
        # The programs that run.run() starts use it too.
        os.set_inheritable(file.fileno(), True)
        fcntl.flock(file, fcntl.LOCK_SH)
        # It may have been removed, and made again, while this process waited.
        if not stamp.exists() or not os.path.samestat(os.fstat(file.fileno()), stamp.stat()):
            file.close()
            return None
        _in_use[path] = file
    # A read-only cache can be used all the same; nobody can prune it.
    with suppress(OSError):
        os.utime(stamp)
    return path


def entry(kind: str, key: str, make: Callable[[Path], None], *, in_place: bool = False) -> Path:
    """Return the directory <root>/<kind>/<key>, made by `make` unless it is complete already.

    `make` fills an empty staging directory, which is then renamed into place. A kernel's build
    directory contains its own absolute path, so it must not move: `in_place` builds it at its
    final place. A stamp file, written last, marks an entry as complete. A complete entry is used
    as it is, even from a read-only cache. Other processes that want the same entry wait. After a
    failure in place the directory stays, for its logs, until the next try.

    Raises:
        Failure: the cache directory cannot be written; and whatever `make` raises.
    """
    if complete := use(kind, key):
        return complete
    final = root() / kind / key
    with locked(final, f"{kind} {key}"):
        if complete := use(kind, key):
            return complete
        work = final if in_place else final.with_name(f"{key}.staging")
        _remove(final)  # an incomplete entry
        _remove(work)
        work.mkdir()
        try:
            make(work)
            (work / _STAMP).touch()
            if not in_place:
                work.rename(final)
        except BaseException as error:
            if not (in_place and isinstance(error, Exception)):
                _remove(work)
            raise
        use(kind, key)
    return final


def entries() -> list[Entry]:
    """Return all entries, the least recently used first; looks at each file."""
    used = {}
    for path in root().glob("*/*"):
        # apt keeps its lists in a directory beside the entries.
        if path.is_dir() and path.parent.name != "apt":
            stamp = path / _STAMP
            # Another process may be renaming or removing it.
            with suppress(FileNotFoundError):
                used[path] = (stamp if stamp.exists() else path).stat().st_mtime
    newest = sorted(used, key=lambda path: (used[path], path), reverse=True)
    if not newest:
        return []
    # du counts a file once, for the first directory that has it. It complains, and goes on, about
    # files that another process removes meanwhile.
    argv = ["du", "--summarize", "--block-size=1", "--files0-from=-"]
    done = subprocess.run(argv, input="\0".join(map(str, newest)), capture_output=True, text=True)
    lines = (line.split("\t", 1) for line in done.stdout.splitlines())
    sizes = {Path(path): int(size) for size, path in lines}
    return [Entry(path.parent.name, path, used[path], sizes.get(path, 0)) for path in newest[::-1]]


def remove(gone: Entry) -> bool:
    """Remove an entry, unless a process uses or makes it; return whether it is gone.

    Raises:
        Failure: the cache directory cannot be written.
    """
    stamp = gone.path / _STAMP
    lock = gone.path.with_name(f"{gone.path.name.removesuffix('.staging')}.lock")
    try:
        with ExitStack() as held:
            _lock_now(held.enter_context(lock.open("ab")))
            if stamp.exists():
                _lock_now(held.enter_context(stamp.open("rb")))
                # First: an entry that is removed halfway must not look complete.
                stamp.unlink()
            _remove(gone.path)
    except BlockingIOError:
        return False
    except OSError as error:
        raise Failure(
            f"cannot remove {gone.path}: {error.strerror}", "run this as the owner of the cache"
        ) from error
    return True


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file beside `path`; if another process has it, note that once and wait.

    Programs that run.run() starts meanwhile inherit the lock. If this process is killed, they keep
    it until they end.
    """
    check()
    lock = path.with_name(f"{path.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    except OSError as error:
        raise Failure(
            f"cannot write the cache {root()}: {error.strerror}",
            "set XDG_CACHE_HOME to a directory of yours",
        ) from error
    with file:
        os.set_inheritable(file.fileno(), True)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"waiting for another pagemint that is making {what}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def digest(*parts: str | bytes | Path) -> str:
    """Return 16 hex digits of SHA-256 over `parts`.

    A path stands for the file's contents, or for a directory's files with their relative names.

    Raises:
        OSError: a path cannot be read.
    """
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            total.update(b"P" + _hash_path(part))
        else:
            data = part.encode() if isinstance(part, str) else part
            total.update(b"B" + hashlib.sha256(data).digest())
    return total.hexdigest()[:16]


def named(paths: Iterable[Path]) -> Iterator[str | Path]:
    """Yield the names of files with their contents, for `digest`: a compiler is told both."""
    for path in paths:
        yield path.name
        yield path


def _lock_now(file: IO[bytes]) -> None:
    """Lock a file for this process alone, or raise BlockingIOError."""
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _hash_path(path: Path) -> bytes:
    total = hashlib.sha256()
    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    for inner in sorted(path.rglob("*")):
        if "__pycache__" in inner.parts:
            continue  # Python writes it while it reads the rest
        name = os.fsencode(inner.relative_to(path))
        if inner.is_symlink():
            total.update(b"L" + hashlib.sha256(name).digest())
            total.update(hashlib.sha256(os.fsencode(inner.readlink())).digest())
        elif inner.is_file():
            total.update(b"F" + hashlib.sha256(name).digest() + _hash_path(inner))
    return total.digest()
