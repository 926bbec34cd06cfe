# SPDX-License-Identifier: GPL-2.0-only
"""Trees that the user names: where they come from, what is refused, and how they are compared."""

import json
from dataclasses import replace
from pathlib import Path

import fake_result
import fake_tree
import pytest
from fake_result import everything, screen
from kernel_lines import LONG
from stand_ins import WHO, Capture, Patch, contents, diff_of, pagemint
from stand_ins import git as _git

from pagemint import words
from pagemint.base.errors import Failure
from pagemint.bench import identity, link
from pagemint.bench.left_out import LeftOut
from pagemint.bench.process import Host
from pagemint.bench.variants import able, choose
from pagemint.bench.workload import Settings, Variant
from pagemint.bench.workloads import known
from pagemint.report import page
from pagemint.results.rows import Result
from pagemint.results.verdict import Judged
from pagemint.trees import named, objects, patches, sources, trees
from pagemint.words import MODES

_GIT = WHO | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: Patch) -> Path:
    """A stand-in for a kernel tree, in a git repository with one commit."""
    for name, value in _GIT.items():
        monkeypatch.setenv(name, value)
    made = fake_tree.make(tmp_path / "linux")
    for argv in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "the tree"]):
        _git(made, *argv)
    return made


def _make(text: str, base: trees.Tree) -> trees.Tree:
    (tree,) = named.parse([text])
    return tree.make(base)


def test_a_mailbox_of_topics_makes_the_tree_that_the_topics_make(
    tree: Path, tmp_path: Path
) -> None:
    source = sources.from_tree(tree)
    base = trees.unpatched("base", source)
    before = contents(base.path)
    ours = _make("ours=series:device,online", base)
    mails = [each.mail for each in patches.of(fake_tree.LINE, patches.topics(["online"]))]
    mailbox = tmp_path / "v5.mbox"
    mailbox.write_text("\n".join(mail.read_text() for mail in mails))
    assert contents(ours.path) == contents(_make(f"v5={mailbox}", base).path) != before
    folder = tmp_path / "patches"
    folder.mkdir()
    for number, mail in enumerate(mails):
        (folder / f"{number:02}.patch").write_text(mail.read_text())
    assert contents(_make(f"files={folder}", base).path) == contents(ours.path)
    assert contents(base.path) == before


def test_a_commit_is_copied_and_the_repository_stays_as_it_is(tree: Path) -> None:
    base = trees.unpatched("base", sources.from_tree(tree))
    first = contents(tree)
    (tree / "mm/mm_init.c").write_text("changed\n")
    _git(tree, "commit", "-q", "-a", "-m", "a change")
    (tree / "mm/mm_init.c").write_text("changed again, not committed\n")
    (tree / "mm/new.c").write_text("staged\n")
    _git(tree, "add", "mm/new.c")
    before = (contents(tree), _git(tree, "status", "--porcelain"), _git(tree, "for-each-ref"))
    old, new = _make(f"old={tree}@HEAD^{{/the tree}}", base), _make(f"new={tree}@main", base)
    assert contents(old.path) == first
    assert (new.path / "mm/mm_init.c").read_text() == "changed\n"
    assert not (new.path / "mm/new.c").exists()
    assert (new.name, new.line, new.version) == ("new", "7.3", "7.3.0")
    after = (contents(tree), _git(tree, "status", "--porcelain"), _git(tree, "for-each-ref"))
    assert after == before


def test_a_tree_with_a_stray_patch_is_a_tree(tree: Path) -> None:
    base = trees.unpatched("base", sources.from_tree(tree))
    (tree / "0001-stray.patch").write_text("--- a/x\n+++ b/x\n")
    assert (_make(f"own={tree}", base).path / "0001-stray.patch").exists()


