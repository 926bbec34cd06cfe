# SPDX-License-Identifier: GPL-2.0-only
"""The series on a real tree: it builds, and gcc, sparse and checkpatch stay silent.

The tree of a step is a directory of links into the cached one, with the files of the series in
their place. Needs the kernel's source, which is fetched if it is not in the cache.
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

import fake_tree
import pytest
from kernel_lines import BASES, LONG, WHOLE
from stand_ins import WHO, pagemint

from pagemint.base import git, machine
from pagemint.send import branches
from pagemint.trees import patches, sources, stock, trees

_SUITES = {
    "y": ("ADDED_MEMORY", "COPY_HIGHPAGES", "DEVICE_FOLIO", "MEMMAP_TEMPLATE", "MEMMAP_THREADS"),
    "m": ("MEMCPY", "MEMCPY_FLUSHCACHE", "MEMFILL_STREAMING"),
}
_OPTIONS = "CONFIG_DMA_API_DEBUG=y\nCONFIG_KUNIT=y\n" + "".join(
    f"CONFIG_{name}_KUNIT_TEST={how}\n" for how, names in _SUITES.items() for name in names
)
# Objects of the unpatched tree, beside those that the series edits: files that include its headers,
# and one KUnit suite, for the messages that KUnit itself gives. On 6.12 the suite is in another
# folder.
_OBJECTS = [
    "mm/sparse-vmemmap.o",
    "fs/dax.o",
    "arch/x86/mm/init_64.o",
    "drivers/md/dm-writecache.o",
    "lib/tests/memcpy_kunit.o",
    "lib/memcpy_kunit.o",
]
# Debian 12's sparse lacks two things. Without the operator __typeof_unqual__ the kernel does not
# run it. And unless the length of a literal is a constant, it gives up at any MODULE_LICENSE().
_SPARSE = (
    "CHECK=sparse -D__typeof_unqual__=__typeof__ '-D__builtin_strlen(text)=(sizeof(text) - 1)'"
)


@dataclass(frozen=True)
class _Config:
    """A configuration to build the steps with.

    Attributes:
        name: its name in the test.
        options: on top of Debian's configuration; None is everything off that can be.
        without: a pattern of objects that it does not have.
        settings: of make, in each call.
    """

    name: str
    options: str | None = ""
    without: str = "$^"
    settings: tuple[str, ...] = ()

    def wanted(self, objects: Iterable[str]) -> list[str]:
        """Return which of some objects it builds, or what there is in a kernel with all off."""
        if self.options is None:
            core = ["mm/mm_init.o", "mm/page_alloc.o", "mm/memory.o", "mm/util.o"]
            return [*core, "arch/x86/lib/"]
        return [one for one in objects if not re.match(self.without, one)]


_DEBIAN = _Config("debian")
# For the newest line only. With everything off, x86 has 32 bits and a flat memmap, unless make is
# told otherwise.
_MORE_CONFIGS = [
    _Config("kasan", "CONFIG_KASAN=y\n", without="mm/(tests/)?memmap_"),
    _Config("allnoconfig", None),
    _Config("allnoconfig-64", None, settings=("ARCH=x86_64",)),
]
_BUILDS = [(line, _DEBIAN) for line in BASES]
_BUILDS += [(WHOLE[-1], config) for config in _MORE_CONFIGS if LONG]
_MESSAGE = re.compile(r"^(\S+?):\d+(?::\d+)?: ((?:warning|error): .*)$", re.MULTILINE)


@dataclass
class _Made:
    """The outcome of building the patches.

    Attributes:
        config: what they are built with.
        steps: those that are built: a minute each, so only the last one unless in the long run.
        base: the objects of the unpatched tree.
        messages: of gcc and sparse, as (file, text), for each step and "base".
        failures: for a step that does not build, why.
        built: the objects of each step that are there.
    """

    config: _Config
    steps: list[patches.Step]
    base: list[str]
    messages: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    built: dict[str, set[str]] = field(default_factory=dict)


@pytest.fixture(scope="module", params=BASES)
def found(request: pytest.FixtureRequest) -> sources.Source:
    """The real source, in the user's own cache."""
    return sources.get(request.param)


@pytest.fixture(scope="module", params=_BUILDS, ids=lambda build: f"{build[0]}-{build[1].name}")
def made(request: pytest.FixtureRequest) -> Iterator[_Made]:
    """The steps of a line on top of one another, in one build directory."""
    line, config = request.param
    with tempfile.TemporaryDirectory(prefix="pagemint-steps-") as name:
        yield _build_all(sources.get(line), config, Path(name))


@pytest.fixture(scope="module")
def mails(
    found: sources.Source, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[patches.Step, Path]]:
    """Each step of a line with its mail."""
    output = tmp_path_factory.mktemp("series") / "mails"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WHO.items():
            patch.setenv(name, value)
        written = branches.mails(found, output)
        numbered = [mail for mail in written if not mail.name.startswith("0000-")]
    return list(zip(patches.of(found.line), numbered, strict=True))


