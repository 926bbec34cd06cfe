# SPDX-License-Identifier: GPL-2.0-only
"""The mails in kernel/series/, the branches that are made of them, and mails made of those."""

import itertools
import os
import re
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path

import fake_tree
import pytest
from kernel_lines import LINES
from stand_ins import WHO, Patch, Refused, contents, pagemint, program
from stand_ins import git as _git

from pagemint import __version__, cli
from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.send import branches
from pagemint.trees import patches, sources, trees

_ROOT = Path(__file__).parents[2]
_SERIES = _ROOT / "kernel/series"
_STACK = [topic.name for topic in patches.topics()]
_EVERY = [topic.name for topic in patches.every_topic()]
_LINE = fake_tree.LINE
_BRANCH = f"pagemint-{_LINE}-{_STACK[-1]}"


@pytest.fixture(autouse=True)
def git_home(tmp_path: Path, monkeypatch: Patch) -> Path:
    """Makes git know a certain identity, and nothing of the settings of machine and clone."""
    for name in [name for name in os.environ if name.startswith("GIT_")] + ["EMAIL"]:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    name, email = WHO["GIT_AUTHOR_NAME"], WHO["GIT_AUTHOR_EMAIL"]
    (home / ".gitconfig").write_text(f"[user]\n\tname = {name}\n\temail = {email}\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    # pagemint asks git for the identity in the current directory.
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.chdir(home)
    return home


def _real(line: str, tree: Path, user_cache: Path) -> Path:
    """Make a directory of the files of a real kernel that the patches touch, and return it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(user_cache.parent))
        source = sources.get(line).tree
    mails = patches.of(line, patches.every_topic())
    touched = {edit.path for mail in mails for edit in mail.edits}
    for path in {"Makefile", "Kconfig", "mm/mm_init.c", *touched}:
        if (source / path).exists():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / path, tree / path)
    return tree


def _checkout(tree: Path) -> Path:
    """Make a directory a git checkout with one commit on the branch main, and return it."""
    _git(tree, "init", "-q", "-b", "main")
    _git(tree, "add", "-A", "--force")
    _git(tree, "commit", "-q", "-m", "the tree")
    return tree


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A kernel tree that is not a git checkout."""
    return fake_tree.make(tmp_path / "linux")


@pytest.fixture
def checkout(plain: Path) -> Path:
    """A kernel tree that is a git checkout."""
    return _checkout(plain)


def _state(tree: Path) -> dict[str, bytes]:
    """Return every file in a tree, and what git has checked out and named in it."""
    state = contents(tree)
    if (tree / ".git").exists():
        asked = (
            ["for-each-ref"],
            ["symbolic-ref", "HEAD"],
            ["status", "--porcelain"],
            ["config", "-l"],
        )
        state |= {f".git {argv}": _git(tree, *argv).encode() for argv in asked}
    return state


# The mails.


@pytest.mark.parametrize("line", [*patches.lines(), sources.EXPECTED])
def test_a_line_lists_its_mails_in_the_order_of_topics(line: str) -> None:
    listed = [mail.topic for mail in patches.of(line)]
    order = ["mainline", *_EVERY]
    assert listed == sorted(listed, key=order.index)
    of_line = {mail.mail.resolve() for mail in patches.of(line)}
    there = {mail.resolve() for mail in (_SERIES / line).glob("*/*.patch")}
    assert {mail.parent.name for mail in there - of_line} <= patches.beside()
    for mail in sorted(there):
        head, _, _ = mail.read_text().partition("\n\n")
        (number,) = re.findall(r"^Subject: \[PATCH(?: (\d+)/\d+)?\] ", head, re.MULTILINE)
        assert mail.name[:4] == (number or "1").zfill(4)
        assert (mail.parent / "cover.txt").exists() or line == sources.EXPECTED


def test_the_expected_next_release_takes_all_other_mails() -> None:
    """A mail with a new name has to get into that list, too."""
    left_out = {"fixes/0001", "fixes/0002", "fixes/0008"}
    wanted = [mail.name[:-6] for mail in patches.of(sources.EXPECTED_FROM)]
    wanted = [name for name in wanted if name[: name.index("/") + 5] not in left_out]
    there = patches.of(sources.EXPECTED)
    assert [mail.name[:-6] for mail in there if mail.topic != "mainline"] == wanted


def test_topics_come_with_those_they_need_in_order() -> None:
    assert _STACK[:2] == ["fixes", "device"] and patches.beside() == {"published"}
    assert [topic.name for topic in patches.topics(["threads"])] == ["fixes", "device", "threads"]
    assert {path.name for path in (_SERIES / _LINE).iterdir()} == {"series", *_EVERY}


@pytest.mark.parametrize("line", LINES)
def test_each_topic_applies_with_those_it_needs_and_in_any_company(
    tmp_path: Path, line: str, user_cache: Path
) -> None:
    tree = _real(line, tmp_path / "linux", user_cache)
    pairs = [*itertools.combinations_with_replacement(_STACK, 2), *((name,) for name in _EVERY)]
    for chosen in {tuple(patches.topics(pair)) for pair in pairs}:
        patches.apply(tree, line, chosen, check=True)


def test_the_finished_files_are_those_that_the_newest_series_leaves(
    tmp_path: Path, user_cache: Path
) -> None:
    tree = _real(_LINE, tmp_path / "linux", user_cache)
    before = set(contents(tree))
    patches.apply(tree, _LINE)
    left = {path: data for path, data in contents(tree).items() if path not in before}
    kept = {path: data for path, data in contents(files.KERNEL).items() if path[:7] != "series/"}
    assert left == kept


def test_the_commands_of_the_readme_apply_them_with_git_and_a_shell(
    tmp_path: Path, user_cache: Path
) -> None:
    text = (_ROOT / "README.md").read_text()
    (pasted,) = re.findall(r"^    P=.*\n(?:    .*\n)+", text, re.MULTILINE)
    where, *commands = pasted.splitlines()
    assert len(commands) == 2
    heads: list[str] = []
    (tmp_path / "bin").mkdir()
    for name in ("git", "sed", "sh"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
    for command in commands:
        tree = _checkout(_real(_LINE, tmp_path / f"tree{len(heads)}", user_cache))
        script = f"{where.replace('~/pagemint', str(_ROOT))}\n{command.partition('#')[0]}"
        env = os.environ | {"PATH": str(tmp_path / "bin")}
        subprocess.run(["sh", "-ec", script], cwd=tree, env=env, check=True, capture_output=True)
        assert _git(tree, "log", "-1", "--format=%(trailers:key=Signed-off-by)").strip()
        heads.append(_git(tree, "rev-parse", "HEAD^{tree}"))
    tree = _checkout(_real(_LINE, tmp_path / "branches", user_cache))
    branches.commit(tree)
    for topic, head in zip((_STACK[-1], "online"), heads, strict=True):
        assert _git(tree, "rev-parse", f"pagemint-{_LINE}-{topic}^{{tree}}") == head


def test_the_archives_have_the_mails_and_the_same_commit_makes_the_same(tmp_path: Path) -> None:
    clone = tmp_path / "a checkout"
    _git(tmp_path, "clone", "-q", "--no-local", "--depth", "1", f"file://{_ROOT}", clone)
    made = []
    for _ in range(2):
        subprocess.run(["make", "-s", "patches"], cwd=clone, check=True, capture_output=True)
        made.append(contents(clone / "out/patches"))
        shutil.rmtree(clone / "out")
    assert made[0] == made[1]
    (tmp_path / "archive").write_bytes(made[0][f"pagemint-{__version__}-linux-{_LINE}.tar.gz"])
    with tarfile.open(tmp_path / "archive") as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    for name in _STACK:
        assert list((tmp_path / "unpacked").glob(f"*/{_LINE}/{name}/*.patch")), name


# Branches.


def test_a_branch_has_a_commit_for_each_mail_and_the_cover(
    tmp_path: Path, user_cache: Path
) -> None:
    checkout = _checkout(_real(_LINE, tmp_path / "linux", user_cache))
    (checkout / "notes").write_text("mine")
    made = branches.commit(checkout)
    assert (
        set(made) == {f"pagemint-{_LINE}-{name}" for name in ("base", *_EVERY)}
        and made[-1] == _BRANCH
    )
    assert _git(checkout, "symbolic-ref", "--short", "HEAD").strip() == _BRANCH
    assert _git(checkout, "status", "--porcelain") == "?? notes\n"
    for mails in patches.by_topic(_LINE, patches.every_topic()).values():
        topic = mails[0].topic
        branch = f"pagemint-{_LINE}-{topic}"
        under = dict(zip(_STACK[1:], _STACK, strict=False)).get(topic, "")
        under = "device" if topic in patches.beside() else under
        since = f"pagemint-{_LINE}-{under}" if under else "main"
        subjects = _git(checkout, "log", "--reverse", "--format=%s", f"{since}..{branch}")
        said = [re.sub(r"\n ", " ", mail.mail.read_text()) for mail in mails]
        assert subjects.splitlines() == [
            re.findall(r"^Subject: \[.*?\] (.*)", s, re.M)[0] for s in said
        ]
        settings = [f"branch.{branch}.{key}" for key in ("description", "b4-prep-cover-strategy")]
        cover, strategy = (_git(checkout, "config", setting) for setting in settings)
        assert (cover, strategy) == (patches.cover(_LINE, topic) + "\n", "branch-description\n")


def test_a_plain_directory_becomes_a_checkout_of_its_own(tmp_path: Path, plain: Path) -> None:
    # As in Debian's source packages, which ignore all of the kernel.
    (plain / ".gitignore").write_text("/*\n!/debian/\n")
    _git(tmp_path, "init", "-q", "-b", "outer")
    before = _state(plain)
    branches.commit(plain, patches.topics(["device"]))
    assert _git(plain, "status", "--porcelain") == "" == _git(tmp_path, "for-each-ref")
    _git(plain, "checkout", "-q", f"pagemint-{_LINE}-base")
    assert contents(plain) == before


def test_a_tree_is_made_of_the_source_of_a_line(tmp_path: Path, monkeypatch: Patch) -> None:
    source = sources.Source("6.12.1", "6.12", "6.12.1-1", fake_tree.make(tmp_path / "old", "6.12"))
    monkeypatch.setattr(sources, "get", {"6.12": source}.__getitem__)
    assert cli.main(["series", "--kernel", "6.12", "--topic", "copies"]) == 0
    assert _git(Path("linux-6.12"), "branch", "--show-current").strip() == "pagemint-6.12-copies"
    assert not (source.tree / ".git").exists()


_SETTINGS = {
    "apply.whitespace": "error-all",
    "am.threeWay": "true",
    "commit.gpgSign": "true",
    "core.autocrlf": "true",
    "diff.noprefix": "true",
    "format.attach": "true",
    "format.subjectPrefix": "RFC",
    "diff.context": "0",
    "core.hooksPath": "HOME",
}
_VARIABLES = {"GIT_DIFF_OPTS": "-u0", "GIT_DIR": "/nowhere", "GIT_OBJECT_DIRECTORY": "/nowhere"}


def _refresh(root: Path, *argv: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([root / "scripts/refresh", *argv], capture_output=True, text=True)


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    """A copy of the parts of this repository that scripts/refresh needs."""
    shutil.copytree(_ROOT / "kernel", tmp_path / "frozen/kernel")
    (tmp_path / "frozen/scripts").mkdir()
    shutil.copy2(_ROOT / "scripts/refresh", tmp_path / "frozen/scripts")
    return tmp_path / "frozen"


@pytest.mark.parametrize("line", LINES)
def test_branches_become_the_same_mails_whatever_the_user_has_set(
    tmp_path: Path, git_home: Path, monkeypatch: Patch, line: str, frozen: Path, user_cache: Path
) -> None:
    tree = _checkout(_real(line, tmp_path / "linux", user_cache))
    for name in ("post-checkout", "applypatch-msg", "pre-applypatch"):
        program(git_home / name, "exit 1")
    with (git_home / ".gitconfig").open("a") as config:
        for key, value in _SETTINGS.items():
            section, _, last = key.rpartition(".")
            config.write(f"[{section}]\n\t{last} = {value.replace('HOME', str(git_home))}\n")
    for name, value in _VARIABLES.items():
        monkeypatch.setenv(name, value)
    branches.commit(tree, line=line)
    for name in _VARIABLES:
        monkeypatch.delenv(name)
    ended = _refresh(frozen, tree, line)
    assert ended.returncode == 0, ended.stderr
    assert contents(frozen / "kernel") == contents(_ROOT / "kernel")


def test_a_change_of_one_line_ends_in_the_right_mail(
    tmp_path: Path, frozen: Path, user_cache: Path
) -> None:
    tree = _checkout(_real(_LINE, tmp_path / "linux", user_cache))
    branches.commit(tree)
    file = tree / "mm/memmap_template.c"
    file.write_text(file.read_text().replace("nearly identical", "almost identical", 1))
    added = f"pagemint-{_LINE}-fixes..pagemint-{_LINE}-device"
    (commit,) = _git(tree, "log", "--diff-filter=A", "--format=%h", added, "--", file).split()
    _git(tree, "commit", "-q", "-s", "--fixup", commit, file)
    start = f"pagemint-{_LINE}-base"
    _git(tree, "tag", "before", f"pagemint-{_LINE}-device")
    _git(tree, "rebase", "-q", "-i", "--autosquash", "--update-refs", start, GIT_EDITOR="true")
    # The topic beside the stack still stands on the old commits.
    ended = _refresh(frozen, tree)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"pagemint-{_LINE}-published does not stand on pagemint-{_LINE}-device" in ended.stderr
    device, published = (f"pagemint-{_LINE}-{name}" for name in ("device", "published"))
    _git(tree, "rebase", "-q", "--onto", device, "before", published)
    _git(tree, "checkout", "-q", _BRANCH)
    assert _refresh(frozen, tree).returncode == 0
    old, new = contents(_ROOT / "kernel"), contents(frozen / "kernel")
    index = re.compile(rb"^index .*$", re.MULTILINE)
    changed = {name for name in old if index.sub(b"", old[name]) != index.sub(b"", new[name])}
    (mail,) = (mail for mail in old if "device/0002" in mail and _LINE in mail.split("/"))
    assert changed == {"mm/memmap_template.c", mail}
    assert b"+ * almost identical" in new[mail] or b"almost identical" in new[mail]


# A tree that cannot have the branches.


_UNCOMMITTED = "has uncommitted changes; commit or stash them first"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo mine >mm/Makefile", _UNCOMMITTED),
        ("rm mm/Makefile", _UNCOMMITTED),
        (f"git branch {_BRANCH}", f"rename it: git -C .* branch -m {_BRANCH} old-{_BRANCH}"),
        (
            "git rm -q lib/tests/Makefile; git commit -qm gone",
            "device: lib/tests/Makefile: No such",
        ),
        ("mkdir -p mm; touch mm/memmap_template.c", "mm/memmap_template.c: already exists"),
        ("touch .git/index.lock", "index.lock"),
    ],
)
def test_a_tree_that_cannot_have_the_branches_is_kept(
    checkout: Path, command: str, message: str
) -> None:
    subprocess.run(["sh", "-ec", command], cwd=checkout, check=True)
    before = _state(checkout)
    with pytest.raises(Failure) as caught:
        branches.commit(checkout, patches.topics())
    assert re.search(message, str(caught.value))
    assert _state(checkout) == before


@pytest.mark.parametrize("line", LINES)
def test_topics_that_do_not_apply_are_named_and_the_others_too(tmp_path: Path, line: str) -> None:
    tree = fake_tree.make(tmp_path / "linux", line)
    spoilt = next(need for need in fake_tree.needed(line) if need.topic == "device")
    fake_tree.spoil(tree, spoilt)
    with pytest.raises(Failure) as caught:
        trees.pair(sources.from_tree(tree))
    assert f"device: {spoilt.path}: patch does not apply; online: needs device" in str(caught.value)
    assert re.search("these apply: fixes, copies", caught.value.remedy)
    assert branches.commit(tree, patches.topics(["fixes"]))[1:] == [f"pagemint-{line}-fixes"]


def test_a_tree_of_another_version_takes_patches_of_the_nearest_line(plain: Path) -> None:
    lines = ["6.1", "6.12", "6.17", "6.19", "7.1", "7.3", "7.10"]
    assert [patches.nearest_line(line)[0] for line in lines] == ["6", "6", "6", "7", "7", "7", "7"]
    makefile = plain / "Makefile"
    makefile.write_text(makefile.read_text().replace("PATCHLEVEL = 3", "PATCHLEVEL = 4"))
    assert [tree.line for tree in trees.pair(sources.from_tree(plain))] == [_LINE] * 2


def test_a_wrong_line_or_topic_is_one_line(plain: Path, refused: Refused) -> None:
    before = _state(plain)
    for words, message in (
        (("--kernel", "2.4"), "no patches for Linux '2.4'; choose one of: 6.12, 7.3, 7.4-expected"),
        (("--kernel", "6.12", "--topic", "shared"), "no patches of shared for Linux 6.12"),
        (("--topic", "nosuch"), "there is no topic 'nosuch'"),
        (("--output", "mails"), "take those in kernel/series/"),
    ):
        assert message in refused("series", *words, "--tree", plain)
    assert _state(plain) == before


def test_no_identity_is_one_line(plain: Path, tmp_path: Path) -> None:
    before = _state(plain)
    setting = ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0")
    config = dict(zip(setting, ("1", "user.useConfigOnly", "true"), strict=True))
    ended = pagemint("series", "--tree", plain, HOME="/", GIT_CONFIG_GLOBAL=os.devnull, **config)
    assert ended.stderr.endswith("set user.name and user.email with git config\n")
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert _state(plain) == before


@pytest.mark.parametrize("kind", ["plain", "checkout"])
@pytest.mark.parametrize(
    "when", ["apply", "am", "branch -q", "config --replace-all", "checkout -q"]
)
@pytest.mark.usefixtures("default_signals")
def test_an_interruption_leaves_the_tree_as_it_was(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, when: str
) -> None:
    tree: Path = request.getfixturevalue(kind)
    before = _state(tree)
    (tmp_path / "bin").mkdir()
    program(
        tmp_path / "bin/git",
        f'case "$* " in "{when} "*) if mkdir {tmp_path}/reached 2>/dev/null\n'
        f"\tthen kill -{signal.SIGINT:d} $PPID; sleep 0.2; fi; esac\n"
        f'exec {shutil.which("git")} "$@"',
    )
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    ended = pagemint("series", "--tree", tree, "--topic", "device", PATH=path)
    assert (tmp_path / "reached").exists() and ended.returncode == 130
    assert ended.stderr.endswith("pagemint: interrupted; run again to continue\n")
    assert _state(tree) == before


def test_a_patched_tree_is_made_anew_only_for_what_lands_in_it(
    plain: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    shutil.copytree(files.KERNEL, tmp_path / "kernel")
    monkeypatch.setattr(files, "KERNEL", tmp_path / "kernel")
    before = contents(plain)
    source = sources.from_tree(plain)
    first = trees.pair(source)[1]
    mail = patches.of(_LINE)[-1].mail
    mail.write_text(mail.read_text().replace("\n\n", "\n\nMore words.\n\n", 1))
    (mail.parent / "cover.txt").write_text("other: words\n")
    assert trees.pair(source)[1] == first
    mail.write_text(re.sub(r"^\+(.*);$", r"+\1 ;", mail.read_text(), count=1, flags=re.M))
    assert trees.pair(source)[1].key != first.key
    assert contents(plain) == before
