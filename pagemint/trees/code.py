# SPDX-License-Identifier: GPL-2.0-only
"""Finds the lines of code in a kernel file, or in a part of one."""

import re

_C_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
# A part can begin within a comment.
_C_COMMENT_BEFORE = re.compile(r"\A(?:(?!/\*).)*?\*/", re.DOTALL)
_HASH_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)


def lines(path: str, text: str) -> list[str]:
    """Return the lines that hold code, without comments and the space around them.

    Args:
        path: the file, in a kernel tree.
        text: its text, or some of its lines.
    """
    if path.endswith((".c", ".h", ".S")):
        for comment in (_C_COMMENT_BEFORE, _C_COMMENT):
            # Keep the line breaks of a comment, so that the lines around it stay apart.
            text = comment.sub(lambda found: "\n" * found[0].count("\n"), text)
    else:
        text = _HASH_COMMENT.sub("", text)
    return [line.strip() for line in text.splitlines() if line.strip()]
