# SPDX-License-Identifier: GPL-2.0-only
"""The programs and headers that pagemint needs, and the packages that have them.

scripts/setup runs this file before anything is installed: `python3 -m pagemint.base.packages`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

DISTRIBUTIONS = {
    "Debian": "apt-get install",
    "Fedora": "dnf install",
    "Arch": "pacman -S",
    "openSUSE": "zypper install",
}
"""The command that installs packages, by distribution; derived ones have the same."""


@dataclass(frozen=True)
class Part:
    """A program or a header.

    Attributes:
        name: the program, or the header as C includes it.
        needs: "bench"; "fetch" for Debian's kernels, without which --ksrc works; or "guest".
        packages: the package that has it, by distribution.
    """

    name: str
    needs: str
    packages: dict[str, str]

    def there(self) -> bool:
        """Whether it is installed."""
        if not self.name.endswith(".h"):
            return find(self.name) is not None
        argv = ["gcc", "-fsyntax-only", "-x", "c", "-"]
        text = f"#include <{self.name}>\n"
        try:
            return not subprocess.run(argv, input=text, text=True, capture_output=True).returncode
        except OSError:
            return False  # without a compiler nobody can tell


@once
def parts() -> dict[str, Part]:
    """Return all programs and headers by their names."""
    by_name = {}
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if not line.startswith("#"):
            needs, name, *packages = line.split()
            by_name[name] = Part(name, needs, dict(zip(DISTRIBUTIONS, packages, strict=True)))
    return by_name


def find(program: str) -> str | None:
    """Return the path of a program in PATH, or in the directories that only root's PATH has."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def missing(names: Iterable[str]) -> list[str]:
    """Return those of some programs and headers that are not installed."""
    return [name for name in names if not parts()[name].there()]


def remedy(names: Iterable[str]) -> str:
    """Return how to install programs and headers: for this distribution, or for all of them."""
    wanted = [parts()[name].packages for name in names if name in parts()]
    lists = {
        distro: " ".join(dict.fromkeys(of[distro] for of in wanted if of[distro] != "-"))
        for distro in DISTRIBUTIONS
    }
    if not any(lists.values()):
        return "install it"
    install = "install it" if len(wanted) == 1 else "install them"
    for distro, command in DISTRIBUTIONS.items():
        if lists[distro] and find(command.split()[0]):
            return f"{install}: {command} {lists[distro]}"
    named = "; ".join(f"{distro}: {text}" for distro, text in lists.items() if text)
    return f"{install} ({named})"


def main() -> int:
    """Print what a bench of one's own tree lacks; exit status 1 if it lacks anything."""
    lacking = missing(part.name for part in parts().values() if part.needs == "bench")
    if lacking:
        print(f"setup: missing: {' '.join(lacking)}; {remedy(lacking)}", file=sys.stderr)
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
