# SPDX-License-Identifier: GPL-2.0-only
"""The cache directory: what was fetched or built once and is complete, or is not there at all."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pagemint.base.errors import Failure
from pagemint.base.progress import note

_STAMP = ".complete"


def root() -> Path:
    """Return the cache directory: $XDG_CACHE_HOME/pagemint, else ~/.cache/pagemint."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "pagemint"


def find(kind: str, key: str) -> Path | None:
    """Return the complete entry, or None; takes no lock."""
    path = root() / kind / key
    return path if (path / _STAMP).exists() else None


def entry(kind: str, key: str, make: Callable[[Path], None], *, in_place: bool = False) -> Path:
    """Return the directory <root>/<kind>/<key>, made by `make` unless it is complete already.

    `make` fills an empty staging directory, which is then renamed into place. What takes its own
    absolute path into account (a kernel's build directory) says `in_place`, and is built where it
    stays. A stamp file written last tells that an entry is complete; it is then taken as it is,
    even from a cache that cannot be written. Other processes that want the same entry wait.
    After a failure in place the directory stays, for its logs, until the next try.

    Raises:
        Failure: the cache directory cannot be written; and whatever `make` raises.
    """
    complete = find(kind, key)
    if complete:
        return complete
    final = root() / kind / key
    with locked(final, f"{kind} {key}"):
        found = find(kind, key)
        if found:
            return found
        work = final if in_place else final.with_name(f"{key}.staging")
        _remove(final)  # of what is incomplete
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
    return final


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file beside `path`; says so once, on stderr, if another process has it.

    What run.run() starts meanwhile holds it too: if this process is killed, until that has ended.
    """
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


def need_space(path: Path, size: int, what: str) -> None:
    """Check that the file system of `path`, which need not exist yet, has `size` bytes free.

    Raises:
        Failure: it has not.
    """
    path = path.absolute()
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free
    if free < size:
        raise Failure(
            f"{what} needs {size / 1e9:.1f} GB on the disk of {path}, which has "
            f"{free / 1e9:.1f} GB free",
            "free some, or set XDG_CACHE_HOME to a directory on another disk",
        )


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
        name = os.fsencode(inner.relative_to(path))
        if inner.is_symlink():
            total.update(b"L" + hashlib.sha256(name).digest())
            total.update(hashlib.sha256(os.fsencode(inner.readlink())).digest())
        elif inner.is_file():
            total.update(b"F" + hashlib.sha256(name).digest() + _hash_path(inner))
    return total.digest()
