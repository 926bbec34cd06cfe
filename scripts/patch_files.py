# SPDX-License-Identifier: GPL-2.0-only
"""Writes the patches of all topics as files for git am, quilt and patch, and an archive a line.

Needs git and the standard library: no kernel tree, as the edits are stored with their context.
"""

import hashlib
import re
import sys
import tarfile
import tempfile
from pathlib import Path

from pagemint import __version__
from pagemint.base import files, git
from pagemint.base.errors import Failure
from pagemint.base.run import run
from pagemint.trees import patches
from pagemint.trees.patches import Step

_ROOT = Path(__file__).parent.parent


def write(output: Path) -> list[Path]:
    """Write the patches into LINE/TOPIC/ of a directory, which is replaced, and archives.

    Returns:
        the archives.

    Raises:
        Failure: this is no git checkout, or `output` cannot be written.
    """
    # Author and date are those of the last commit: the same commit makes the same files.
    shown = git.git(_ROOT, "log", "-1", "--format=From: %an <%ae>%nDate: %aD%n%at")
    headers, seconds = shown.strip().rsplit("\n", 1)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="patches-", dir=output.parent) as name:
            new = Path(name) / "patches"
            archives = [_line(new, base, headers, int(seconds)) for base in bases()]
            written = sorted(path for path in new.rglob("*") if path.is_file())
            sums = [
                f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(new)}\n"
                for path in written
            ]
            (new / "SHA256SUMS").write_text("".join(sums))
            if output.exists():
                output.rename(Path(name) / "old")
            new.rename(output)
    except OSError as error:
        raise Failure(f"cannot write {output}: {error.strerror}", "make room there") from error
    return [output / archive for archive in archives]


def bases() -> list[str]:
    """Return the kernel version that the edits of each line were made for."""
    listed = (files.KERNEL / "series/bases").read_text().splitlines()
    return [version for version in listed if version[:1] != "#"]


def _line(output: Path, base: str, headers: str, seconds: int) -> str:
    """Write the patches of a line and its archive; return the name of the archive."""
    line = ".".join(base.split(".")[:2])
    folder = output / line
    order = []
    for topic in patches.topics():
        steps = patches.of(line, [topic])
        if steps:
            (folder / topic.name).mkdir(parents=True)
            (folder / topic.name / "cover.txt").write_text(patches.cover(topic.name))
        for number, step in enumerate(steps, 1):
            subject, _, body = step.message.partition("\n")
            slug = re.sub(r"[^A-Za-z0-9._]+", "-", subject).strip("-.")[:52].rstrip("-.")
            path = f"{topic.name}/{number:04}-{slug}.patch"
            head = f"[PATCH {number}/{len(steps)}] {subject}"
            (folder / path).write_text(_mail(headers, head, body, _edits(step)))
            order.append(path)
    # The series file of quilt.
    comment = f"# pagemint {__version__} for Linux {base}; apply in this order\n"
    (folder / "series").write_text(comment + "".join(f"{path}\n" for path in order))
    name = f"pagemint-{__version__}-linux-{base}"

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mode = 0o755 if member.isdir() else 0o644
        member.mtime = seconds
        return member

    with tarfile.open(output / f"{name}.tar.xz", "w:xz") as archive:
        archive.add(folder, name, filter=plain)
    return f"{name}.tar.xz"


def _mail(headers: str, subject: str, body: str, edits: str) -> str:
    with tempfile.NamedTemporaryFile("w", prefix="pagemint-") as file:
        file.write(edits)
        file.flush()
        argv = ["git", "apply", "--stat", "--summary", file.name]
        # Outside of a repository: git would leave out the paths that are not below its directory.
        stat = run(argv, cwd=Path(file.name).parent, env=git.environment(), what="git apply --stat")
    headers += (
        f"\nSubject: {subject}\n"
        "MIME-Version: 1.0\n"
        "Content-Type: text/plain; charset=UTF-8\n"
        "Content-Transfer-Encoding: 8bit\n"
    )
    return f"{headers}\n{body.strip()}\n---\n{stat}\n{edits}-- \npagemint {__version__}\n"


def _edits(step: Step) -> str:
    """Return the edits and the new files of a step as one diff."""
    edits = step.diff.read_text() if step.diff else ""
    edits = re.sub(r"^--- a/(\S+)$", r"diff --git a/\1 b/\1\n\g<0>", edits, flags=re.MULTILINE)
    for path in step.files:
        lines = (files.KERNEL / path).read_text().splitlines()
        edits += (
            f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
        )
        edits += f"@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{text}\n" for text in lines)
    return edits


def main() -> None:
    """Write out/patches, and name what was written."""
    output = Path("out/patches")
    for archive in write(output):
        print(archive)
    print(f"{output}/LINE/TOPIC/*.patch: apply with git am -s, in the order of LINE/series")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"patches: {failure}")
