# SPDX-License-Identifier: GPL-2.0-only
"""The patches on a real tree: they build, and gcc, sparse and checkpatch find nothing new.

Each patch, a step, is built in a directory of links to the cached tree, in which the files that the
patches change are copies. Fetches the kernel's source if it is not in the cache.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kernel_lines import BASES, LINES, LONG

from pagemint.base import git, machine
from pagemint.trees import patches, sources, stock, trees

_SUITES = {
    "y": ("ADDED_MEMORY", "COPY_HIGHPAGES", "DEVICE_FOLIO", "MEMMAP_TEMPLATE", "MEMMAP_THREADS"),
    "m": ("MEMCPY", "MEMCPY_FLUSHCACHE", "MEMFILL_STREAMING"),
}
_OPTIONS = "CONFIG_DEBUG_INFO_NONE=y\nCONFIG_DMA_API_DEBUG=y\nCONFIG_KUNIT=y\n" + "".join(
    f"CONFIG_{name}_KUNIT_TEST={how}\n" for how, names in _SUITES.items() for name in names
)
# Objects to build beside those that the patches edit: some that include the edited headers, and a
# KUnit suite, as KUnit's own messages are not new. 6.12 has the suite in another folder.
_OBJECTS = [
    "mm/sparse-vmemmap.o",
    "fs/dax.o",
    "arch/x86/mm/init_64.o",
    "drivers/md/dm-writecache.o",
    "lib/tests/memcpy_kunit.o",
    "lib/memcpy_kunit.o",
]
# For Debian 12's sparse: the kernel does not run it unless it knows __typeof_unqual__, and it gives
# up at MODULE_LICENSE() unless the length of a literal is a constant.
_SPARSE = (
    "CHECK=sparse -D__typeof_unqual__=__typeof__ '-D__builtin_strlen(text)=(sizeof(text) - 1)'"
)


@dataclass(frozen=True)
class _Config:
    """A kernel configuration to build the steps with.

    Attributes:
        name: its name in the test.
        options: options on top of Debian's configuration; None is allnoconfig.
        absent: a pattern of objects that it does not build.
        variables: arguments of make, in each call.
    """

    name: str
    options: str | None = ""
    absent: str = "$^"  # matches nothing
    variables: tuple[str, ...] = ()

    def built_of(self, objects: Iterable[str]) -> list[str]:
        """Return which of some objects it builds; a fixed list for allnoconfig, which has few."""
        if self.options is None:
            core = ["mm/mm_init.o", "mm/page_alloc.o", "mm/memory.o", "mm/util.o"]
            return [*core, "arch/x86/lib/"]
        return [path for path in objects if not re.match(self.absent, path)]


_DEBIAN = _Config("debian")
# For the newest line only. Without ARCH=x86_64, allnoconfig has 32 bits and a flat memmap.
_MORE_CONFIGS = [
    _Config("kasan", "CONFIG_KASAN=y\n", absent="mm/(tests/)?memmap_"),
    _Config("allnoconfig", None),
    _Config("allnoconfig-64", None, variables=("ARCH=x86_64",)),
]
_BUILDS = [(line, _DEBIAN) for line in BASES]
_BUILDS += [(LINES[-1], config) for config in _MORE_CONFIGS if LONG]
_MESSAGE = re.compile(r"^(\S+?):\d+(?::\d+)?: ((?:warning|error): .*)$", re.MULTILINE)


@dataclass
class _Outcome:
    """The outcome of building the steps of a line.

    Attributes:
        config: the configuration.
        steps: the steps that are built, a minute each: only the last one unless in the long run.
        messages: messages of gcc and sparse, as (file, text), for each step and "base".
        failures: the output of make for each step that does not build.
        built: the objects that exist after each step and "base".
    """

    config: _Config
    steps: list[patches.Patch]
    messages: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    built: dict[str, set[str]] = field(default_factory=dict)


@pytest.fixture(scope="module", params=BASES)
def source(request: pytest.FixtureRequest) -> sources.Source:
    """The real source, in the user's own cache."""
    return sources.get(request.param)


@pytest.fixture(scope="module", params=_BUILDS, ids=lambda build: f"{build[0]}-{build[1].name}")
def outcome(request: pytest.FixtureRequest) -> Iterator[_Outcome]:
    """The steps of a line on top of one another, in one build directory."""
    line, config = request.param
    with tempfile.TemporaryDirectory(prefix="pagemint-steps-") as name:
        yield _build_all(sources.get(line), config, Path(name))


