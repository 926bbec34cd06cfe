# SPDX-License-Identifier: GPL-2.0-only
"""Patches as people send them: what a mail is, which mails are meant, and the tree they make."""

import base64
import gzip
import quopri
from pathlib import Path

import pytest
from stand_ins import Patch

from pagemint.base.errors import Failure
from pagemint.trees import mail_order, mails
from pagemint.trees.mail_order import Mail

_BEFORE = "".join(f"int f{n};\n" for n in range(30)).encode() + "/* René */\nint end;\n".encode()
_LATIN = b"/* Ren\xe9 */\nint a;\nint b;\nint c;\n"
_CRLF = b"int a;\r\nint b;\r\nint c;\r\n"


def _diff(line: int, text: str = "int new{};") -> str:
    """Return a diff that adds a line to the file after `line`."""
    context = [f" int f{n};" for n in range(line, line + 4)]
    added = "+" + text.format(line)
    body = "\n".join([*context[:2], added, *context[2:]])
    return f"--- a/mm/a.c\n+++ b/mm/a.c\n@@ -{line + 1},4 +{line + 1},5 @@\n{body}\n"


_END = (
    "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -29,4 +29,5 @@\n int f28;\n int f29;\n /* René */\n int end;\n"
    "+int after;\n"
)
"""A diff that adds the last line of the file, beside a letter outside ASCII."""

_LATIN_DIFF = (
    b"--- a/mm/latin.c\n+++ b/mm/latin.c\n@@ -1,4 +1,5 @@\n /* Ren\xe9 */\n+/* J\xfcrgen */\n"
    b" int a;\n int b;\n int c;\n"
)
_CRLF_DIFF = (
    b"--- a/mm/crlf.c\n+++ b/mm/crlf.c\n@@ -1,3 +1,4 @@\n int a;\r\n int b;\r\n+int new;\r\n"
    b" int c;\r\n"
)
_NEW_FILE = "diff --git a/new.c b/new.c\nnew file mode 100644\n--- /dev/null\n+++ b/new.c\n"


def _new_lines(*lines: int) -> bytes:
    """Return the file with the changes of some _diff()."""
    text = _BEFORE
    for line in lines:
        after = f"int f{line + 1};\n".encode()
        text = text.replace(after, after + f"int new{line};\n".encode())
    return text


_AFTER_END = _BEFORE + b"int after;\n"