def test_a_commit_is_whole_wherever_its_repository_is_named(
    tree: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    base = trees.unpatched("base", sources.from_tree(tree))
    whole = set(contents(tree))
    _git(tree, "clone", "-q", "--bare", str(tree), str(tmp_path / "bare.git"))
    # As in a hook: git would look there instead.
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    for number, where in enumerate((tree / "mm", tmp_path / "bare.git")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(number)))
        assert set(contents(_make(f"new={where}@main", base).path)) == whole


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a"], "--tree a: not NAME=WHERE; WHERE is DIR, DIR@REV"),
        (["a="], "--tree a=: not NAME=WHERE"),
        (["a b=linux"], "'a b' is not a name; use up to 20 letters"),
        (["=linux"], "'' is not a name"),
        (["base=linux"], "the name base is taken; choose another name"),
        (["a=linux", "a=linux"], "there are two trees named a; rename one"),
        (["a=nowhere"], "--tree a: there is no nowhere; give DIR, DIR@REV"),
        (["a=~nobody-here/x"], "--tree a: there is no ~nobody-here/x; give DIR, DIR@REV"),
        (
            ["a=linux@v9"],
            "--tree a: linux has no commit v9 (git rev-parse in linux failed: fatal: ",
        ),
        (["a=empty"], "empty is not a Linux source tree: it has no Makefile"),
        (["a=empty@HEAD"], "--tree a: empty has no commit HEAD"),
        (["a=nothing.mbox"], "nothing.mbox has no patch; give a mailbox"),
        (["a=series:devices"], "there is no topic 'devices'; choose from: fixes, "),
        (["a=other.git@HEAD"], "--tree a: HEAD of other.git is not a Linux tree"),
    ],
)
def test_a_tree_that_cannot_be_is_refused(
    tree: Path, monkeypatch: Patch, texts: list[str], message: str
) -> None:
    monkeypatch.chdir(tree.parent)
    Path("empty").mkdir()
    Path("nothing.mbox").write_text("From a Mon Sep 17 00:00:00 2001\nSubject: [PATCH 0/1] hello\n")
    Path("other.git").mkdir()
    for argv in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "empty"]):
        _git(Path("other.git"), *argv)
    with pytest.raises(Failure) as refusal:
        named.parse(texts)
    assert message in str(refusal.value)


def test_a_topic_without_patches_for_the_line_is_refused(tmp_path: Path) -> None:
    base = trees.unpatched("base", sources.from_tree(fake_tree.make(tmp_path / "old", "6.12")))
    with pytest.raises(Failure, match="no patches of published for Linux 6"):
        _make("p=series:device,published", base)


def test_the_mails_of_a_tree_are_listed_whether_it_is_in_the_cache_or_not(
    tree: Path, tmp_path: Path, capsys: Capture
) -> None:
    base = trees.unpatched("base", sources.from_tree(tree))
    diff = "--- /dev/null\n+++ b/mm/new.c\n@@ -0,0 +1 @@\n+int new;\n"
    head = "From x Mon Sep 17 00:00:00 2001\nFrom: Ada <ada@example.org>\nSubject: [PATCH"
    (tmp_path / "a.mbox").write_text(f"{head}] a\n\n{diff}\n{head} v2] a\n\n{diff}\n")
    lines = (
        "pagemint: new: applied [PATCH v2] a\n"
        "pagemint: new: left out [PATCH] a (an older version)\n"
    )
    for _ in range(2):
        made = _make(f"new={tmp_path / 'a.mbox'}", base)
        assert (made.path / "mm/new.c").read_text() == "int new;\n"
        assert made.applied == ("[PATCH v2] a",)
        assert made.not_applied == ("[PATCH] a (an older version)",)
        assert capsys.readouterr().err.endswith(lines)


# A result.


def _result(**changes: object) -> Result:
    variants = {"base": 57.5, "base2": 58.0, "a streaming": 35.0, "a slow": 57.0, "rival": 48.0}
    return fake_result.result(
        variants=variants, workloads=("fsdax",), memory=True, trees=("a", "rival"), **changes
    )


def test_the_first_screen_has_a_line_for_each_tree() -> None:
    shown = screen(_result())
    assert shown[1].split()[:5] == ["plain", "returns", "base", "tree", "time"]
    assert [(line.split()[0], line.split()[2]) for line in shown[2:4]] == [
        ("fsdax", "a"),
        ("fsdax", "rival"),
    ]
    assert "Memmap identical to base: a." in shown
    assert "Memmap of rival differs: fsdax: page 3, word 2 is 0x1, not 0x0." in shown
    assert max(map(len, shown)) <= 80
    assert "a slow" in everything(_result())


def test_the_report_lists_the_mails_of_each_tree() -> None:
    text, _ = page.make([_result()])
    for tree in ("a", "rival"):
        listed = f"applied: [PATCH v2] {tree}<br>left out: [PATCH] {tree} (an older version)</dd>"
        assert listed in text


def test_a_result_without_lists_of_mails_is_read() -> None:
    body = fake_result.body(workloads=("fsdax",), trees=("a",))
    for name in ("applied", "not_applied"):
        del body["trees"][0][name]
    (tree,) = fake_result.read(body).trees
    assert (tree.applied, tree.not_applied) == ([], [])


def test_gains_are_over_the_tree_that_was_asked_for() -> None:
    judged = Judged(_result(against="rival", threads=(1, 2)))
    for case, lines in judged.lines.items():
        assert [judged.called(line) for line in judged.shown(case)] in (["base", "a"], ["a"])
        gain = lines["a streaming"].gain
        assert gain and gain.paired.value == pytest.approx(48 / 35, rel=0.02)
    assert judged.worst_floor == pytest.approx(58 / 57.5, rel=0.01)
    assert screen(judged.result)[1].split()[2:5] == ["rival", "tree", "time"]


