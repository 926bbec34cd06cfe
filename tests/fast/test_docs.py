# SPDX-License-Identifier: GPL-2.0-only
"""The manual page and the completions that `make docs` writes, and the texts in `docs`."""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import results_page

from pagemint import cli
from pagemint.trees import patches

_ROOT = Path(__file__).parents[2]
_DOCS = _ROOT / "out/docs"


def _run(*argv: str | Path) -> str:
    ended = subprocess.run(argv, capture_output=True, text=True, cwd=_ROOT, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.fixture(scope="module", autouse=True)
def docs() -> None:
    _run("make", "--no-print-directory", "docs")


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Every long option of a parser and of its subcommands."""
    for action in parser._actions:
        yield from (option for option in action.option_strings if option.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _options(inner)


def test_the_manual_page_has_every_command_and_option() -> None:
    text = _run("man", "--warnings", "-l", _DOCS / "pagemint.1")
    unwrapped = " ".join(text.split())
    for name, help_text in cli.COMMANDS.items():
        assert f"pagemint {name}\n" in text
        assert help_text.split(",")[0] in unwrapped
    for option in set(_options(cli.parser())) - {"--help"}:
        assert f" {option}" in text, option


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completions_have_every_option_and_parse(shell: str) -> None:
    file = _DOCS / f"pagemint.{shell}"
    _run(shell, "-n", file)
    text = file.read_text()
    for option in _options(cli.parser()):
        assert option.removeprefix("--") in text, option


def test_bash_completes() -> None:
    def complete(*words: str) -> set[str]:
        typed = " ".join(words)
        script = f"""
            . {_DOCS}/pagemint.bash
            COMP_WORDS=({typed}) COMP_CWORD={len(words) - 1} COMP_LINE='{typed}'
            _shtab_pagemint
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        return set(_run("bash", "-c", script).split())

    assert complete("pagemint", "re") == {"report"}
    assert complete("pagemint", "vm", "--ac") == {"--accel"}
    assert complete("pagemint", "vm", "--accel", "k") == {"kvm"}


def test_fish_completes() -> None:
    script = f"source {_DOCS}/pagemint.fish; complete -C 'pagemint re'"
    assert _run("fish", "--no-config", "-c", script).split()[0] == "report"


def test_the_pages_of_results_are_those_of_the_kept_results() -> None:
    # If a result or the series changed: make docs-results
    text = (_ROOT / "README.md").read_text()
    assert results_page.readme(text) == text
    assert (_ROOT / "docs/results.md").read_text() == results_page.page()


def _anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*_ROOT.glob("*.md"), *_ROOT.glob("docs/*.md")], ids=str)
def test_what_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not anchor or anchor in _anchors(file), f"{target}#{anchor}"
    topics = "|".join(topic.name for topic in patches.topics())
    for topic, number in re.findall(rf"`({topics})/(\d\d)", text):
        assert list((_ROOT / "kernel/series/7.3" / topic).glob(f"00{number}-*")), (topic, number)


def test_the_example_of_a_workload_is_clean() -> None:
    text = (_ROOT / "docs/developing.md").read_text()
    (example,) = re.findall("```python\n(.*?)```", text, re.DOTALL)
    for words in (["check"], ["format", "--diff"]):
        argv = [str(Path(sys.executable).with_name("ruff")), *words, "-q"]
        argv += ["--stdin-filename", "pagemint/bench/workloads/clear.py", "-"]
        ended = subprocess.run(argv, input=example, capture_output=True, text=True, cwd=_ROOT)
        assert ended.returncode == 0, ended.stdout


def test_a_commit_that_a_message_credits_is_in_the_record_of_prior_work() -> None:
    commit = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12}\b")
    series = _ROOT / "kernel/series"
    texts = [file.read_text() for file in series.glob("*/*/*")]
    credited = {name for text in texts for name in commit.findall(text.partition("\n---\n")[0])}
    assert credited
    assert credited <= set(commit.findall((_ROOT / "docs/prior-work.md").read_text()))
