# SPDX-License-Identifier: GPL-2.0-only
import itertools
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import fake_tree
import pytest
from kernel_lines import LINES
from stand_ins import WHO, Patch, Refused, contents, pagemint, program
from stand_ins import git as _git

from pagemint.base import files, git
from pagemint.base.errors import Failure
from pagemint.send import branches
from pagemint.trees import patches, sources, trees

_NAME, _EMAIL = WHO["GIT_AUTHOR_NAME"], WHO["GIT_AUTHOR_EMAIL"]
_TOPICS = [topic.name for topic in patches.topics()]
_BRANCHES = [f"pagemint-{fake_tree.LINE}-{topic}" for topic in _TOPICS]
_BRANCH = _BRANCHES[-1]
_STEPS = patches.of(fake_tree.LINE)
_NEW = {path for step in _STEPS for path in step.files}
_FEW = patches.topics(["device"])
"""Topics for tests that take long, and to which topics are alike."""


@pytest.fixture(autouse=True)
def git_home(tmp_path: Path, monkeypatch: Patch) -> Path:
    """Makes git know a certain identity, and nothing of the settings of machine and clone."""
    for name in [name for name in os.environ if name.startswith("GIT_")] + ["EMAIL"]:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f"[user]\n\tname = {_NAME}\n\temail = {_EMAIL}\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    # pagemint asks git for the identity in the current directory.
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A kernel tree that is not a git checkout."""
    return fake_tree.make(tmp_path / "linux")


@pytest.fixture
def checkout(plain: Path) -> Path:
    """A kernel tree with two commits on the branch main, the first without any file."""
    _git(plain, "init", "-q", "-b", "main")
    _git(plain, "commit", "-q", "--allow-empty", "-m", "before")
    _git(plain, "add", "-A")
    _git(plain, "commit", "-q", "-m", "the tree")
    return plain


def _state(tree: Path) -> dict[str, bytes]:
    """Return every file in a tree, and what git has checked out and named in it."""
    files = contents(tree)
    if (tree / ".git").exists():
        for name, argv in (("refs", ["for-each-ref"]), ("head", ["symbolic-ref", "HEAD"])):
            files[f".git: {name}"] = _git(tree, *argv).encode()
        files[".git: status"] = _git(tree, "status", "--porcelain").encode()
    return files


def _balance(diff: str) -> Counter[str]:
    """Return how often a diff adds each line, less how often it removes it."""
    balance: Counter[str] = Counter()
    for line in diff.splitlines():
        if line[:1] in ("+", "-") and line[:3] not in ("+++", "---"):
            balance[line[1:]] += 1 if line[0] == "+" else -1
    return balance


def _commits(tree: Path, base: str, branch: str = _BRANCH) -> list[str]:
    return _git(tree, "rev-list", "--reverse", f"{base}..{branch}").split()


# The contents of kernel/.


def test_topics_come_with_those_they_need_in_order() -> None:
    assert _TOPICS[:2] == ["fixes", "device"]
    assert [topic.name for topic in patches.topics(["threads"])] == ["fixes", "device", "threads"]
    assert [topic.name for topic in patches.topics(["copies", "fixes"])] == ["fixes", "copies"]
    folders = {path.name for path in (files.KERNEL / "series").iterdir() if path.is_dir()}
    assert folders == {*_TOPICS, "mainline"}


def test_each_new_file_belongs_to_exactly_one_step() -> None:
    there = {
        str(path.relative_to(files.KERNEL))
        for path in files.KERNEL.rglob("*")
        if path.is_file() and "series" not in path.relative_to(files.KERNEL).parts
    }
    assert Counter(path for step in _STEPS for path in step.files) == Counter(there)


def test_a_step_is_left_out_of_a_line_only_where_the_line_needs_no_such_fix() -> None:
    left_out = {
        (line, step.path)
        for line in patches.lines()
        for step in _STEPS
        if step.path not in {applied.path for applied in patches.of(line)}
    }
    new = ("shared", "published", "background", "devdax", "devdax-shared")
    assert left_out == {
        # It has page->pgmap, so it looks up no folio.
        ("6.12", "fixes/01-pgmap"),
        # Device folios had one page, and there was no fsdev.
        ("6.12", "fixes/03-dax-head-bit"),
        ("6.12", "fixes/04-device-folio-free"),
        ("6.12", "fixes/05-device-page-init"),
        ("6.12", "fixes/06-fsdev-walks"),
        # Callers of the page allocator could not pass ALLOC_ flags.
        ("6.12", "device/05-vmemmap-zeroing"),
        ("6.12", "online/06-added"),
        # vmemmap_populate_hugepages() is not told whose memmap it populates; others are new.
        *(("6.12", step.path) for step in _STEPS if step.topic in new),
    }


@pytest.mark.parametrize(
    "step",
    [step for line in patches.lines() for step in patches.of(line) if step.diff],
    ids=lambda step: f"{step.path}:{step.diff.stem}",
)
def test_a_diff_edits_existing_files_only(step: patches.Step) -> None:
    assert step.diff
    text = step.diff.read_text()
    files = fake_tree.edited(text)
    assert files
    assert len(set(files)) == len(files)
    assert not set(step.files) & set(files)
    assert re.findall(r"^--- a/(\S+)$", text, re.MULTILINE) == files
    assert not re.search(r"^(new|deleted|old|rename|copy|GIT) |^(---|\+\+\+) /dev", text, re.M)


def test_the_nearest_line_is_the_fewest_releases_away(tmp_path: Path, monkeypatch: Patch) -> None:
    (tmp_path / "series/one/01-first").mkdir(parents=True)
    for line in ("7.3", "6.12", "6.9"):
        (tmp_path / f"series/one/01-first/{line}.diff").touch()
    monkeypatch.setattr(files, "KERNEL", tmp_path)
    assert patches.lines() == ["6.9", "6.12", "7.3"]
    lines = ["6.1", "6.9", "6.10", "6.11", "6.17", "6.18", "7.1", "7.3", "7.10"]
    assert [patches.nearest_line(line) for line in lines] == (
        ["6.9", "6.9", "6.9", "6.12", "6.12", "7.3", "7.3", "7.3", "7.3"]
    )


def test_a_tree_of_another_version_takes_edits_and_configuration_of_the_nearest_line(
    plain: Path,
) -> None:
    makefile = plain / "Makefile"
    makefile.write_text(makefile.read_text().replace("PATCHLEVEL = 3", "PATCHLEVEL = 4"))
    source = sources.from_tree(plain)
    assert source.line == "7.4"
    assert [tree.line for tree in trees.pair(source)] == [fake_tree.LINE] * 2
    assert branches.commit(plain) == _BRANCHES


# A branch.


def test_the_branch_has_one_commit_a_step_in_order(checkout: Path) -> None:
    main = _git(checkout, "rev-parse", "main").strip()
    assert branches.commit(checkout) == _BRANCHES
    commits = _commits(checkout, main)
    assert len(commits) == len(_STEPS)
    for commit, step in zip(commits, _STEPS, strict=True):
        who = f"{_NAME} <{_EMAIL}>"
        shown = _git(checkout, "show", "-s", "--format=%an <%ae>%n%cn <%ce>%n%B", commit)
        sign_off = f"Signed-off-by: {who}\n"
        assert shown.rstrip("\n") + "\n" == f"{who}\n{who}\n{step.message}\n{sign_off}"
        changed = _git(checkout, "diff-tree", "-r", "--no-commit-id", "--name-only", commit)
        diff = step.diff.read_text() if step.diff else ""
        assert sorted(changed.split()) == sorted([*fake_tree.edited(diff), *step.files])
        made = _git(checkout, "diff", "--diff-filter=M", f"{commit}^", commit)
        # git may pair repeated lines in another way.
        assert _balance(made) == _balance(diff), step.path
        modes = _git(checkout, "ls-tree", commit, *changed.split())
        assert {line.split()[0] for line in modes.splitlines()} == {"100644"}
    assert _git(checkout, "rev-parse", f"{commits[0]}^").strip() == main
    assert _git(checkout, "rev-parse", "main").strip() == main


def test_the_branch_is_checked_out_and_stands_on_those_of_other_topics(checkout: Path) -> None:
    (checkout / "notes").write_text("mine")
    branches.commit(checkout)
    assert _git(checkout, "symbolic-ref", "HEAD").strip() == f"refs/heads/{_BRANCH}"
    assert _git(checkout, "status", "--porcelain") == "?? notes\n"
    assert (checkout / "notes").read_text() == "mine"
    edited = {
        path for step in _STEPS if step.diff for path in fake_tree.edited(step.diff.read_text())
    }
    for path in _NEW - edited:
        assert (checkout / path).read_bytes() == (files.KERNEL / path).read_bytes(), path
    before = "main"
    for topic, branch in zip(_TOPICS, _BRANCHES, strict=True):
        names = [step.path for step in _STEPS if step.topic == topic]
        assert len(_commits(checkout, before, branch)) == len(names)
        before = branch


@pytest.mark.parametrize("line", patches.lines())
def test_topics_apply_alone_and_in_any_company(tmp_path: Path, line: str) -> None:
    tree = fake_tree.make(tmp_path / "linux", line)
    pairs = itertools.combinations_with_replacement(_TOPICS, 2)
    for chosen in {tuple(patches.topics(pair)) for pair in pairs}:
        patches.plan(tree, line, chosen)


def test_the_cover_letters_are_where_git_and_b4_look_for_them(checkout: Path) -> None:
    # An earlier branch of that name may have left this.
    _git(checkout, "config", f"branch.{_BRANCH}.description", "old")
    branches.commit(checkout)
    for topic, branch in zip(_TOPICS, _BRANCHES, strict=True):
        settings = [f"branch.{branch}.{key}" for key in ("description", "b4-prep-cover-strategy")]
        cover, strategy = (_git(checkout, "config", "--get-all", setting) for setting in settings)
        assert cover == patches.cover(topic) + "\n"
        assert strategy == "branch-description\n"


def test_a_plain_directory_becomes_a_checkout(plain: Path) -> None:
    # As in Debian's source packages, which ignore all of the kernel.
    (plain / ".gitignore").write_text("/*\n!/debian/\n")
    before = _state(plain)
    assert branches.commit(plain) == _BRANCHES
    assert _git(plain, "rev-list", "--count", "base").strip() == "1"
    assert len(_commits(plain, "base")) == len(_STEPS)
    assert _git(plain, "status", "--porcelain") == ""
    _git(plain, "checkout", "-q", "base")
    assert contents(plain) == before


def test_a_plain_directory_inside_a_checkout_becomes_one_of_its_own(
    tmp_path: Path, plain: Path
) -> None:
    _git(tmp_path, "init", "-q", "-b", "outer")
    branches.commit(plain)
    assert _git(plain, "rev-parse", "--show-toplevel").strip() == str(plain)
    assert _git(tmp_path, "for-each-ref") == ""


@pytest.mark.parametrize("kind", ["plain", "checkout"])
def test_a_hook_of_another_repository_may_call(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: Patch, kind: str
) -> None:
    tree: Path = request.getfixturevalue(kind)
    other = tmp_path / "other"
    other.mkdir()
    _git(other, "init", "-q", "-b", "outer")
    with monkeypatch.context() as hook:
        hook.setenv("GIT_DIR", str(other / ".git"))
        hook.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
        branches.commit(tree)
    assert _git(other, "for-each-ref") == ""
    assert _BRANCHES[-1] in _git(tree, "branch", "--show-current")


def _outcome(tree: Path, output: Path) -> tuple[dict[str, str], dict[str, bytes], str]:
    """Return the mails of a tree, its files once it has the branches, and the last commit."""
    written = branches.mails(sources.from_tree(tree), output, _FEW)
    branches.commit(tree, _FEW)
    mails = {str(mail.relative_to(output)): mail.read_text() for mail in written}
    return mails, contents(tree), git.git(tree, "rev-parse", "HEAD")


_FIXED = WHO | {f"GIT_{role}_DATE": "2026-11-25T12:00:00Z" for role in ("AUTHOR", "COMMITTER")}
_HOOK = "exit 1"


_SETTINGS = {
    "format.attach": "true",
    "format.subjectPrefix": "RFC",
    "diff.context": "0",
    "diff.noprefix": "true",
    "apply.whitespace": "error-all",
    "commit.gpgSign": "true",
    "core.abbrev": "40",
    "core.autocrlf": "true",
    "i18n.commitEncoding": "utf-16",
    "init.defaultObjectFormat": "sha256",
    "core.hooksPath": "HOME/hooks",
    "init.templateDir": "HOME/template",
}
_HOOKS = ("pre-commit", "prepare-commit-msg", "post-checkout", "reference-transaction")
_FILES = {
    ".config/git/attributes": "* text eol=crlf\n*.c -diff\n",
    "template/info/attributes": "* text eol=crlf\n",
    **{f"hooks/{name}": _HOOK for name in _HOOKS},
}
_VARIABLES = {
    "GIT_CONFIG_PARAMETERS": "'core.autocrlf'='true'",
    "GIT_DEFAULT_HASH": "sha256",
    "GIT_DIFF_OPTS": "-u0",
    "GIT_EXTERNAL_DIFF": "false",
    "GIT_GLOB_PATHSPECS": "nonsense",
    "GIT_OBJECT_DIRECTORY": "/nowhere",
    "GIT_TEMPLATE_DIR": "HOME/template",
}


def test_settings_of_the_user_do_not_matter(
    plain: Path, tmp_path: Path, git_home: Path, monkeypatch: Patch
) -> None:
    for name, value in _FIXED.items():
        monkeypatch.setenv(name, value)
    without = _outcome(fake_tree.make(tmp_path / "other"), tmp_path / "without")
    for name, text in _FILES.items():
        (git_home / name).parent.mkdir(parents=True, exist_ok=True)
        program(git_home / name, text) if text == _HOOK else (git_home / name).write_text(text)
    for name, value in _VARIABLES.items():
        monkeypatch.setenv(name, value.replace("HOME", str(git_home)))
    with (git_home / ".gitconfig").open("a") as config:
        for key, value in _SETTINGS.items():
            section, _, last = key.rpartition(".")
            config.write(f"[{section}]\n\t{last} = {value.replace('HOME', str(git_home))}\n")
    assert _outcome(plain, git_home / "mails") == without


@pytest.mark.parametrize(
    ("name", "value"),
    [("core.autocrlf", "true"), ("core.eol", "crlf"), ("core.hooksPath", "HOOKS")],
)
def test_settings_of_the_repository_do_not_change_files(
    checkout: Path, git_home: Path, name: str, value: str
) -> None:
    program(git_home / "post-checkout", _HOOK)
    _git(checkout, "config", name, value.replace("HOOKS", str(git_home)))
    branches.commit(checkout)
    assert not [path for path, data in _state(checkout).items() if b"\r\n" in data]
    assert _git(checkout, "branch", "--show-current").strip() == _BRANCH


def test_a_branch_is_by_the_author_and_the_committer_of_its_repository(checkout: Path) -> None:
    for setting in ("author.name", "committer.name"):
        _git(checkout, "config", setting, f"The {setting}")
    branches.commit(checkout)
    shown = _git(checkout, "show", "-s", "--format=%an <%ae>, %cn%n%b")
    assert shown.startswith(f"The author.name <{_EMAIL}>, The committer.name\n")
    assert f"Signed-off-by: The committer.name <{_EMAIL}>\n" in shown


def test_a_repository_of_another_owner_is_used_if_the_user_calls_it_safe(
    checkout: Path, git_home: Path, monkeypatch: Patch
) -> None:
    # Git has this for its own tests: every repository is another's.
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setattr(git, "_KEPT", (*git._KEPT, "GIT_TEST_ASSUME_DIFFERENT_OWNER"))
    git._safe_directories.cache_clear()
    with pytest.raises(Failure, match="dubious ownership"):
        branches.commit(checkout)
    with (git_home / ".gitconfig").open("a") as file:
        file.write(f"[safe]\n\tdirectory = {checkout}\n")
    git._safe_directories.cache_clear()
    branches.commit(checkout)
    git._safe_directories.cache_clear()
    assert _git(checkout, "branch", "--show-current", GIT_TEST_ASSUME_DIFFERENT_OWNER="0")


# A branch that cannot be made.


_GONE = "device: 01-memfill edits lib/tests/Makefile, which is not there"
_UNCOMMITTED = "has uncommitted changes; commit or stash them first"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo mine >mm/Makefile", _UNCOMMITTED),
        ("echo mine >mm/Makefile; git add mm/Makefile", _UNCOMMITTED),
        ("rm mm/Makefile", _UNCOMMITTED),
        (f"git branch {_BRANCHES[2]} main^", f"has a branch {_BRANCHES[2]} already"),
        ("git rm -q lib/tests/Makefile; git commit -qm gone", _GONE),
    ],
)
def test_a_tree_that_cannot_have_the_branch_is_refused_and_kept(
    checkout: Path, command: str, message: str
) -> None:
    subprocess.run(["sh", "-ec", command], cwd=checkout, check=True)
    before = _state(checkout)
    with pytest.raises(Failure, match=message):
        branches.commit(checkout)
    assert _state(checkout) == before


@pytest.mark.parametrize("line", LINES)
def test_an_edit_that_does_not_apply_is_named(tmp_path: Path, line: str) -> None:
    tree = fake_tree.make(tmp_path / "linux", line)
    one_each = {needed.topic: needed for needed in fake_tree.needed(line)}
    for needed in one_each.values():
        before = (tree / needed.path).read_text()
        fake_tree.spoil(tree, needed)
        with pytest.raises(Failure) as caught:
            patches.plan(tree, line, patches.topics([needed.topic]))
        edit = f"{needed.topic}: {needed.step}"
        assert f"{edit} does not match {needed.path}" in caught.value.message
        (tree / needed.path).write_text(before)


def test_a_topic_is_named_if_one_that_it_needs_does_not_apply(plain: Path) -> None:
    fake_tree.spoil(plain, next(need for need in fake_tree.needed() if need.topic == "device"))
    with pytest.raises(Failure) as caught:
        patches.plan(plain, fake_tree.LINE)
    needing = [topic.name for topic in patches.topics() if "device" in topic.needs]
    assert needing
    assert all(f"{name}: needs device" in caught.value.message for name in needing)


def test_an_edit_that_does_not_apply_changes_nothing(checkout: Path, tmp_path: Path) -> None:
    fake_tree.spoil(checkout, fake_tree.needed()[-1])
    _git(checkout, "commit", "-q", "-a", "-m", "spoilt")
    before = _state(checkout)
    for take in (
        branches.commit,
        lambda tree: branches.mails(sources.from_tree(tree), tmp_path / "mails"),
        lambda tree: trees.pair(sources.from_tree(tree)),
        lambda tree: patches.patch(tree, fake_tree.LINE),
    ):
        with pytest.raises(Failure, match="not apply"):
            take(checkout)
        assert _state(checkout) == before
    assert not (tmp_path / "mails").exists()


@pytest.mark.parametrize("line", patches.lines())
def test_a_topic_that_does_not_apply_leaves_the_others(tmp_path: Path, line: str) -> None:
    tree = fake_tree.make(tmp_path / "linux", line)
    fake_tree.spoil(tree, next(need for need in fake_tree.needed(line) if need.topic == "copies"))
    with pytest.raises(Failure, match="1 topic does not apply: copies: ") as caught:
        branches.commit(tree)
    others = dict.fromkeys(step.topic for step in patches.of(line) if step.topic != "copies")
    assert caught.value.remedy.endswith(f"these apply: {', '.join(others)}")
    assert not (tree / ".git").exists()
    chosen = patches.topics(["online"])
    made = branches.commit(tree, chosen)
    assert made == [f"pagemint-{line}-{topic.name}" for topic in chosen]


def test_a_new_file_that_is_there_already_is_named(plain: Path) -> None:
    for step in _STEPS:
        for path in step.files:
            (plain / path).parent.mkdir(parents=True, exist_ok=True)
            (plain / path).write_text("mine")
            message = f"{step.topic}: {step.name} adds {path}, which is there already"
            with pytest.raises(Failure, match=message):
                patches.plan(plain, fake_tree.LINE, patches.topics([step.topic]))
            (plain / path).unlink()


def test_a_checkout_that_fails_takes_the_branch_back(checkout: Path) -> None:
    (checkout / ".git/index.lock").touch()
    asked = (("for-each-ref",), ("config", "--list", "--local"))
    before = [_git(checkout, *argv) for argv in asked]
    with pytest.raises(Failure, match="git checkout"):
        branches.commit(checkout)
    assert [_git(checkout, *argv) for argv in asked] == before


@pytest.mark.parametrize("target", ["--tree", "--output"])
def test_no_identity_is_one_line(plain: Path, tmp_path: Path, target: str) -> None:
    before = _state(plain)
    given = plain if target == "--tree" else tmp_path / "mails"
    ended = pagemint(
        "series",
        target,
        given,
        HOME=str(tmp_path),
        GIT_CONFIG_GLOBAL="/dev/null",
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0="user.useConfigOnly",
        GIT_CONFIG_VALUE_0="true",
    )
    assert ended.stderr.endswith("set user.name and user.email with git config\n")
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert _state(plain) == before
    assert not (tmp_path / "mails").exists()


@pytest.mark.parametrize("line", ["2.4", "7", "", "../7.3"])
def test_an_unknown_line_is_one_line(plain: Path, line: str, refused: Refused) -> None:
    before = _state(plain)
    assert refused("series", "--kernel", line, "--tree", plain) == (
        f"pagemint: the series has no edits for Linux {line!r}; "
        f"choose one of: {', '.join([*patches.lines(), sources.EXPECTED])}"
    )
    assert _state(plain) == before


# An interruption.


_ANYWHERE = ("apply", "hash-object", "update-ref", "checkout")
_PLAIN_ONLY = ("init", "add", "commit", "config --replace-all")


@pytest.mark.parametrize(
    ("kind", "when", "number"),
    [
        *(("plain", when, signal.SIGINT) for when in (*_ANYWHERE, *_PLAIN_ONLY)),
        *(("checkout", when, signal.SIGTERM) for when in (*_ANYWHERE, "commit-tree")),
    ],
)
@pytest.mark.usefixtures("default_signals")
def test_an_interruption_leaves_no_half_made_branch(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, when: str, number: signal.Signals
) -> None:
    tree: Path = request.getfixturevalue(kind)
    before = _state(tree)
    real = shutil.which("git")
    (tmp_path / "bin").mkdir()
    program(
        tmp_path / "bin/git",
        f'case "$* " in "{when} "*)\n'
        f"\techo >>{tmp_path}/reached\n\tkill -{number:d} $PPID\n\tsleep 0.2\nesac\n"
        f'exec {real} "$@"',
    )
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    ended = pagemint("series", "--tree", tree, "--topic", "device", PATH=path)
    assert (tmp_path / "reached").exists()
    assert ended.returncode == 130
    # On a slow machine a line about the slow stage may come first.
    assert ended.stderr.endswith("pagemint: interrupted; run again to continue\n")
    assert ended.stderr.count("pagemint: ") == 1
    if when in ("update-ref", "config --replace-all", "checkout"):
        assert _git(tree, "status", "--porcelain") == ""
        made = _commits(tree, "base" if kind == "plain" else "main", _BRANCHES[1])
        assert len(made) == len(patches.of(fake_tree.LINE, _FEW))
    else:
        assert (tree / ".git").exists() == (kind == "checkout")
        assert _state(tree) == before
        branches.commit(tree, _FEW)


# Mails.


def test_mails_make_the_same_tree_as_the_branch(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "mails").mkdir()
    mails = branches.mails(sources.from_tree(checkout), tmp_path / "mails")
    assert sorted((tmp_path / "mails").glob("*/*")) == sorted(mails)
    assert [f"{mail.parent.name}/{mail.name[:5]}" for mail in mails] == [
        f"{topic}/{number:04}-"
        for topic in _TOPICS
        for number in range(sum(step.topic == topic for step in _STEPS) + 1)
    ]
    numbered = [mail for mail in mails if not mail.name.startswith("0000-")]
    for mail, step in zip(numbered, _STEPS, strict=True):
        assert mail.parent.name == step.topic
        text = mail.read_text()
        subject = step.message.split("\n")[0]
        assert subject in text.replace("\n ", " ")
        assert f"From: {_NAME} <{_EMAIL}>\n" in text
        assert text.count("Signed-off-by:") == 1
    assert _git(checkout, "status", "--porcelain") == ""
    _git(checkout, "checkout", "-q", "-b", "by-mail")
    _git(checkout, "am", "-q", "--empty=drop", *map(str, mails))
    _git(checkout, "checkout", "-q", "main")
    branches.commit(checkout)
    # The tree and the message of each commit.
    made = [_git(checkout, "log", "--format=%T%n%B", f"main..{b}") for b in ("by-mail", _BRANCH)]
    assert made[0] == made[1] != ""


def test_the_first_mail_of_a_topic_is_its_cover_letter(plain: Path, tmp_path: Path) -> None:
    branches.mails(sources.from_tree(plain), tmp_path / "mails")
    for topic in _TOPICS:
        mine = [step for step in _STEPS if step.topic == topic]
        (cover,) = (tmp_path / "mails" / topic).glob("0000-*")
        text = cover.read_text()
        subject, body = patches.cover(topic).split("\n\n", 1)
        last = str(len(mine))
        first = "0".zfill(len(last))
        assert f"Subject: [PATCH {first}/{last}] {subject}\n" in text.replace("\n ", " ")
        assert f"\n\n{body}\n{_NAME} ({len(mine)}):\n" in text
        assert all(step.message.split("\n")[0] in " ".join(text.split()) for step in mine)
        assert re.search(r"^ \d+ files? changed, \d+ insertion", text, re.MULTILINE)
        assert "*** " not in text


@pytest.mark.parametrize("how", ["mails", "branch"])
def test_git_would_send_a_topic(checkout: Path, tmp_path: Path, how: str) -> None:
    if how == "mails":
        branches.mails(sources.from_tree(checkout), tmp_path / "mails")
        what = [str(mail) for mail in sorted((tmp_path / "mails/online").iterdir())]
    else:
        branches.commit(checkout)
        branch = f"pagemint-{fake_tree.LINE}-online"
        _git(checkout, "checkout", "-q", branch)
        below = f"pagemint-{fake_tree.LINE}-device"
        what = ["--cover-letter", "--cover-from-description=subject", below]
    argv = ("send-email", "--dry-run", "--confirm=never", "--to=list@example.org")
    output = _git(checkout, *argv, *what)
    count = sum(step.topic == "online" for step in _STEPS)
    assert output.count("\nResult: OK\n") == count + 1
    subjects = re.findall(r"^Subject: \[PATCH (\d+)/\d+\] ", output, re.MULTILINE)
    assert [int(number) for number in subjects] == list(range(count + 1))


@pytest.mark.parametrize(
    "where", ["mails", "mails/mine", "mails/mine/inside", "/proc/nowhere/mails"]
)
def test_mails_are_written_into_a_new_or_empty_directory(
    plain: Path, tmp_path: Path, monkeypatch: Patch, where: str
) -> None:
    monkeypatch.setattr(patches, "plan", None)  # it is refused before any work
    (tmp_path / "mails").mkdir()
    (tmp_path / "mails/mine").write_text("mine")
    output = tmp_path / where
    with pytest.raises(Failure, match=f"{output} is not an empty directory|cannot write {output}"):
        branches.mails(sources.from_tree(plain), output)
    assert (tmp_path / "mails/mine").read_text() == "mine"
    assert [path.name for path in (tmp_path / "mails").iterdir()] == ["mine"]


# Files alone.


def test_patching_does_not_write_into_shared_files(plain: Path, tmp_path: Path) -> None:
    before = _state(plain)
    copy = tmp_path / "copy"
    shutil.copytree(plain, copy, copy_function=os.link)
    patches.patch(copy, fake_tree.LINE)
    assert _state(plain) == before
    branches.commit(plain)
    assert contents(copy) == contents(plain)


@pytest.mark.parametrize(
    ("path", "lands"),
    [
        ("mm/memmap_template.c", True),
        (f"series/device/01-memfill/{fake_tree.LINE}.diff", True),
        ("series/device/01-memfill/files", True),
        (f"series/device/01-memfill/{patches.lines()[0]}.diff", False),
        ("series/device/01-memfill/message", False),
        ("mm/of_no_step.c", False),
    ],
)
def test_a_patched_tree_is_made_anew_only_for_what_lands_in_it(
    plain: Path, tmp_path: Path, monkeypatch: Patch, path: str, lands: bool
) -> None:
    shutil.copytree(files.KERNEL, tmp_path / "kernel")
    monkeypatch.setattr(files, "KERNEL", tmp_path / "kernel")
    (tmp_path / "kernel/mm/more.c").write_text("")
    source = sources.from_tree(plain)
    before = trees.pair(source)[1]
    with (tmp_path / "kernel" / path).open("a") as file:
        file.write("mm/more.c\n" if path.endswith("files") else "\n")
    after = trees.pair(source)[1]
    assert (after.key != before.key) == lands
    assert (_state(after.path) != _state(before.path)) == (lands and not path.endswith(".diff"))
