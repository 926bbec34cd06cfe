# SPDX-License-Identifier: GPL-2.0-only
"""Chooses the patches among mails: newest version, in the order of their numbers."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pagemint.base.errors import Failure

_TAGS = re.compile(r"((?:\[[^\]]*\]\s*)*)(.*)")
_NUMBER = re.compile(r"\b(\d+)\s*/\s*(\d+)\b")
_VERSION = re.compile(r"(?:\b|(?<=PATCH)|(?<=RFC))v(\d+(?:\.\d+)?)\b", re.IGNORECASE)
_AGAIN = re.compile(r"\b(RESEND|REPOST)\b", re.IGNORECASE)
_PATCH = re.compile(r"PATCH|RFC|\d+/\d+", re.IGNORECASE)
# Words of mail programs in several languages; a colon can be a wide one.
_REPLY = re.compile(
    r"(re|aw|fwd?|wg|sv|antw|odp|ответ|回复|答复|回覆|转发|轉寄|返信)(\[\d+\]|\(\d+\))?\s*[:：]",  # noqa: RUF001
    re.IGNORECASE,
)
_BEFORE_TAGS = re.compile(r"((?!subject)\S+[:：]\s*)+(\[[^\]]*\])", re.IGNORECASE)  # noqa: RUF001


@dataclass(frozen=True)
class Reading:
    """A diff, as git reads it from a mail or in a second way.

    Attributes:
        how: the second way in words; "" for git's own.
        diff: the bytes.
    """

    how: str
    diff: bytes


@dataclass(frozen=True)
class Mail:
    """A mail, as git reads it.

    Attributes:
        subject: its subject, or the name of its file if it has none.
        author: the address of its sender; "" for a diff without a mail.
        id: its Message-ID; "" if it has none.
        parents: the Message-IDs of the mails that it answers.
        readings: its diff, to be tried in this order; empty if it has none.
    """

    subject: str
    author: str = ""
    id: str = ""
    parents: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True)
class Chosen:
    """The patches to apply.

    Attributes:
        patches: mails with a diff, in order.
        left_out: the subject of each other mail, with the reason.
        remedy: what helps if one does not apply; "" if these are one whole series.
    """

    patches: list[Mail]
    left_out: list[str]
    remedy: str = ""


@dataclass(eq=False)
class _Series:
    """The mails of one version of a series, or a patch without a number."""

    rank: tuple[float, int]
    total: int
    thread: str
    mails: dict[int, Mail] = field(default_factory=dict)

    @property
    def missing(self) -> list[int]:
        return [number for number in range(1, self.total + 1) if number not in self.mails]

    @property
    def titles(self) -> dict[str, Mail]:
        return {_title(one): one for one in self.mails.values() if one.author}

    def answers(self, other: "_Series") -> bool:
        ids = {one.id for one in other.mails.values()} - {""}
        return any(ids.intersection(one.parents) for one in self.mails.values())


def choose(mails: Iterable[Mail], where: str) -> Chosen:
    """Return the patches of the newest version of each series, in the order of their numbers.

    Series keep the order in which they begin. Cover letters, replies, follow-ups of others, mails
    that came twice, and older versions are left out.

    Args:
        mails: the mails, in the order of their file.
        where: the file, for messages.

    Raises:
        Failure: two different patches have one number, or a patch has no diff.
    """
    left_out: list[str] = []

    def leave(gone: Iterable[Mail], why: str) -> None:
        left_out.extend(f"{one.subject} ({why})" for one in gone)

    kept: list[Mail] = []
    known = list(mails)
    for mail in known:
        if mail.id and mail.id in (one.id for one in kept):
            leave([mail], "the same mail again")
        elif _is_reply(mail, known):
            leave([mail], "a reply")
        elif not mail.readings and not _PATCH.search(_tags(mail)):
            leave([mail], "no patch")
        else:
            kept.append(mail)

    series = _series(kept)
    for newer in sorted(series, key=lambda one: one.rank):
        for other in [one for one in series if one is not newer]:
            if newer not in series or not _related(newer, other):
                continue
            if newer.rank > other.rank and not _follows(newer, other):
                leave(_replace(other, newer), "an older version")
                series.remove(other)
            elif newer.rank == other.rank and _repeats(newer, other):
                if series.index(other) < series.index(newer):
                    leave(newer.mails.values(), "the same patch again")
                    series.remove(newer)
            elif _follows(newer, other):
                leave(
                    newer.mails.values(), f"a follow-up to {other.mails[max(other.mails)].subject}"
                )
                series.remove(newer)
            elif newer.rank == other.rank and not _follows(other, newer) and _clash(newer, other):
                pair = " and ".join(
                    one.mails[max(one.mails)].subject for one in series if one in (other, newer)
                )
                raise Failure(
                    f"{where} has different patches of one version: {pair}",
                    "give a file with one of them",
                )
    for one in series:
        leave([mail for number, mail in one.mails.items() if number == 0], "a cover letter")
    patches = [one.mails[number] for one in series for number in sorted(one.mails) if number]
    for mail in patches:
        if not mail.readings:
            raise Failure(
                f"{mail.subject} in {where} has no diff", "save the mail again, as it came"
            )
    return Chosen(patches, left_out, _remedy(series))


def _remedy(series: Sequence[_Series]) -> str:
    for one in series:
        if one.missing and any(one.mails):
            lacking = ", ".join(f"{number}/{one.total}" for number in one.missing)
            return f"add the patches that are missing: {lacking}"
    if len(series) > 1:
        return "give one series alone, or order its patches with numbers"
    return ""


def _tags(mail: Mail) -> str:
    found = _TAGS.match(mail.subject)
    return found[1] if found else ""


def _title(mail: Mail) -> str:
    return mail.subject.removeprefix(_tags(mail)).casefold()


def _is_reply(mail: Mail, others: Sequence[Mail]) -> bool:
    """Whether a mail answers another one, by its subject.

    Its subject has a word and a colon before the tags, or before the subject of a mail that is
    there too, in whatever language; or it is that of somebody else's mail that it answers.
    """
    tags = _BEFORE_TAGS.match(mail.subject)
    if _REPLY.match(mail.subject) or (tags and _PATCH.search(tags[2])):
        return True
    for other in others:
        before = mail.subject.removesuffix(other.subject).rstrip()
        if other is mail or not mail.parents or not other.author or before == mail.subject:
            continue
        if before.endswith((":", "：")):  # noqa: RUF001
            return True
        if not before and other.id in mail.parents:
            return other.author != mail.author or not mail.readings
    return False


def _series(mails: Sequence[Mail]) -> list[_Series]:
    """Group mails by version and thread; a number that comes again begins another series."""
    up = {one.id: one.parents[0] for one in mails if one.id and one.parents}
    roots = []
    for mail in mails:
        root, seen = mail.id or (mail.parents[0] if mail.parents else ""), set[str]()
        while root in up and root not in seen:
            seen.add(root)
            root = up[root]
        roots.append(root)
    size = Counter(roots)
    found: list[_Series] = []
    for mail, root in zip(mails, roots, strict=True):
        tags = _tags(mail)
        number, version = _NUMBER.search(tags), _VERSION.search(tags)
        rank = float(version[1]) if version else 1.0, int(bool(_AGAIN.search(tags)))
        place, total = (int(number[1]), int(number[2])) if number else (1, 0)
        thread = root if size[root] > 1 else ""
        key = rank, total, thread
        same = [one for one in found if total and key == (one.rank, one.total, one.thread)]
        into = next((one for one in same if place not in one.mails), None)
        if into is None:
            into = _Series(*key)
            found.append(into)
        into.mails[place] = mail
    return found


def _related(one: _Series, other: _Series) -> bool:
    return bool(one.titles.keys() & other.titles.keys() - {""}) or bool(
        one.thread and one.thread == other.thread
    )


def _follows(one: _Series, other: _Series) -> bool:
    """Whether a series answers another one without being a new version of it."""
    if one.titles.keys() & other.titles.keys() or not one.answers(other):
        return False
    authors = [{mail.author for mail in series.mails.values()} for series in (one, other)]
    return authors[0].isdisjoint(authors[1]) or (
        one.rank <= other.rank and other.total > one.total == 0
    )


def _repeats(one: _Series, other: _Series) -> bool:
    """Whether all patches of a series are in another one, with the same changes."""
    return all(
        title in other.titles and _changes(mail) == _changes(other.titles[title])
        for title, mail in one.titles.items()
    )


def _clash(one: _Series, other: _Series) -> bool:
    """Whether two series of one version cannot be meant both."""
    return bool(one.titles.keys() & other.titles.keys()) or one.total == other.total > 0


def _changes(mail: Mail) -> list[bytes]:
    lines = mail.readings[0].diff.splitlines() if mail.readings else []
    return [line for line in lines if line[:1] in (b"+", b"-") and line != b"-- "]


def _replace(older: _Series, newer: _Series) -> list[Mail]:
    """Return the mails that a newer version replaces; the others of the older one move to it.

    That is all of them, unless the newer version is a part of the older one: a patch without a
    number, or some of as many patches.
    """
    gone = list(older.mails.values())
    if newer.total == 0 and older.total:
        (mail,) = newer.mails.values()
        for number, old in older.mails.items():
            if number and (_title(old) == _title(mail) or old.id in mail.parents):
                newer.total, newer.mails = older.total, older.mails | {number: mail}
                return [old]
    if newer.missing and newer.total == older.total:
        gone = [one for number, one in older.mails.items() if number in newer.mails]
        newer.mails = older.mails | newer.mails
    return gone
