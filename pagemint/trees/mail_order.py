# SPDX-License-Identifier: GPL-2.0-only
"""Chooses the patches to apply among mails: the newest version of each series, in order."""

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
# A word here has no colon: if it could, a match would take exponential time.
_BEFORE_TAGS = re.compile(r"((?!subject)[^\s:：]*[:：]\s*)+(\[[^\]]*\])", re.IGNORECASE)  # noqa: RUF001


@dataclass(frozen=True)
class Reading:
    """The diff of a mail, and how it was read, in words: "" if as git reads it."""

    how: str
    diff: bytes


@dataclass(frozen=True)
class Mail:
    """A mail, as git reads it.

    Attributes:
        subject: its subject, or the name of its file if it has none.
        author: the address of its sender; "" for a diff without a mail.
        id: its Message-ID; "" if it has none.
        parents: the Message-IDs of the mails that it answers, the nearest first.
        readings: its diff, read in several ways, the best first; empty if it has none.
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
        remedy: advice if a patch does not apply; "" if the patches are one complete series.
    """

    patches: list[Mail]
    left_out: list[str]
    remedy: str = ""


@dataclass(eq=False)
class _Series:
    """The mails of one version of a series, or a patch without a number.

    Attributes:
        rank: the version, and 1 if it was sent again, else 0.
        total: the count of patches in the tags; 0 for a patch without a number.
        thread: the Message-ID of the first mail in its thread; "" if the thread is one mail.
        mails: by number: 0 is the cover letter, and 1 a patch without a number.
    """

    rank: tuple[float, int]
    total: int
    thread: str
    mails: dict[int, Mail] = field(default_factory=dict)

    @property
    def missing(self) -> list[int]:
        return [number for number in range(1, self.total + 1) if number not in self.mails]

    @property
    def last_subject(self) -> str:
        return self.mails[max(self.mails)].subject

    @property
    def titles(self) -> dict[str, Mail]:
        # Without an author the subject is the name of a file.
        return {_title(mail): mail for mail in self.mails.values() if mail.author}

    def answers(self, other: "_Series") -> bool:
        ids = {mail.id for mail in other.mails.values()} - {""}
        return any(ids.intersection(mail.parents) for mail in self.mails.values())


def choose(mails: Sequence[Mail], where: str) -> Chosen:
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
    chosen = _group(_patch_mails(mails, left_out))
    _keep_newest(chosen, left_out, where)
    covers = [series.mails[0] for series in chosen if 0 in series.mails]
    _leave(left_out, covers, "a cover letter")
    patches = [series.mails[n] for series in chosen for n in sorted(series.mails) if n > 0]
    for patch in patches:
        if not patch.readings:
            raise Failure(
                f"{patch.subject} in {where} has no diff", "save the mail again, as it came"
            )
    return Chosen(patches, left_out, _remedy(chosen))


def _leave(left_out: list[str], mails: Iterable[Mail], why: str) -> None:
    left_out.extend(f"{mail.subject} ({why})" for mail in mails)


def _patch_mails(mails: Sequence[Mail], left_out: list[str]) -> list[Mail]:
    """Return the mails that belong to a series, each once."""
    kept: list[Mail] = []
    for mail in mails:
        if mail.id and mail.id in (other.id for other in kept):
            _leave(left_out, [mail], "the same mail again")
        elif _is_reply(mail, mails):
            _leave(left_out, [mail], "a reply")
        elif not mail.readings and not _PATCH.search(_tags(mail)):
            _leave(left_out, [mail], "no patch")
        else:
            kept.append(mail)
    return kept


def _keep_newest(series: list[_Series], left_out: list[str], where: str) -> None:
    """Remove older versions, repetitions and follow-ups from `series`."""
    for current in sorted(series, key=lambda version: version.rank):
        for other in list(series) if current in series else ():
            if other is current or not _related(current, other):
                continue
            same_rank = current.rank == other.rank
            if current.rank > other.rank and not _follows(current, other):
                _leave(left_out, _complete(current, other), "an older version")
                series.remove(other)
            elif same_rank and _repeats(current, other):
                if series.index(other) < series.index(current):
                    _leave(left_out, current.mails.values(), "the same patch again")
                    series.remove(current)
                    break
            elif _follows(current, other):
                _leave(left_out, current.mails.values(), f"a follow-up to {other.last_subject}")
                series.remove(current)
                break
            elif same_rank and not _follows(other, current) and _clash(current, other):
                first, second = sorted((current, other), key=series.index)
                raise Failure(
                    f"{where} has different patches of one version: "
                    f"{first.last_subject} and {second.last_subject}",
                    "give a file with one of them",
                )


