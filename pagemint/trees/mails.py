# SPDX-License-Identifier: GPL-2.0-only
"""Patches as mails: a mailbox, a Maildir, or a directory with files of patches.

Git reads the mails. In a second way, its diff is tried without the carriage returns of its text,
with those of its lines, or recoded to UTF-8, as git am refuses some mails that people send.
"""

import email
import gzip
import json
import re
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from email import policy
from pathlib import Path

from pagemint.base import git
from pagemint.base.errors import Failure, MachineFailure
from pagemint.base.run import run
from pagemint.trees import mail_order
from pagemint.trees.mail_order import Chosen, Mail, Reading

_FILES = re.compile(r"\.(patch|diff|eml|mbox|mbx)(\.gz)?$")
_DIFF = re.compile(rb"^(diff --git |--- .*\n\+\+\+ )", re.MULTILINE)
_IDS = re.compile(r"<([^<>\s]+)>")
_GZIP = b"\x1f\x8b"
_RECORD = "patches.json"  # beside a tree: how each patch was applied
_THERE = "already there"  # in it: the tree had the patch


def is_directory(where: Path) -> bool:
    """Whether a directory is a Maildir, or has patches in it."""
    return where.is_dir() and bool(_boxes(where))


def read(where: Path) -> Chosen:
    """Return the patches of a mailbox, a Maildir or a directory, and the mails that are left out.

    Raises:
        Failure: it cannot be read, has no patch, or it is not clear which patches are meant.
    """
    mails: list[Mail] = []
    try:
        for box in _boxes(where) if where.is_dir() else [where]:
            with tempfile.TemporaryDirectory(prefix="pagemint-") as scratch:
                mails += _mails(box, Path(scratch))
    except (OSError, EOFError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise Failure(f"cannot read {where}: {why}", "give a mailbox or a directory") from error
    chosen = mail_order.choose(mails, str(where))
    if not chosen.patches:
        left_out = f": {chosen.left_out[0]}" if chosen.left_out else ""
        raise Failure(
            f"{where} has no patch{left_out}", "give a mailbox, as git format-patch --stdout writes"
        )
    return chosen


def apply(chosen: Chosen, tree: Path, where: Path, version: str) -> None:
    """Apply patches to a tree, as git.apply() does, and record how beside it.

    Args:
        chosen: the patches. One that the tree has already is passed over.
        tree: a directory of pagemint's own.
        where: the mailbox or directory, for messages.
        version: the version of the tree, for messages.

    Raises:
        Failure: a patch does not apply exactly, or the tree has them all already.
    """
    ways = []
    for number, patch in enumerate(chosen.patches, 1):
        with tempfile.TemporaryDirectory(prefix="pagemint-") as scratch:
            file = Path(scratch) / "diff"
            try:
                ways.append(_apply(patch.readings, file, tree))
            except MachineFailure:
                raise
            except Failure as failure:
                at = re.search(r"error: (.*)", failure.message)
                raise Failure(
                    f"patch {number} of {where} ({patch.subject}) does not apply to Linux "
                    f"{version}: {at[1] if at else failure.message}",
                    chosen.remedy
                    or "give the kernel that it was made for: --kernel LINE or --ksrc DIR",
                ) from failure
    if set(ways) == {_THERE}:
        raise Failure(f"Linux {version} has the patches of {where} already", "give an older kernel")
    (tree.parent / _RECORD).write_text(json.dumps(ways))


def applied(chosen: Chosen, tree: Path) -> tuple[list[str], list[str]]:
    """Return the subjects of the patches that apply() applied to a tree, and of all other mails."""
    subjects, left_out = [], list(chosen.left_out)
    ways = json.loads((tree.parent / _RECORD).read_text())
    for patch, way in zip(chosen.patches, ways, strict=True):
        if way == _THERE:
            left_out.append(f"{patch.subject} (the tree has it already)")
        else:
            subjects.append(f"{patch.subject} ({way})" if way else patch.subject)
    return subjects, left_out


def _boxes(where: Path) -> list[Path]:
    if (where / "cur").is_dir() and (where / "new").is_dir():
        return [where]
    return sorted(box for box in where.iterdir() if box.is_file() and _FILES.search(box.name))


def _mails(box: Path, scratch: Path) -> Iterator[Mail]:
    """Split a mailbox or Maildir into mails, and read each."""
    name = box.name
    if box.is_file():
        data = box.read_bytes()
        if data.startswith(_GZIP):
            data, box = gzip.decompress(data), scratch / "box"
            box.write_bytes(data)
        files = _split(box, scratch / "mails") if data.strip() else []
        kept = _split(box, scratch / "kept", "--keep-cr") if b"\r\n" in data else []
    else:
        files, kept = _split(box, scratch / "mails"), []
    for number, file in enumerate(files, 1):
        alone = name if len(files) == 1 else f"{name}, mail {number}"
        mail = _mail(file, alone, kept[number - 1] if len(kept) == len(files) else None)
        # A mailbox can have more after its last mail, such as empty lines.
        if mail.author or mail.readings:
            yield mail


def _split(box: Path, into: Path, *options: str) -> list[Path]:
    into.mkdir()
    # With names of one length, 10,000 mails stay in order, too.
    _git(into, "mailsplit", "-b", "-d8", *options, f"-o{into}", "--", str(box.absolute()))
    return sorted(into.iterdir())


def _mail(file: Path, name: str, kept: Path | None) -> Mail:
    """Read a mail.

    Args:
        file: the mail, without carriage returns at the ends of its lines.
        name: its name if it has no subject.
        kept: the mail with them; None if it has none.
    """
    diff, fields, how = _diff(file)
    subject = " ".join(fields.get("Subject", "").split())
    subject = "".join(char if char.isprintable() else "?" for char in subject)
    # Threads and the charset of a part are in headers that git does not report.
    message = email.message_from_bytes(file.read_bytes(), policy=policy.compat32)
    heads = [str(message.get(field, "")) for field in ("Message-ID", "References", "In-Reply-To")]
    own, references, in_reply_to = map(_IDS.findall, heads)
    readings = {diff: how}
    plain = diff.replace(b"\r\n", b"\n")
    readings.setdefault(plain, "without the carriage returns of its text")
    if kept:
        readings.setdefault(_diff(kept)[0], "with the carriage returns of its lines")
    # In the order of the parts: the first reading that applies is taken.
    for charset in dict.fromkeys(str(part.get_content_charset()) for part in message.walk()):
        try:
            recoded = plain.decode(charset).encode()
        except (LookupError, ValueError):
            continue  # no charset is given, it does not exist, or it is not that of the diff
        readings.setdefault(recoded, f"recoded from {charset}")
    return Mail(
        subject or name,
        fields.get("Email", ""),
        "".join(own[:1]),
        tuple(dict.fromkeys([*in_reply_to, *reversed(references)])),
        tuple(Reading(way, text) for text, way in readings.items()) if _DIFF.search(diff) else (),
    )


def _diff(mail: Path) -> tuple[bytes, dict[str, str], str]:
    """Return the diff of a mail, its header fields, and how it was read if not as git am does."""
    message, diff = mail.with_suffix(".message"), mail.with_suffix(".diff")
    argv = ["--no-inbody-headers", "-k", str(message), str(diff)]
    how = ""
    try:
        info = _git(mail.parent, "mailinfo", *argv, stdin=mail)
    except MachineFailure:
        raise
    except Failure:
        # No such charset: some people answer "y" when git send-email asks for one.
        info = _git(mail.parent, "mailinfo", "-n", *argv, stdin=mail)
        how = "git does not know its charset"
    fields = dict(line.split(": ", 1) for line in info.splitlines() if ": " in line)
    return diff.read_bytes(), fields, how


def _apply(readings: Sequence[Reading], file: Path, tree: Path) -> str:
    """Apply the first reading of a diff that applies, and return how it was read.

    Raises:
        Failure: none applies; the message is git's about its own reading.
    """
    failures = []
    for options, how in ((), None), (("--reverse", "--check"), _THERE):
        for reading in readings:
            file.write_bytes(reading.diff)
            try:
                git.apply(file, tree, "the patch", *options)
                return how or reading.how
            except MachineFailure:
                raise
            except Failure as failure:
                failures.append(failure)
    raise failures[0]


def _git(directory: Path, *argv: str, stdin: Path | None = None) -> str:
    """Run git outside of any repository."""
    env = git.environment() | {"GIT_CEILING_DIRECTORIES": str(directory.parent)}
    return run(["git", *argv], cwd=directory, env=env, stdin=stdin, what=f"git {argv[0]}")