# Real trees.


def test_every_mode_of_the_series_leaves_the_memmaps_of_base(in_user_cache: None) -> None:
    pair = trees.pair(sources.get(fake_tree.LINE))
    program = link.link(pair, objects.DEBIAN)
    chosen = choose(program, pair, "plain", all_modes=True)
    modes = ["streaming", *(mode for mode in MODES if mode != "streaming")]
    patched = [Variant("patched", mode) for mode in modes]
    assert chosen.modal == (Variant("base"), Variant("base2"), *patched)
    assert choose(program, pair, "plain", all_modes=False).modal == chosen.modal[:3]
    assert identity.differences(program, chosen.modal[2:], LeftOut()) == {"patched": ""}
    lacking = replace(program, lacks={("patched", "folio"): "it has no f"})
    workloads = [known()[name] for name in ("fsdax", "folio")]
    assert able(chosen, lacking, pair, workloads, "base", LeftOut()) == {workloads[0]: chosen}


def test_a_tree_of_another_version_takes_part(in_user_cache: None) -> None:
    base, old = (
        trees.unpatched(name, sources.get(line))
        for name, line in ((words.BASE, fake_tree.LINE), ("old", patches.lines()[0]))
    )
    pair = base, old
    program = link.link(pair, objects.DEBIAN)
    assert not {file for tree, file in program.lacks if tree == "base"}
    chosen = choose(program, pair, "plain", all_modes=False)
    workloads = [known()[name] for name in ("fsdax", "boot", "folio", "device-folio")]
    assert list(able(chosen, program, pair, workloads, "base", LeftOut())) == workloads[:3]
    # Its folios are copied as its own code lays them out.
    with Host(program) as host:
        host.patch("plain", "erms")
        asked = Settings(0, plain=chosen.plain)
        folio = known()["folio"]
        folio.setup(host, asked)
        for task in folio.tasks(asked):
            if task.variant.tree == "old" and task.case.folio_bytes == 2 << 20:
                assert task.run(host).ns > 0


_FLIP = "\tif (pfn == (1UL << 20) + 64 + 3 + 100)\n\t\tpage->private ^= 1;\n"


def test_a_tree_with_one_wrong_bit_is_named_and_timed(in_user_cache: None, tmp_path: Path) -> None:
    source = sources.get(fake_tree.LINE)
    path = "mm/mm_init.c"
    old = (source.tree / path).read_text()
    end = old.index("\n}\n", old.index("__init_zone_device_page(struct page")) + 1
    patch = tmp_path / "wrong.patch"
    patch.write_text(diff_of(path, old, old[:end] + _FLIP + old[end:]))
    argv = ["bench", "--tree", f"wrong={patch}", "--size", "256MiB", "--workload", "fsdax,boot"]
    argv += ["--runs", "1", "--json", str(tmp_path / "result.json")]
    ended = pagemint(*argv)
    assert ended.returncode == 0, ended.stderr
    difference = "fsdax: page 100, word 5 is 0x1, not 0x0"
    assert f"pagemint: the memmap of wrong differs from base's: {difference}\n" in ended.stderr
    assert f"Memmap of wrong differs: {difference}." in ended.stdout.splitlines()
    result = json.loads((tmp_path / "result.json").read_text())
    (listed,) = result["trees"]
    mails = listed["applied"], listed["not_applied"]
    assert (listed["name"], *mails) == ("wrong", ["wrong.patch"], [])
    assert [(row["case"]["workload"], row["tree"]) for row in result["rows"][:6]] == [
        (workload, tree) for workload in ("fsdax", "boot") for tree in ("base", "base2", "wrong")
    ]
    assert (tmp_path / "result-report/index.html").read_text().count("wrong.patch") == 2


@pytest.mark.skipif(not LONG, reason="builds a tree for each topic")
def test_each_topic_leaves_the_memmaps_of_base(in_user_cache: None, tmp_path: Path) -> None:
    topics = [topic.name for topic in patches.topics()]
    argv = [word for name in topics for word in ("--tree", f"only-{name}=series:{name}")]
    argv += ["--size", "256MiB", "--workload", "fsdax", "--runs", "1", "--no-report"]
    ended = pagemint("bench", *argv, "--json", str(tmp_path / "result.json"))
    assert ended.returncode == 0, ended.stderr
    listed = json.loads((tmp_path / "result.json").read_text())["trees"]
    assert {tree["name"]: tree["identical"] for tree in listed} == {
        f"only-{name}": True for name in topics
    }