def _build_all(source: sources.Source, config: _Config, directory: Path) -> _Outcome:
    tree, build, edited = (directory / name for name in ("linux", "build", "edited"))
    tree.mkdir()
    build.mkdir()
    for entry in source.tree.iterdir():
        (tree / entry.name).symlink_to(entry)
    steps = patches.of(source.line)
    touched = {edit.path for step in steps for edit in step.edits}
    for path in touched:
        if (source.tree / path).exists():
            (edited / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.tree / path, edited / path)
    base = sorted({*_OBJECTS, *(path for step in steps for path in _objects(step))})
    base = [path for path in base if (source.tree / path).with_suffix(".c").exists()]
    outcome = _Outcome(config, steps if LONG else steps[-1:])
    text = sources.config_for(source.line).read_text() + _OPTIONS + (config.options or "")
    objects = list(base)
    for step in steps:
        if outcome.failures:
            outcome.failures[step.name] = "an earlier one does not build"
            continue
        git.apply(step.mail, edited, step.name)
        for edit in step.edits:
            _put(tree, edit.path, (edited / edit.path).read_bytes())
        objects += [path for path in _objects(step) if path not in objects]
        if step in outcome.steps:
            _build(outcome, step.name, tree, build, text, objects)
    # Only the objects that read a file with a message: without one, base cannot differ.
    files = {file for messages in outcome.messages.values() for file, _ in messages}
    base = [path for path in base if files & _read(build, tree, path)]
    for path in touched:
        _put(tree, path, old.read_bytes() if (old := source.tree / path).exists() else None)
    for path in base:
        (build / path).unlink(missing_ok=True)  # make would keep it if none of these files is in it
    _build(outcome, "base", tree, build, text, base)
    return outcome


def _read(build: Path, tree: Path, path: str) -> set[str]:
    """Return the files of the tree that an object was made from; none if it was not made."""
    commands = (build / path).with_name(f".{Path(path).name}.cmd")
    text = commands.read_text() if commands.exists() else ""
    return set(re.findall(rf"{tree}/(\S+)", text))


def _objects(step: patches.Patch) -> list[str]:
    """Return the objects of a patch's sources, without those of other architectures than x86."""
    files = [edit.path for edit in step.edits]
    return [f"{path[:-2]}.o" for path in files if re.fullmatch(r"(?!arch/(?!x86/)).*\.c", path)]


def _put(tree: Path, path: str, data: bytes | None) -> None:
    """Write a file into a tree of links, or remove one, without changing what they point to."""
    directory = tree
    for part in Path(path).parts[:-1]:
        directory /= part
        if directory.is_symlink():
            target = directory.readlink()
            directory.unlink()
            directory.mkdir()
            for entry in target.iterdir():
                (directory / entry.name).symlink_to(entry)
        directory.mkdir(exist_ok=True)
    (tree / path).unlink(missing_ok=True)
    if data is not None:
        (tree / path).write_bytes(data)