def _remedy(chosen: Sequence[_Series]) -> str:
    for series in chosen:
        if series.missing and max(series.mails) > 0:  # more than a cover letter
            missing = ", ".join(f"{number}/{series.total}" for number in series.missing)
            return f"add the patches that are missing: {missing}"
    return "give one series alone, or order its patches with numbers" if len(chosen) > 1 else ""


def _tags(mail: Mail) -> str:
    tags = _TAGS.match(mail.subject)
    return tags[1] if tags else ""


def _title(mail: Mail) -> str:
    return mail.subject.removeprefix(_tags(mail)).casefold()


def _is_reply(mail: Mail, mails: Sequence[Mail]) -> bool:
    """Whether a mail is a reply: it has the subject of another mail, or tags, behind "Re:".

    Instead of "Re:" there can be a word of any language. Some programs add none: a mail with the
    subject of a mail that it answers is a reply if it has another author, or no diff.
    """
    tags = _BEFORE_TAGS.match(mail.subject)
    if _REPLY.match(mail.subject) or (tags and _PATCH.search(tags[2])):
        return True
    for other in mails:
        prefix = mail.subject.removesuffix(other.subject).rstrip()
        if other is mail or not mail.parents or not other.author or prefix == mail.subject:
            continue
        if prefix.endswith((":", "：")):  # noqa: RUF001
            return True
        if not prefix and other.id in mail.parents:
            return other.author != mail.author or not mail.readings
    return False


def _group(mails: Sequence[Mail]) -> list[_Series]:
    """Group mails by version and thread; a number that comes again begins another series."""
    roots = _roots(mails)
    thread_sizes = Counter(roots)
    groups: list[_Series] = []
    for mail, root in zip(mails, roots, strict=True):
        tags = _tags(mail)
        numbers, version = _NUMBER.search(tags), _VERSION.search(tags)
        rank = float(version[1]) if version else 1.0, int(bool(_AGAIN.search(tags)))
        number, total = (int(numbers[1]), int(numbers[2])) if numbers else (1, 0)
        key = rank, total, root if thread_sizes[root] > 1 else ""
        for series in groups:
            same = total and key == (series.rank, series.total, series.thread)
            if same and number not in series.mails:
                series.mails[number] = mail
                break
        else:
            groups.append(_Series(*key, {number: mail}))
    return groups


def _roots(mails: Sequence[Mail]) -> list[str]:
    """Return for each mail the Message-ID of the first mail in its thread."""
    parent = {mail.id: mail.parents[0] for mail in mails if mail.id and mail.parents}
    roots = []
    for mail in mails:
        root, seen = mail.id or (mail.parents[0] if mail.parents else ""), set[str]()
        while root in parent and root not in seen:
            seen.add(root)
            root = parent[root]
        roots.append(root)
    return roots


def _related(series: _Series, other: _Series) -> bool:
    same_thread = bool(series.thread) and series.thread == other.thread
    return same_thread or bool(series.titles.keys() & other.titles.keys() - {""})


def _follows(series: _Series, other: _Series) -> bool:
    """Whether a series answers another one without being a new version of it."""
    if series.titles.keys() & other.titles.keys() or not series.answers(other):
        return False
    authors, others = ({mail.author for mail in group.mails.values()} for group in (series, other))
    single_patch = series.rank <= other.rank and other.total > series.total == 0
    return authors.isdisjoint(others) or single_patch


def _repeats(series: _Series, other: _Series) -> bool:
    """Whether all patches of a series are in another one, with the same changes."""
    return all(
        title in other.titles and _changes(mail) == _changes(other.titles[title])
        for title, mail in series.titles.items()
    )


def _clash(series: _Series, other: _Series) -> bool:
    """Whether at most one of two series of the same version can be meant."""
    return bool(series.titles.keys() & other.titles.keys()) or series.total == other.total > 0


def _changes(mail: Mail) -> list[bytes]:
    lines = mail.readings[0].diff.splitlines() if mail.readings else []
    return [line for line in lines if line[:1] in (b"+", b"-") and line != b"-- "]


def _complete(newer: _Series, older: _Series) -> list[Mail]:
    """Move mails to a newer version that is a part of an older one; return those that it replaces.

    It is a part if it is one patch without a number, or has the same total but misses patches.
    """
    if newer.total == 0 and older.total:
        (mail,) = newer.mails.values()
        for number, old in older.mails.items():
            if number and (_title(old) == _title(mail) or old.id in mail.parents):
                newer.total, newer.mails = older.total, older.mails | {number: mail}
                return [old]
    replaced = list(older.mails.values())
    if newer.missing and newer.total == older.total:
        replaced = [mail for number, mail in older.mails.items() if number in newer.mails]
        newer.mails = older.mails | newer.mails
    return replaced
