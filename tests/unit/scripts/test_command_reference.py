import click
import pytest

from command_reference import PAGE, commands
from isthmus.cli.main import command

COMMANDS = dict(commands(command, "isthmus"))


def without_space(text: str) -> str:
    return "".join(text.replace("\b", "").split())  # Long words are wrapped, too.


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_has_every_option_of_a_command_with_its_help(name: str) -> None:
    _, _, rest = PAGE.read_text("utf-8").partition(f"## `{name}`\n")
    section = without_space(rest.partition("\n## `")[0])
    how = "run: .venv/bin/python scripts/command_reference.py"
    assert section, how
    options = [
        option for option in COMMANDS[name].command.params if isinstance(option, click.Option) and not option.hidden
    ]
    for option in options:
        assert all(spelling in section for spelling in (*option.opts, *option.secondary_opts)), how
        assert without_space(option.help or "") in section, how


def test_the_page_has_the_commands_below_commands_and_none_that_is_gone() -> None:
    assert {"isthmus", "isthmus serve", "isthmus serve token add", "isthmus mcp add", "isthmus trust"} <= set(COMMANDS)
    sections = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("## ")]
    assert sections == [f"## `{name}`" for name in COMMANDS], "run: .venv/bin/python scripts/command_reference.py"