def _build(
    outcome: _Outcome, name: str, tree: Path, build: Path, config: str, objects: list[str]
) -> None:
    """Build with all warnings of W=1, and with sparse on each source that is compiled."""
    (build / ".config").write_text(config)
    output = ""
    jobs = f"-j{machine.cpus()}"
    checked = ["W=1", "C=1", _SPARSE]
    targets = outcome.config.built_of(objects)
    # Kbuild enters this directory twice, and two jobs would write the same files.
    serial = [path for path in targets if path.startswith("arch/x86/lib/")]
    parallel = [path for path in targets if path not in serial]
    for argv in (
        ["allnoconfig" if outcome.config.options is None else "olddefconfig"],
        [jobs, "prepare"],
        parallel and [jobs, *checked, *parallel],
        serial and ["-j1", *checked, *serial],
    ):
        if not argv:  # make would build the whole kernel
            continue
        ended = subprocess.run(
            ["make", "-s", "-k", f"O={build}", *outcome.config.variables, *argv],
            cwd=tree,
            env={key: value for key, value in os.environ.items() if not key.startswith("MAKE")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output += ended.stdout
        if ended.returncode != 0:
            outcome.failures[name] = output
            break
    outcome.messages[name] = {
        (os.path.normpath(path).removeprefix(f"{tree}/"), text)
        for path, text in _MESSAGE.findall(output)
    }
    outcome.built[name] = {path for path in targets if (build / path).exists()}


def test_base_has_messages_of_sparse(outcome: _Outcome) -> None:
    assert outcome.failures.get("base") is None
    # gcc names an option in each.
    assert any("[-W" not in text for _, text in outcome.messages["base"])


def test_each_step_builds_with_its_new_objects(outcome: _Outcome) -> None:
    assert outcome.failures == {}
    for step in outcome.steps:
        new = {f"{e.path[:-2]}.o" for e in step.edits if e.new and e.path.endswith(".c")}
        missing = set(outcome.config.built_of({*new, "mm/mm_init.o"})) - outcome.built[step.name]
        assert missing == set(), step.name


def test_no_step_adds_a_message_of_gcc_or_sparse(outcome: _Outcome) -> None:
    known = outcome.messages["base"]
    new = {step.name: outcome.messages[step.name] - known for step in outcome.steps}
    assert {path: messages for path, messages in new.items() if messages} == {}


_SIGNED = "Signed-off-by: pagemint <pagemint@example.org>"
# checkpatch knows SetPageOffline() as a name of the kernel, but not __SetPageOffline().
_PAGE_FLAG = re.compile(r"^CHECK:CAMELCASE: .*<__(?:Set|Clear)Page\w+>$", re.MULTILINE)


def _checkpatch(source: sources.Source, *args: str | Path) -> str:
    """Return the messages of the kernel's checkpatch about mails, or about a file behind -f."""
    argv = ["perl", "scripts/checkpatch.pl", "--strict", "--show-types", "--no-summary", *args]
    ended = subprocess.run(argv, cwd=source.tree, capture_output=True, text=True)
    output = _PAGE_FLAG.sub("", ended.stdout)
    has_message = re.search(r"^(?:ERROR|WARNING|CHECK):[A-Z_]+: ", output, re.MULTILINE)
    return (output if has_message else "") + ended.stderr


@pytest.mark.usefixtures("in_user_cache")
def test_checkpatch_accepts_each_mail(source: sources.Source, tmp_path: Path) -> None:
    maintainers = (source.tree / "MAINTAINERS").read_text()
    folders = tuple(re.findall(r"^F:\t(\S+/)$", maintainers, re.MULTILINE))
    covered: list[Path] = []
    others: list[Path] = []
    for number, step in enumerate(patches.of(source.line)):
        # The sender signs off, as git am -s does.
        mail = tmp_path / f"{number:04}-{step.mail.name}"
        mail.write_text(step.mail.read_text().replace("\n---\n", f"\n\n{_SIGNED}\n---\n", 1))
        # MAINTAINERS lists some folders whole: an architecture's, or 6.12's mm/.
        new = [edit.path for edit in step.edits if edit.new]
        whole = new and all(path.startswith(folders) for path in new)
        (covered if whole else others).append(mail)
    assert _checkpatch(source, *others) == ""
    assert _checkpatch(source, "--ignore", "FILE_PATH_CHANGES", *covered) == ""


def _coccinelle(tree: Path, files: list[str]) -> set[tuple[str, str]]:
    """Return the messages of the kernel's Coccinelle scripts about files, as (file, text)."""

    def run(script: Path) -> set[tuple[str, str]]:
        text = script.read_text()
        # The OCaml compiler would be as large as everything else that the tests need.
        if "virtual report" not in text or "ocaml" in text:
            return set()
        options = " ".join(re.findall(r"^//+ *Options: *(.*)$", text, re.MULTILINE)).split()
        argv = ["spatch", "-D", "report", "--very-quiet", "--no-show-diff", *options]
        argv += ["-I", "include", "-I", "arch/x86/include", "--cocci-file", str(script), *files]
        ended = subprocess.run(argv, cwd=tree, capture_output=True, text=True)
        assert ended.returncode == 0, f"{script.name}: {ended.stderr}"
        messages = re.findall(r"^(\S+?):\d+(?::\d+|[-:\d]*): (.*)$", ended.stdout, re.MULTILINE)
        return {(os.path.normpath(path), message) for path, message in messages}

    scripts = sorted((tree / "scripts/coccinelle").rglob("*.cocci"))
    with ThreadPoolExecutor(machine.cpus()) as pool:
        return set().union(*pool.map(run, scripts))


@pytest.mark.skipif(not LONG, reason="takes some minutes")
@pytest.mark.usefixtures("in_user_cache")
def test_coccinelle_finds_nothing_new() -> None:
    base, patched = trees.pair(sources.get(LINES[-1]))
    edits = [edit for step in patches.of(LINES[-1]) for edit in step.edits]
    edited = {edit.path for edit in edits if not edit.new}
    new = [edit.path for edit in edits if edit.new and edit.path.endswith((".c", ".h"))]
    messages = _coccinelle(patched.path, [*new, *(path for path in edited if path.endswith(".c"))])
    named = sorted({file for file, _ in messages} & edited)
    assert messages - (_coccinelle(base.path, named) if named else set()) == set()


@pytest.mark.parametrize("file", stock.sources(), ids=lambda file: file.name)
def test_checkpatch_accepts_the_module(source: sources.Source, file: Path) -> None:
    assert _checkpatch(source, "-f", file) == ""
