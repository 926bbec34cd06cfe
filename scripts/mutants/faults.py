# SPDX-License-Identifier: GPL-2.0-only
"""Single faults in the lines that the series adds to a kernel, made by universalmutator."""

import contextlib
import difflib
import io
from collections.abc import Iterable
from dataclasses import dataclass

from universalmutator import mutator  # type: ignore[import-untyped]

from pagemint.base import cache
from pagemint.trees.trees import Tree

_RULES = ("universal.rules", "c_like.rules", "c.rules")
# Rules whose faults are none: of texts, and of words that only look like an operator.
_LEFT_OUT = ('".+"', "begin", "end", r"#include")


@dataclass(frozen=True)
class Mutant:
    """One changed line of a file.

    Attributes:
        path: the file, in the kernel tree.
        line: the number of the line, from 1.
        before: the line.
        after: the line with the fault.
    """

    path: str
    line: int
    before: str
    after: str

    @property
    def drops_drain(self) -> bool:
        """Whether the fault drops a drain, or the fence in one."""
        call = self.before.strip()
        drain = call.endswith(";") and ("_drain(" in call or call == "wmb();")
        return drain and self.after.lstrip().startswith("/*")

    @property
    def key(self) -> str:
        """Identifies the fault as long as the line does not change or move."""
        return cache.digest(self.path, str(self.line), self.before, self.after)

    def text(self, whole: str) -> str:
        """Return the text of the file with the fault."""
        lines = whole.splitlines(keepends=True)
        assert lines[self.line - 1] == self.before
        lines[self.line - 1] = self.after
        return "".join(lines)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before.strip()}  ->  {self.after.strip()}"


def of_series(base: Tree, patched: Tree, paths: Iterable[str]) -> list[Mutant]:
    """Return every fault in the lines of some files that `base` does not have."""
    mutants = []
    for path in sorted(paths):
        before = []
        if (base.path / path).exists():
            if (base.path / path).samefile(patched.path / path):
                continue  # the trees share what is alike
            before = (base.path / path).read_text().splitlines(keepends=True)
        after = (patched.path / path).read_text().splitlines(keepends=True)
        new = _new_lines(before, after)
        # It prints how many rules it read.
        with contextlib.redirect_stdout(io.StringIO()):
            made = mutator.mutants_regexp(after, list(_RULES), ignorePatterns=[])
        for number, text, (rule, _), _ in made:
            if number in new and not rule.startswith(_LEFT_OUT):
                # On one line, since the numbers of later lines are part of some objects.
                one_line = " ".join(text.split("\n")).rstrip()
                # An if or a loop may have nothing but the dropped statement.
                is_body = number > 1 and after[number - 2].rstrip().endswith((")", "else", "do"))
                if is_body and one_line.lstrip().startswith("/*") and one_line.endswith(";*/"):
                    one_line += " {}"
                one_line += "\n"
                mutants.append(Mutant(path, number, after[number - 1], one_line))
    return mutants


def _new_lines(before: list[str], after: list[str]) -> set[int]:
    """Return the numbers, from 1, of the lines that only `after` has."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    numbers: set[int] = set()
    for kind, _, _, first, end in matcher.get_opcodes():
        if kind != "equal":
            numbers.update(range(first + 1, end + 1))
    return numbers
