# SPDX-License-Identifier: GPL-2.0-only
"""The code that the series edits or adds: without comments, tests and documentation."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pagemint.base import cache
from pagemint.trees import patches
from pagemint.trees.patches import Edit

_NOT_CODE = re.compile(r"(Documentation/|MAINTAINERS$)|/tests/|Kconfig\.debug$")
# Strings come first: they can have the marks of comments.
_C_COMMENT = re.compile(
    r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|/\*.*?(?:\*/|\Z)|//[^\n]*""", re.DOTALL
)
# A part can begin within a comment, whose lines begin with a star, and be nothing else.
_C_COMMENT_BEFORE = re.compile(
    r"\A(?:[ \t]*\*(?!.*\*/)(?:[ \t].*)?(?:\n|\Z))*(?:[ \t]*(?:\*(?!/)(?:(?!/\*).)*?)?\*/|\Z)"
)
_HASH_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_KUNIT = re.compile(r"^config \w+_KUNIT_TEST\n(?:[ \t].*\n|\n)*|^.*_KUNIT_TEST.*$", re.MULTILINE)
_INCLUDE = re.compile(r'^# ?include ["<](?:.*/)?(.+)[">]$', re.MULTILINE)
_COMMON = ("include/", "arch/x86/include/")  # headers here can be in any object
_OTHER_ARCH = re.compile("arch/(?!x86/)")


@dataclass(frozen=True)
class Edited:
    """The code of the series on one kernel line.

    Attributes:
        code: by file, the code of each of its edits before and after, or all code if it is new.
        new: the files that the series adds.
    """

    code: Mapping[str, str]
    new: Collection[str]

    def linked(self, objects: Collection[str], own: str) -> dict[str, str]:
        """Return the part that can be in kernel objects of x86-64, and in code that uses them.

        It has each edited header of the kernel that code of these folders can include, and every
        build file, since an option can change any code.

        Args:
            objects: the objects, such as mm/mm_init.o.
            own: the code that uses them, which can include headers that the series adds.
        """
        folders = {str(Path(name).parent) for name in objects}
        here = {path: text for path, text in self.code.items() if not _OTHER_ARCH.match(path)}

        def counts(path: str) -> bool:
            if path.endswith((".c", ".S")):
                return f"{path[:-2]}.o" in objects
            common = path.startswith(_COMMON) or str(Path(path).parent) in folders
            return not path.endswith(".h") or (common and path not in self.new)

        part = {path: text for path, text in here.items() if counts(path)}
        texts = [own, *part.values()]
        while texts:
            included = set(_INCLUDE.findall("\n".join(texts)))
            more = {
                path: text
                for path, text in here.items()
                if path in self.new and path not in part and Path(path).name in included
            }
            part |= more
            texts = list(more.values())
        return part


def edited(line: str) -> Edited:
    """Return the code of all topics on a kernel line, or on the nearest one that has edits."""
    code: dict[str, list[str]] = {}
    new: set[str] = set()
    for edit in (e for patch in patches.of(patches.nearest_line(line)) for e in patch.edits):
        code.setdefault(edit.path, []).extend(_changes(edit))
        if edit.new:
            new.add(edit.path)
    texts = {path: "\n".join(parts) for path, parts in code.items() if parts and is_code(path)}
    return Edited(texts, new)


def digest(line: str) -> str:
    """Return a digest of the code that the series edits or adds on a kernel line."""
    return digest_of(edited(line).code)


def digest_of(code: Mapping[str, str]) -> str:
    """Return a digest of code by file."""
    return cache.digest(*(part for item in sorted(code.items()) for part in item))


def is_code(path: str) -> bool:
    """Whether a file of a kernel tree is code, not documentation or a test."""
    return not _NOT_CODE.search(path)


def lines_of_code(path: str, text: str) -> list[str]:
    """Return the lines of a kernel file, or a part of one, that hold code: without comments.

    Args:
        path: the file, in a kernel tree.
        text: its text, or some of its lines.
    """
    if path.endswith((".c", ".h", ".S")):
        # Keep the line breaks of a comment, so that the lines around it stay apart.
        text = _C_COMMENT.sub(
            lambda match: match[1] or "\n" * match[0].count("\n") or " ",
            _C_COMMENT_BEFORE.sub("", text),
        )
    else:
        text = _KUNIT.sub("", _HASH_COMMENT.sub("", text))
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def _changes(edit: Edit) -> Iterator[str]:
    """Yield the code before and after each hunk of an edit that changes code."""
    for hunk in re.split(r"^@@.*\n", edit.hunks, flags=re.M)[1:]:
        lines = hunk.splitlines(keepends=True)
        sides = ("".join(line[1:] for line in lines if line[0] in (" ", sign)) for sign in "-+")
        before, after = ("\n".join(lines_of_code(edit.path, side)) for side in sides)
        if before != after:
            yield before
            yield after
