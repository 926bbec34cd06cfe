# SPDX-License-Identifier: GPL-2.0-only
"""Patches as mails: a mailbox, or a directory with a file for each patch."""

import mailbox
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from email import policy
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Any

from pagemint.base import git
from pagemint.base.errors import Failure

_SUFFIXES = (".patch", ".diff", ".eml")
_DIFF = re.compile(r"^(diff --git |--- .*\n\+\+\+ )", re.MULTILINE)


@dataclass(frozen=True)
class Patch:
    """One patch.

    Attributes:
        subject: the subject of its mail, or the name of its file.
        text: the whole text of its mail or file.
    """

    subject: str
    text: str


def is_directory(where: Path) -> bool:
    """Whether a directory has patches in it."""
    return where.is_dir() and bool(_files(where))


def read(where: Path) -> list[Patch]:
    """Return the patches of a mailbox or a directory in order.

    Replies, and mails without a diff, are left out.

    Raises:
        Failure: it cannot be read, or has no patch.
    """
    try:
        if where.is_dir():
            found = [_patch(one.read_bytes(), one.name) for one in _files(where)]
        else:
            box = mailbox.mbox(where, create=False)
            found = [_patch(box.get_bytes(key), where.name) for key in box.iterkeys()]
            # A patch alone, without the line that begins a mail in a mailbox.
            found = found or [_patch(where.read_bytes(), where.name)]
    except (OSError, mailbox.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Failure(f"cannot read {where}: {why}", "give a mailbox or a directory") from error
    replies = re.compile("re: ", re.IGNORECASE)
    found = [one for one in found if not replies.match(one.subject)]
    patches = [one for one in found if _DIFF.search(one.text)]
    if not patches:
        raise Failure(
            f"{where} has no patch", "give a mailbox, as git format-patch --stdout writes"
        )
    return patches


def apply(patches: Sequence[Patch], tree: Path, where: Path, version: str) -> None:
    """Apply patches to a tree, as git.apply() does.

    Args:
        patches: the patches.
        tree: a directory of pagemint's own.
        where: the mailbox or directory, for messages.
        version: the version of the tree, for messages.

    Raises:
        Failure: a patch does not apply exactly; those before it stay applied.
    """
    for number, patch in enumerate(patches, 1):
        with tempfile.NamedTemporaryFile("w", suffix=".patch", encoding="utf-8") as file:
            file.write(patch.text)
            file.flush()
            try:
                git.apply(Path(file.name), tree, f"patch {number} of {where}")
            except Failure as failure:
                at = re.search(r"error: (.*)", failure.message)
                raise Failure(
                    f"patch {number} of {where} ({patch.subject}) does not apply to Linux "
                    f"{version}: {at[1] if at else failure.message}",
                    "give the kernel that it was made for: --kernel LINE or --ksrc DIR",
                ) from failure


def _decoded(payload: bytes, charset: str) -> str:
    try:
        return payload.decode(charset, errors="replace")
    except LookupError:
        # A charset that does not exist: some answer y to a question of git send-email's.
        return payload.decode(errors="replace")


def _files(where: Path) -> list[Path]:
    return sorted(one for one in where.iterdir() if one.suffix in _SUFFIXES)


def _patch(data: bytes, name: str) -> Patch:
    mail = BytesParser(policy=policy.default).parsebytes(data)
    if not mail["subject"]:
        return Patch(name, data.decode(errors="replace").replace("\r\n", "\n"))
    parts: list[Message[Any, Any]] = [part for part in mail.walk() if not part.is_multipart()]
    text = ""
    for part in parts:
        payload = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            text += _decoded(payload, part.get_content_charset("utf-8"))
    # A mailbox has > before a line that begins with From.
    text = re.sub(r"^>From ", "From ", text.replace("\r\n", "\n"), flags=re.MULTILINE)
    return Patch(" ".join(str(mail["subject"]).split()), text)