def _build_all(found: sources.Source, config: _Config, work: Path) -> _Made:
    tree, built = work / "linux", work / "build"
    tree.mkdir()
    built.mkdir()
    for entry in found.tree.iterdir():
        (tree / entry.name).symlink_to(entry)
    plan = patches.plan(found.tree, found.line)
    objects = sorted({*_OBJECTS, *(one for change in plan for one in _objects(change))})
    objects = [one for one in objects if (found.tree / one).with_suffix(".c").exists()]
    every = patches.of(found.line)
    made = _Made(config, every if LONG else every[-1:], list(objects))
    text = sources.config_for(found.line).read_text() + _OPTIONS + (config.options or "")
    _build(made, "base", tree, built, text, made.base)
    for change in plan:
        name = change.step.path
        if made.failures:
            made.failures[name] = "an earlier one does not build"
            continue
        for path, data in change.contents.items():
            _put(tree, path, data)
        objects += [one for one in _objects(change) if one not in objects]
        if change.step in made.steps:
            _build(made, name, tree, built, text, objects)
    return made


def _objects(change: patches.Change) -> list[str]:
    """Return the objects of a step's sources. Those of other architectures are for reviewers."""
    sources = [one for one in change.contents if re.fullmatch(r"(?!arch/(?!x86/)).*\.c", one)]
    return [f"{one[:-2]}.o" for one in sources]


def _put(tree: Path, path: str, data: bytes) -> None:
    """Put a file into a tree of links: what is linked is never written to."""
    at = tree
    for part in Path(path).parts[:-1]:
        at /= part
        if at.is_symlink():
            linked = at.readlink()
            at.unlink()
            at.mkdir()
            for entry in linked.iterdir():
                (at / entry.name).symlink_to(entry)
        at.mkdir(exist_ok=True)
    (tree / path).unlink(missing_ok=True)
    (tree / path).write_bytes(data)