def _mail(
    subject: str,
    body: str | bytes,
    kind: str = "text/plain; charset=utf-8",
    how: str = "8bit",
    **headers: str,
) -> bytes:
    """Return a mail as a mailbox has it. `headers` have _ for -."""
    given = {
        "From": "Ada <ada@example.org>",
        "Date": "Wed, 25 Nov 2026 16:05:11 +0000",
        "Subject": subject,
        "MIME-Version": "1.0",
        "Content-Type": kind,
        "Content-Transfer-Encoding": how,
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\n" for name, value in given.items() if value)
    payload = body.encode() if isinstance(body, str) else body
    if how == "base64":
        payload = base64.encodebytes(payload)
    elif how == "quoted-printable":
        payload = quopri.encodestring(payload)
    return f"From x@y Wed Nov 25 16:00:00 2026\n{head}\n".encode() + payload + b"\n"


def _parts(*parts: tuple[str, str], kind: str = "mixed") -> tuple[str, str]:
    """Return the body and the type of a mail with parts, each (type, text)."""
    made = "".join(f"--limit\nContent-Type: {type_}\n\n{text}\n" for type_, text in parts)
    return f"{made}--limit--\n", f'multipart/{kind}; boundary="limit"'


def _tree(where: Path) -> Path:
    (where / "linux/mm").mkdir(parents=True)
    for name, data in {"a": _BEFORE, "latin": _LATIN, "crlf": _CRLF}.items():
        (where / f"linux/mm/{name}.c").write_bytes(data)
    return where / "linux"


def _applied(box: Path, *, file: str = "mm/a.c") -> tuple[bytes, list[str], list[str]]:
    """Return a file with the patches of a box, and the subjects that are applied and left out."""
    tree = _tree(box.parent / "tree")
    chosen = mails.read(box)
    mails.apply(chosen, tree, box, "7.3.4")
    return (tree / file).read_bytes(), *mails.applied(chosen, tree)


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A place for a mailbox."""
    return tmp_path / "a.mbox"


_TEXT = ("text/plain; charset=utf-8", _END.removesuffix("\n"))  # the boundary ends its last line
_SIGNATURE = ("application/pgp-signature; name=signature.asc", "-----BEGIN PGP SIGNATURE-----")
_ATTACHED = ("text/x-patch; charset=utf-8; name=a.patch", _END)
_NESTED = _parts(_TEXT, _SIGNATURE, kind="signed")[0].replace("limit", "inner")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        _parts(_TEXT, _SIGNATURE, kind="signed"),
        _parts(("text/plain", "See the file."), _ATTACHED),
        _parts(('multipart/signed; boundary="inner"', _NESTED)),
        _parts(
            _TEXT,
            ("application/octet-stream; name=a.bin\nContent-Transfer-Encoding: base64", "AAAA"),
        ),
    ],
    ids=["signature", "attached", "nested", "bytes"],
)
def test_parts_that_are_no_patch_do_not_reach_the_tree(box: Path, body: str, kind: str) -> None:
    box.write_bytes(_mail("[PATCH] end", body, kind, ""))
    assert _applied(box) == (_AFTER_END, ["[PATCH] end"], [])


def test_flowed_text_is_joined(box: Path) -> None:
    # Flowed text has another space before a line that begins with one.
    lines = [f" {line}" if line.startswith(" ") else line for line in _diff(3).split("\n")]
    body = "\n".join(lines).replace("int new3;", "int new3, \nand_another;")
    box.write_bytes(_mail("[PATCH] a", body, "text/plain; charset=utf-8; format=flowed", "7bit"))
    wanted = _new_lines(3).replace(b"int new3;", b"int new3, and_another;")
    assert _applied(box) == (wanted, ["[PATCH] a"], [])


_LATIN_AFTER = _LATIN.replace(b"int a;", b"/* J\xfcrgen */\nint a;")
_UTF_8_ONLY = _END.encode("iso-8859-1")


@pytest.mark.parametrize(
    ("file", "body", "charset", "how", "after", "way"),
    [
        ("a", _END.encode(), "us-ascii", "8bit", _AFTER_END, ""),
        ("latin", _LATIN_DIFF, "utf-8", "8bit", _LATIN_AFTER, ""),
        ("latin", _LATIN_DIFF, "iso-8859-1", "quoted-printable", _LATIN_AFTER, ""),
        ("latin", b"Ren\xe9\n" + _LATIN_DIFF, "iso-8859-1", "8bit", _LATIN_AFTER, ""),
        ("a", _END.encode(), "iso-8859-1", "base64", _AFTER_END, ""),
        ("a", _UTF_8_ONLY, "iso-8859-1", "8bit", _AFTER_END, " (recoded from iso-8859-1)"),
        ("a", _UTF_8_ONLY, "cp1252", "base64", _AFTER_END, " (recoded from cp1252)"),
        ("a", _END.encode("utf-16"), "utf-16", "base64", None, ""),
        # Names that Python knows, but not as charsets.
        ("a", _END.encode(), "rot13", "8bit", _AFTER_END, " (git does not know its charset)"),
        ("a", _END.encode(), "y", "8bit", _AFTER_END, " (git does not know its charset)"),
        ("a", _END.encode(), '"u\0d"', "8bit", _AFTER_END, " (git does not know its charset)"),
        ("a", _END.encode(), '"\0"', "base64", _AFTER_END, ""),
        ("a", _END.encode(), "z" * 300, "8bit", _AFTER_END, " (git does not know its charset)"),
    ],
)
def test_the_bytes_of_a_diff_stay_whatever_the_charset_is_called(
    box: Path, file: str, body: bytes, charset: str, how: str, after: bytes | None, way: str
) -> None:
    text = body if charset == "utf-16" else b"Why.\n" + body
    box.write_bytes(_mail("[PATCH] a", text, f"text/plain; charset={charset}", how))
    if after is None:
        with pytest.raises(Failure, match="has no diff; save the mail again"):
            _applied(box)
    else:
        assert _applied(box, file=f"mm/{file}.c") == (after, [f"[PATCH] a{way}"], [])


def test_a_subject_is_read_in_its_own_charset(box: Path) -> None:
    subject = "=?iso-8859-1?q?[PATCH]_Ren=E9?="
    box.write_bytes(_mail(subject, b"Ren\xe9\n" + _LATIN_DIFF, "text/plain; charset=iso-8859-1"))
    assert _applied(box, file="mm/latin.c") == (_LATIN_AFTER, ["[PATCH] René"], [])


def test_the_bytes_of_a_diff_without_a_mail_stay(box: Path) -> None:
    box.write_bytes(_LATIN_DIFF)
    assert _applied(box, file="mm/latin.c") == (_LATIN_AFTER, ["a.mbox"], [])


@pytest.mark.parametrize("tags", ["PATCH 0/1", "PATCH v3 00/12", "RFC PATCH 0/1", "PATCH mm 0/2"])
def test_a_cover_letter_that_quotes_a_diff_is_left_out(box: Path, tags: str) -> None:
    cover = _mail(f"[{tags}] a", f"Try it with:\n\n{_NEW_FILE}@@ -0,0 +1 @@\n+new\n")
    first = f"[{tags.replace('0/', '1/')}] a"
    box.write_bytes(cover + _mail(first, _diff(3)))
    assert _applied(box) == (_new_lines(3), [first], [f"[{tags}] a (a cover letter)"])


_FIRST = _mail("[PATCH] a", _diff(3), Message_ID="<1@y>")
_SECOND = {"In_Reply_To": "<1@y>", "Message_ID": "<2@y>"}
_OLDER = "[PATCH] a (an older version)"
_ANSWER = f"Or rather:\n\n-----Original Message-----\nFrom: Ada\n\n{_diff(9)}"


@pytest.mark.parametrize(
    "subject",
    [
        "Re: [PATCH] a",
        "AW: [PATCH] a",
        "=?utf-8?b?5Zue5aSNOiBbUEFUQ0hdIGE=?=",
        "回复：[PATCH] a",  # noqa: RUF001
        "SV: [PATCH] a",
        "Re[2]: [PATCH] a",
        "Re: a",
        "Vastaus: [PATCH] a",
        "Betreff: was: [PATCH] a",
        "[PATCH] a",
        "[EXTERN] Re: [PATCH] a",
    ],
)
def test_a_reply_is_left_out(box: Path, subject: str) -> None:
    box.write_bytes(_FIRST + _mail(subject, _ANSWER, From="Bob <bob@y>", **_SECOND))
    after, applied, left_out = _applied(box)
    assert (after, applied) == (_new_lines(3), ["[PATCH] a"])
    assert len(left_out) == 1 and left_out[0].endswith(" (a reply)")


def test_a_subject_with_many_colons_is_no_reply() -> None:
    # A search that tries each way to divide it takes years.
    assert not mail_order._is_reply(Mail("key: " + "a:" * 60), [])


def test_a_reply_that_begins_as_the_mail_that_it_answers_is_left_out(box: Path) -> None:
    body = f"From: Ada <ada@example.org>\nSubject: [PATCH] b\n\n{_diff(9)}"
    box.write_bytes(_mail("[PATCH] a", _diff(3)) + _mail("AW: [PATCH] b", body))
    assert _applied(box) == (_new_lines(3), ["[PATCH] a"], ["AW: [PATCH] b (a reply)"])


def test_the_same_subject_in_a_thread_is_a_reply_of_others_alone(box: Path) -> None:
    again = _mail("[PATCH] a", _diff(9), **_SECOND)
    box.write_bytes(_FIRST + again)
    with pytest.raises(Failure, match="different patches of one version"):
        mails.read(box)
    box.write_bytes(_FIRST + again.replace(b"Ada", b"Bob").replace(b"ada@", b"bob@"))
    assert _applied(box) == (_new_lines(3), ["[PATCH] a"], ["[PATCH] a (a reply)"])


@pytest.mark.parametrize(
    "subject", ["Subject: [PATCH] a", "mm: a change: [PATCH] a", "re_use: a", "[PATCH] a\x1b[2Jb"]
)
def test_a_subject_with_a_colon_or_an_escape_is_shown(box: Path, subject: str) -> None:
    box.write_bytes(_mail(subject, _diff(3)))
    assert _applied(box) == (_new_lines(3), [subject.replace("\x1b", "?")], [])


def test_the_patch_of_somebody_else_in_a_thread_is_a_follow_up(box: Path) -> None:
    other = _mail("[PATCH] b", _diff(9), From="Bob <bob@y>", **_SECOND)
    box.write_bytes(_FIRST + other)
    left_out = ["[PATCH] b (a follow-up to [PATCH] a)"]
    assert _applied(box) == (_new_lines(3), ["[PATCH] a"], left_out)


def _series(version: str, *lines: int, thread: str = "") -> list[bytes]:
    """Return a series of mails whose titles are those of _diff(); `thread` makes it one thread."""
    made = []
    for number, line in enumerate(lines, 1):
        headers = {"Message_ID": f"<{thread}{number}@y>"} if thread else {}
        if thread and number > 1:
            headers["References"] = f"<{thread}1@y>"
        subject = f"[PATCH{version} {number}/{len(lines)}] {line}"
        made.append(_mail(subject, _diff(line), **headers))
    return made


@pytest.mark.parametrize(
    ("sent", "lines", "applied", "left_out"),
    [
        (_series("", 3, 9)[::-1], (3, 9), ["[PATCH 1/2] 3", "[PATCH 2/2] 9"], []),
        ([_FIRST, _mail("[PATCH v2] a", _diff(9))], (9,), ["[PATCH v2] a"], [_OLDER]),
        (
            [*_series(" v2", 3, 9)[::-1], *_series("", 3, 9, 15), *_series("v10", 3, 15)],
            (3, 15),
            ["[PATCHv10 1/2] 3", "[PATCHv10 2/2] 15"],
            [
                "[PATCH 1/3] 3 (an older version)",
                "[PATCH 2/3] 9 (an older version)",
                "[PATCH 3/3] 15 (an older version)",
                "[PATCH v2 2/2] 9 (an older version)",
                "[PATCH v2 1/2] 3 (an older version)",
            ],
        ),
        (  # one patch of a series is sent again
            [
                *_series("", 3, 9, 15, thread="a"),
                _mail("[PATCH v2 2/3] 9", _diff(20), Message_ID="<b@y>", References="<a1@y>"),
            ],
            (3, 20, 15),
            ["[PATCH 1/3] 3", "[PATCH v2 2/3] 9", "[PATCH 3/3] 15"],
            ["[PATCH 2/3] 9 (an older version)"],
        ),
        (
            [
                *_series("", 3, 9, thread="a"),
                _mail("[PATCH v2] new title", _diff(20), Message_ID="<b@y>", In_Reply_To="<a2@y>"),
            ],
            (3, 20),
            ["[PATCH 1/2] 3", "[PATCH v2] new title"],
            ["[PATCH 2/2] 9 (an older version)"],
        ),
        (  # another title, in the same thread
            [_FIRST, _mail("[PATCH v2] b", _diff(9), **_SECOND)],
            (9,),
            ["[PATCH v2] b"],
            [_OLDER],
        ),
        (
            [*_series("", 3, 9), *_series(" RESEND", 3, 9)],
            (3, 9),
            ["[PATCH RESEND 1/2] 3", "[PATCH RESEND 2/2] 9"],
            ["[PATCH 1/2] 3 (an older version)", "[PATCH 2/2] 9 (an older version)"],
        ),
        (  # two series, which came interleaved and in the wrong order
            [
                mail
                for pair in zip(
                    _series("", 3, 9, thread="a")[::-1],
                    _series("", 15, 20, thread="b")[::-1],
                    strict=True,
                )
                for mail in pair
            ],
            (3, 9, 15, 20),
            ["[PATCH 1/2] 3", "[PATCH 2/2] 9", "[PATCH 1/2] 15", "[PATCH 2/2] 20"],
            [],
        ),
        (
            [*_series("", 3, 9), *_series("", 15, 20)],
            (3, 9, 15, 20),
            ["[PATCH 1/2] 3", "[PATCH 2/2] 9", "[PATCH 1/2] 15", "[PATCH 2/2] 20"],
            [],
        ),
        (  # the same mail came twice: with its ID, and without one
            [*_series("", 3, thread="a") * 2, *_series("", 9) * 2],
            (3, 9),
            ["[PATCH 1/1] 3", "[PATCH 1/1] 9"],
            ["[PATCH 1/1] 3 (the same mail again)", "[PATCH 1/1] 9 (the same patch again)"],
        ),
        *(  # patches without numbers, of one author in one thread
            (
                [first, _mail("[PATCH] b", _diff(9), **_SECOND)],
                (3, 9),
                ["[PATCH] a", "[PATCH] b"],
                [],
            )
            # The two mails may also answer each other.
            for first in (_FIRST, _FIRST.replace(b"Message-ID", b"References: <2@y>\nMessage-ID"))
        ),
        ([_mail("Hello", "Hi.\n"), *_series("", 3)], (3,), ["[PATCH 1/1] 3"], ["Hello (no patch)"]),
    ],
)
def test_the_newest_version_is_applied_in_the_order_of_its_numbers(
    box: Path, sent: list[bytes], lines: tuple[int, ...], applied: list[str], left_out: list[str]
) -> None:
    box.write_bytes(b"".join(sent))
    assert _applied(box) == (_new_lines(*lines), applied, left_out)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (
            [_mail("[PATCH] a", _diff(3)), _mail("[PATCH] a", _diff(9))],
            r"different patches of one version: \[PATCH\] a and \[PATCH\] a; give a file with one",
        ),
        (
            [
                *_series("", 3, 9, thread="a"),
                _mail("[PATCH 2/2] c", _diff(15), Message_ID="<c@y>", References="<a1@y>"),
            ],
            r"different patches of one version: \[PATCH 2/2\] 9 and \[PATCH 2/2\] c; give a file",
        ),
        (
            [*_series("", 3), _mail("[PATCH 2/2] b", "<p>+int b;</p>", "text/html")],
            r"\[PATCH 2/2\] b in .* has no diff; save the mail again, as it came",
        ),
        ([_mail("AW: [PATCH] a", _diff(3))], r"has no patch: AW: \[PATCH\] a \(a reply\); give a"),
        ([_mail("Vastaus: [PATCH] a", _diff(3))], r"has no patch: Vastaus: .* \(a reply\); give a"),
        ([_mail("[PATCH 0/1] a", _diff(3))], r"has no patch: \[PATCH 0/1\] a \(a cover letter\); "),
        ([b""], "has no patch; give a mailbox"),
        ([b"\0\x1f\x8b" * 9], "has no patch; give a mailbox"),
        ([b"\x1f\x8b\x08\0"], "cannot read .*; give a mailbox or a directory"),
        (
            [_mail("[PATCH 2/2] b", _diff(3).replace("int f5", "int new"))],
            r"patch 1 of .* \(\[PATCH 2/2\] b\) does not .*; add the patches that are missing: 1/2",
        ),
        (
            [_mail("[PATCH] a", _diff(3)), _mail("[PATCH v2] b", _diff(3, "int other{};"))],
            r"patch 2 of .* does not apply .*; give one series alone",
        ),
        (
            [_mail("[PATCH] a", _diff(3).replace("int f5", "int x"))],
            r"does not apply to Linux 7.3.4: .*; give the kernel that it was made for",
        ),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(box: Path, sent: list[bytes], message: str) -> None:
    box.write_bytes(b"".join(sent))
    with pytest.raises(Failure, match=message):
        _applied(box)


@pytest.mark.parametrize("how", ["8bit", "quoted-printable", "base64"])
@pytest.mark.parametrize(
    "line",
    [
        "From now on it is there.",
        "From: nobody",
        ">From the first day on, it was.",
        "From me, with a time: 10:30",
    ],
)
def test_a_line_of_a_message_does_not_end_the_mail(box: Path, line: str, how: str) -> None:
    message = f"It was needed.\n{line}\n\nMore.\n---\n"
    box.write_bytes(_mail("[PATCH] a", message + _END, how=how) + _mail("[PATCH] b", _diff(3)))
    after = _new_lines(3) + b"int after;\n"
    assert _applied(box) == (after, ["[PATCH] a", "[PATCH] b"], [])


def test_a_directory_can_have_files_with_several_mails(tmp_path: Path) -> None:
    folder = tmp_path / "patches"
    folder.mkdir()
    (folder / "1.mbox").write_bytes(b"".join(_series("", 3, 9)))
    (folder / "2.patch").write_bytes(_diff(15).encode())
    (folder / "3.mbox.gz").write_bytes(gzip.compress(_mail("[PATCH] c", _diff(20))))
    (folder / "notes.txt").write_text("Not a patch.")
    applied = ["[PATCH 1/2] 3", "[PATCH 2/2] 9", "2.patch", "[PATCH] c"]
    assert mails.is_directory(folder)
    assert _applied(folder) == (_new_lines(3, 9, 15, 20), applied, [])


def test_a_maildir_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "Mail"
    for name in ("cur", "new", "tmp"):
        (folder / name).mkdir(parents=True)
    assert mails.is_directory(folder)
    second, first = (mail.split(b"\n", 1)[1] for mail in _series("", 3, 9)[::-1])
    (folder / "new/1764086401.M1P1.host").write_bytes(second)
    (folder / "cur/1764086402.M1P1.host:2,S").write_bytes(first.replace(b"\n", b"\r\n"))
    assert _applied(folder) == (_new_lines(3, 9), ["[PATCH 1/2] 3", "[PATCH 2/2] 9"], [])


def test_a_thread_as_a_public_archive_packs_it_is_read(tmp_path: Path) -> None:
    thread = [
        _mail("[PATCH 0/2] a", "Hello.\n", Message_ID="<0@y>"),
        _mail("[PATCH 2/2] 9", _diff(9), Message_ID="<2@y>", In_Reply_To="<0@y>"),
        _mail("[PATCH 1/2] 3", _diff(3), Message_ID="<1@y>", In_Reply_To="<0@y>"),
        _mail("Re: [PATCH 2/2] 9", _ANSWER, Message_ID="<3@y>", In_Reply_To="<2@y>"),
    ]
    text = b"".join(thread).replace(
        b"From x@y Wed Nov 25 16:00:00 2026", b"From mboxrd@z Thu Jan  1 00:00:00 1970"
    )
    box = tmp_path / "t.mbox.gz"
    box.write_bytes(gzip.compress(text))
    left_out = ["Re: [PATCH 2/2] 9 (a reply)", "[PATCH 0/2] a (a cover letter)"]
    assert _applied(box) == (_new_lines(3, 9), ["[PATCH 1/2] 3", "[PATCH 2/2] 9"], left_out)


_CRS_OF_TEXT = "[PATCH] a (without the carriage returns of its text)"
_CRS_IN_BASE64 = _mail("[PATCH] a", _diff(3).replace("\n", "\r\n"), how="base64")
_CRS_QUOTED = _mail("[PATCH] a", _diff(3).replace("\n", "=0D=0A=\n"), how="quoted-printable")


@pytest.mark.parametrize(
    ("data", "applied"),
    [
        (_mail("[PATCH] a", _diff(3)).replace(b"\n", b"\r\n"), "[PATCH] a"),
        (_diff(3).replace("\n", "\r\n").encode(), "a.mbox"),
        (_CRS_IN_BASE64, _CRS_OF_TEXT),
        (_CRS_IN_BASE64.replace(b"\n", b"\r\n"), _CRS_OF_TEXT),
        (_CRS_QUOTED.replace(b"=3D0D=3D0A=3D", b"=0D=0A="), _CRS_OF_TEXT),
        (_diff(3).encode(), "a.mbox"),
        (f"A note.\n\n{_diff(3)}".encode(), "a.mbox"),
        (_mail("[PATCH] a", _diff(3)).split(b"\n", 1)[1], "[PATCH] a"),
        (b"\n\n" + _mail("[PATCH] a", _diff(3)) + b"\n\n\n", "[PATCH] a"),
    ],
)
def test_lines_may_end_as_mail_programs_end_them(box: Path, data: bytes, applied: str) -> None:
    box.write_bytes(data)
    assert _applied(box) == (_new_lines(3), [applied], [])


_CRLF_QUOTED = _mail("[PATCH] a", _CRLF_DIFF.replace(b"\r\n", b"=0D\n"), how="quoted-printable")


@pytest.mark.parametrize(
    ("data", "way"),
    [
        (_mail("[PATCH] a", _CRLF_DIFF), " (with the carriage returns of its lines)"),
        (_mail("[PATCH] a", _CRLF_DIFF, how="base64"), ""),
        (_CRLF_QUOTED.replace(b"=3D0D", b"=0D"), ""),
    ],
)
def test_a_file_with_carriage_returns_keeps_them(box: Path, data: bytes, way: str) -> None:
    box.write_bytes(data)
    after = _CRLF.replace(b"int c", b"int new;\r\nint c")
    assert _applied(box, file="mm/crlf.c") == (after, [f"[PATCH] a{way}"], [])


def test_a_patch_that_the_tree_has_is_passed_over(tmp_path: Path) -> None:
    box, tree = tmp_path / "a.mbox", _tree(tmp_path)
    (tree / "mm/a.c").write_bytes(_new_lines(3))
    box.write_bytes(b"".join(_series("", 3, 9)))
    chosen = mails.read(box)
    mails.apply(chosen, tree, box, "7.3.4")
    assert (tree / "mm/a.c").read_bytes() == _new_lines(3, 9)
    there = "[PATCH 1/2] 3 (the tree has it already)"
    assert mails.applied(chosen, tree) == (["[PATCH 2/2] 9"], [there])
    with pytest.raises(Failure, match=r"Linux 7.3.4 has the patches of .* already; give an older"):
        mails.apply(chosen, tree, box, "7.3.4")


def test_settings_of_the_user_do_not_change_a_patch(box: Path, monkeypatch: Patch) -> None:
    config = box.parent / ".gitconfig"
    config.write_text(
        "[apply]\n\twhitespace = fix\n\tignoreWhitespace = change\n"
        "[i18n]\n\tcommitEncoding = iso-8859-1\n[core]\n\tattributesFile = /nowhere\n"
    )
    monkeypatch.setenv("HOME", str(box.parent))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    spaced = _diff(3, "int new{};  ")
    box.write_bytes(_mail("=?utf-8?q?[PATCH]_=C3=A9?=", f"{_diff(9)}{spaced}"))
    wanted = _new_lines(3, 9).replace(b"int new3;", b"int new3;  ")
    assert _applied(box) == (wanted, ["[PATCH] é"], [])
