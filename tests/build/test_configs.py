# SPDX-License-Identifier: GPL-2.0-only
"""The choice of a configuration, and the check of a user's."""

import gzip
from pathlib import Path
from unittest.mock import Mock

import fake_tree
import pytest
from stand_ins import Capture, Patch

from pagemint.base.errors import Failure
from pagemint.trees import configs, objects, sources
from pagemint.trees.debian import apt
from pagemint.trees.sources import Source

_WHOLE = "\n".join(["CONFIG_X86_64=y", *configs.needs()]) + "\n"


@pytest.fixture
def tree(tmp_path: Path) -> Source:
    """A tree of the user's own."""
    return sources.from_tree(fake_tree.make(tmp_path / "linux"))


@pytest.fixture
def no_debian(monkeypatch: Patch) -> None:
    """A machine without apt."""
    away = Mock(side_effect=Failure("there is no apt-get", "install it"))
    monkeypatch.setattr(apt, "packages", away)


@pytest.mark.usefixtures("debian_config")
def test_the_users_file_comes_first_then_the_trees_own_then_debians(
    tree: Source, tmp_path: Path
) -> None:
    (tree.tree / ".config").write_text(_WHOLE + "# of the tree\n")
    (tmp_path / "mine").write_text(_WHOLE)
    (tmp_path / "mine.gz").write_bytes(gzip.compress(_WHOLE.encode()))
    for name in ("mine", "mine.gz"):
        chosen = configs.of_user(tmp_path / name, tree)
        assert chosen
        assert (chosen.name, chosen.text) == (f"file {name}", _WHOLE)
    own = configs.of_user(None, tree)
    assert own
    (tree.tree / ".config").unlink()
    assert own.name == ".config of the tree"
    # It stays as it was read.
    assert own.start(fake_tree.LINE) == _WHOLE + "# of the tree\n"
    assert configs.of_user(None, tree) is None
    assert configs.usual(tree) is objects.DEBIAN


@pytest.mark.usefixtures("no_debian")
def test_the_defconfig_comes_last_and_says_why(tree: Source, capsys: Capture) -> None:
    chosen = configs.usual(tree)
    assert (chosen.text, set(chosen.options)) == ("", set(configs.needs()))
    err = capsys.readouterr().err
    assert "using the defconfig" in err
    assert "there is no apt-get" in err


@pytest.mark.usefixtures("no_debian")
def test_debians_source_needs_debians_configuration(tree: Source) -> None:
    (tree.tree / ".config").touch()
    debian = Source(tree.version, tree.line, "7.3.1-1", tree.tree)
    assert configs.of_user(None, debian) is None
    with pytest.raises(Failure, match="no apt-get"):
        configs.usual(debian)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_WHOLE.replace("CONFIG_X86_64=y", "CONFIG_ARM64=y"), "no configuration for x86-64"),
        ("", "no configuration for x86-64"),
        *((_WHOLE.replace(f"{need}\n", ""), need) for need in configs.needs()),
        (_WHOLE.replace("CONFIG_FS_DAX=y", "CONFIG_FS_DAX=m"), r"CONFIG_FS_DAX=y \(fsdax"),
        ("\x00\xff", "cannot read|no configuration"),
    ],
)
@pytest.mark.parametrize("own", [False, True])
def test_a_file_that_a_workload_cannot_use_is_refused(
    tree: Source, tmp_path: Path, text: str, message: str, own: bool
) -> None:
    file = tree.tree / ".config" if own else tmp_path / "mine"
    file.write_text(text)
    with pytest.raises(Failure, match=message) as caught:
        configs.of_user(None if own else file, tree)
    assert str(file) in caught.value.message
    assert "--config" in caught.value.remedy


def test_a_file_that_cannot_be_read_is_refused(tree: Source, tmp_path: Path) -> None:
    (tmp_path / "broken.gz").write_bytes(gzip.compress(b"CONFIG_X=y\n")[:-9])
    for name in ("none", "broken.gz", "."):
        with pytest.raises(Failure, match="cannot read the configuration"):
            configs.of_user(tmp_path / name, tree)


def test_results_tell_configurations_apart() -> None:
    names = {
        objects.Config("one", text="CONFIG_A=y\n").described("7.3"),
        objects.Config("one", text="CONFIG_B=y\n").described("7.3"),
        objects.Config("one", ("CONFIG_C=y",), "CONFIG_B=y\n").described("7.3"),
    }
    assert len(names) == 3
