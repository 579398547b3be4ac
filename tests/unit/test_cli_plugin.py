"""`isthmus plugin`."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from isthmus.cli.plugin import PLUGINS, command


@pytest.mark.parametrize("editor", sorted(PLUGINS))
def test_the_plugin_of_each_editor_is_where_it_says(editor: str) -> None:
    printed = CliRunner().invoke(command, [editor]).output.strip()
    assert Path(printed).exists()


def test_all_of_them_are_listed_with_what_to_do() -> None:
    printed = CliRunner().invoke(command, []).output
    for name, plugin in PLUGINS.items():
        assert f"{name} " in printed
        assert plugin.place in printed