def _build(
    made: _Made, name: str, tree: Path, built: Path, config: str, objects: list[str]
) -> None:
    """Build with all warnings of W=1, and with sparse on each source that is compiled."""
    (built / ".config").write_text(config)
    output = ""
    jobs = f"-j{machine.cpus()}"
    checked = ["W=1", "C=1", _SPARSE]
    targets = made.config.wanted(objects)
    # Kbuild reaches this directory by two ways, which would race.
    alone = [one for one in targets if one.startswith("arch/x86/lib/")]
    others = [one for one in targets if one not in alone]
    for argv in (
        ["allnoconfig" if made.config.options is None else "olddefconfig"],
        [jobs, "prepare"],
        [jobs, *checked, *others],
        ["-j1", *checked, *alone],
    ):
        ended = subprocess.run(
            ["make", "-s", "-k", f"O={built}", *made.config.settings, *argv],
            cwd=tree,
            env={key: value for key, value in os.environ.items() if not key.startswith("MAKE")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output += ended.stdout
        if ended.returncode != 0:
            made.failures[name] = output
            break
    made.messages[name] = {
        (os.path.normpath(path).removeprefix(f"{tree}/"), text)
        for path, text in _MESSAGE.findall(output)
    }
    made.built[name] = {one for one in targets if (built / one).exists()}


def test_the_unpatched_tree_builds(made: _Made) -> None:
    assert made.failures.get("base") is None
    assert made.built["base"] == set(made.config.wanted(made.base))
    # Sparse has been at work: it names no option as gcc does.
    assert any("[-W" not in text for _, text in made.messages["base"])


def test_each_step_builds_with_its_new_objects(made: _Made) -> None:
    assert made.failures == {}
    for step in made.steps:
        new = {f"{path[:-2]}.o" for path in step.files if path.endswith(".c")}
        missing = set(made.config.wanted({*new, "mm/mm_init.o"})) - made.built[step.path]
        assert missing == set(), step.path


def test_no_step_adds_a_message_of_gcc_or_sparse(made: _Made) -> None:
    new = {step.path: made.messages[step.path] - made.messages["base"] for step in made.steps}
    assert {path: said for path, said in new.items() if said} == {}


# checkpatch knows SetPageOffline() as a name of the kernel, but not __SetPageOffline().
_PAGE_FLAG = re.compile(r"^CHECK:CAMELCASE: .*<__(?:Set|Clear)Page\w+>$", re.MULTILINE)


def _checkpatch(found: sources.Source, *what: str | Path) -> str:
    """Return what the kernel's checkpatch says of a mail, or of a file behind -f."""
    argv = ["perl", "scripts/checkpatch.pl", "--strict", "--show-types", "--no-summary", *what]
    ended = subprocess.run(argv, cwd=found.tree, capture_output=True, text=True)
    output = _PAGE_FLAG.sub("", ended.stdout)
    said = re.search(r"^(?:ERROR|WARNING|CHECK):[A-Z_]+: ", output, re.MULTILINE)
    return (output if said else "") + ended.stderr


def test_checkpatch_has_nothing_to_say(
    found: sources.Source, mails: list[tuple[patches.Step, Path]]
) -> None:
    listed = (found.tree / "MAINTAINERS").read_text()
    folders = tuple(re.findall(r"^F:\t(\S+/)$", listed, re.MULTILINE))
    said = {}
    for step, mail in mails:
        # MAINTAINERS may have new files by their folder: an architecture's, or 6.12's mm/.
        covered = step.files and all(path.startswith(folders) for path in step.files)
        ignored = ["--ignore", "FILE_PATH_CHANGES"] if covered else []
        said[step.path] = _checkpatch(found, *ignored, mail)
    assert {path: text for path, text in said.items() if text} == {}


@pytest.mark.usefixtures("in_user_cache")
def test_each_topic_applies_to_the_next_release_as_it_is_expected() -> None:
    found = sources.get(sources.EXPECTED)
    for topic in patches.topics():
        chosen = patches.topics([topic.name])
        changes = patches.plan(found.tree, found.line, chosen)
        assert [change.step for change in changes] == patches.of(found.line, chosen)
        assert changes[0].step.topic == "mainline"


@pytest.mark.usefixtures("in_user_cache")
def test_one_command_makes_the_next_release_as_it_is_expected(tmp_path: Path) -> None:
    found = sources.get(sources.EXPECTED)
    changes = patches.plan(found.tree, found.line)
    edited = {path for change in changes for path in change.contents}
    tree = tmp_path / "linux"
    for path in ("Makefile", "Kconfig", *edited):
        if (found.tree / path).exists():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found.tree / path, tree / path)
    ended = pagemint("series", "--kernel", sources.EXPECTED, "--tree", tree, **WHO)
    assert ended.returncode == 0, ended.stderr
    subjects = git.git(tree, "log", "--reverse", "--format=%s", "base..HEAD").splitlines()
    assert subjects == [change.step.message.partition("\n")[0] for change in changes]
    names = git.git(tree, "branch", "--format=%(refname:short)").split()
    topics = {change.step.topic for change in changes}
    assert set(names) == {"base", *(f"pagemint-{found.line}-{topic}" for topic in topics)}
    # This base has these already.
    others = {step.path for step in patches.of(sources.EXPECTED_FROM)}
    left_out = others - {change.step.path for change in changes}
    assert {path for path in left_out if not path.startswith("published/")} == {
        *("fixes/01-pgmap", "fixes/02-zone-contiguous", "fixes/08-add-pages")
    }


@pytest.fixture(scope="module")
def patched() -> tuple[Path, Path]:
    """The newest line's tree, without the series and with it, in the user's own cache."""
    base, made = trees.pair(sources.get(WHOLE[-1]))
    return base.path, made.path


def _coccinelle(tree: Path, files: list[str]) -> set[tuple[str, str]]:
    """Return what the kernel's own scripts of Coccinelle say of files, as (file, text)."""

    def ask(script: Path) -> set[tuple[str, str]]:
        text = script.read_text()
        # The compiler for those would be as large as all else that the tests need.
        if "virtual report" not in text or "ocaml" in text:
            return set()
        options = " ".join(re.findall(r"^//+ *Options: *(.*)$", text, re.MULTILINE)).split()
        argv = ["spatch", "-D", "report", "--very-quiet", "--no-show-diff", *options]
        argv += ["-I", "include", "-I", "arch/x86/include", "--cocci-file", str(script), *files]
        ended = subprocess.run(argv, cwd=tree, capture_output=True, text=True)
        assert ended.returncode == 0, f"{script.name}: {ended.stderr}"
        found = re.findall(r"^(\S+?):\d+(?::\d+|[-:\d]*): (.*)$", ended.stdout, re.MULTILINE)
        return {(os.path.normpath(path), said) for path, said in found}

    scripts = sorted((tree / "scripts/coccinelle").rglob("*.cocci"))
    with ThreadPoolExecutor(machine.cpus()) as pool:
        return set().union(*pool.map(ask, scripts))


@pytest.mark.skipif(not LONG, reason="takes some minutes")
def test_coccinelle_has_nothing_new_to_say(patched: tuple[Path, Path]) -> None:
    base, tree = patched
    every = patches.of(WHOLE[-1])
    diffs = [step.diff.read_text() for step in every if step.diff]
    edited = {one for diff in diffs for one in fake_tree.edited(diff)}
    new = [one for step in every for one in step.files if one.endswith((".c", ".h"))]
    said = _coccinelle(tree, [*new, *(one for one in edited if one.endswith(".c"))])
    known = sorted({file for file, _ in said} & edited)
    assert said - (_coccinelle(base, known) if known else set()) == set()


@pytest.mark.parametrize("file", stock.sources(), ids=lambda file: file.name)
def test_checkpatch_has_nothing_to_say_of_the_module(found: sources.Source, file: Path) -> None:
    assert _checkpatch(found, "-f", file) == ""
