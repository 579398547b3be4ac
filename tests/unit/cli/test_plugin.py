"""`isthmus plugin`."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from isthmus.cli.companion import command as companion
from isthmus.cli.plugin import PLUGINS, command


@pytest.mark.parametrize("editor", sorted(PLUGINS))
def test_the_plugin_of_each_editor_is_where_it_says(editor: str) -> None:
    printed = CliRunner().invoke(command, [editor]).output.strip()
    assert Path(printed).exists()


def test_all_of_them_are_listed_with_what_to_do() -> None:
    printed = CliRunner().invoke(command, []).output
    for name, plugin in PLUGINS.items():
        assert f"{name} " in printed
        assert plugin.path in printed


def test_what_sublime_text_gets_is_a_whole_package() -> None:
    package = Path(CliRunner().invoke(command, ["sublime"]).output.strip())
    files = {str(file.relative_to(package)) for file in package.rglob("*") if file.is_file()}
    core = {f"core/{name}.py" for name in ("__init__", "companion", "editor", "hunks", "pause", "reviews", "views")}
    assert files == {".python-version", "Default.sublime-commands", "Isthmus.py"} | core


def test_what_emacs_loads_has_its_second_file_beside_it() -> None:
    plugin = Path(CliRunner().invoke(command, ["emacs"]).output.strip())
    assert plugin.name == "isthmus.el"
    assert (plugin.parent / "isthmus-agent.el").is_file()
    assert (plugin.parent / "isthmus-changes.el").is_file()


@pytest.mark.parametrize("editor", ["emacs", "sublime"])
def test_a_companion_for_an_editor_that_starts_its_own_names_the_plugin(editor: str) -> None:
    answer = CliRunner().invoke(companion, ["--editor", editor])
    assert answer.exit_code == 2
    assert f"isthmus plugin {editor}" in answer.output


def test_a_companion_for_an_editor_with_extensions_names_the_bridge() -> None:
    refused = CliRunner().invoke(companion, ["--editor", "vscode"])
    assert refused.exit_code == 2
    assert "`isthmus bridge`" in refused.output


def test_neovim_is_known_by_its_name(tmp_path: Path) -> None:
    answer = CliRunner().invoke(companion, ["--editor", "neovim", "--address", str(tmp_path / "nobody")])
    assert "no Neovim to attach to" in str(answer.exception)
