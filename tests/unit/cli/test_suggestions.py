"""A mistyped command or option is answered with what was meant, in every group and every command."""

from collections.abc import Iterator

import click
import pytest

from isthmus.cli.main import command as isthmus
from isthmus.cli.main import run

Path = tuple[str, ...]


def commands(command: click.Command, path: Path = ()) -> Iterator[tuple[Path, click.Command]]:
    """Yield a command and all below it, with their words."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name="isthmus")
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


ALL = dict(commands(isthmus))


def mistyped(name: str) -> str:
    """Return a name with two letters exchanged near its end."""
    return f"{name[:-2]}{name[-1]}{name[-2]}" if name[-1] != name[-2] else f"{name}x"


GROUPS = [(path, name) for path, group in ALL.items() if isinstance(group, click.Group)
          for name in group.list_commands(click.Context(group))]  # fmt: skip
OPTIONS = [
    (path, option)
    for path, command in ALL.items()
    for parameter in command.params
    if isinstance(parameter, click.Option) and not parameter.hidden
    for option in parameter.opts
    if option.startswith("--") and len(option) > 5
]


@pytest.mark.parametrize(("path", "name"), GROUPS, ids=str)
def test_a_mistyped_command_is_answered_with_the_right_one(
    path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*path, mistyped(name)]) == 42
    error = capsys.readouterr().err
    assert "Did you mean" in error
    assert name in error.rpartition("Did you mean")[2]


@pytest.mark.parametrize(("path", "option"), OPTIONS, ids=str)
def test_a_mistyped_option_is_answered_with_the_right_one(
    path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*path, mistyped(option)]) == 42
    error = capsys.readouterr().err
    assert f"No such option: {mistyped(option)}" in error or f"No such option {mistyped(option)!r}" in error
    assert "Did you mean" in error
    assert option in error.rpartition("Did you mean")[2]


def test_a_command_like_no_other_is_answered_with_all_of_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "token", "xyzzy"]) == 42
    assert "Unknown command 'xyzzy'. Expected one of " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "meant"), [("mpc list", "mcp list"), ("taks show", "tasks show"), ("conect", "connect")]
)
def test_a_mistyped_group_is_not_sent_to_a_model(line: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 42
    assert f"Did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("Version", "isthmus --version"),
        ("login", "isthmus mcp login NAME"),
        ("upgrade", "isthmus update"),
    ],
)
def test_a_command_of_other_programs_is_answered_and_not_sent_to_a_model(
    line: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line.split()) == 42
    error = capsys.readouterr().err
    assert instead in error
    assert "To send it as a prompt use -p or -i." in error


@pytest.mark.parametrize("line", ["", "mcp", "mcp login", "Help serve"])
def test_help_before_a_command_is_its_help(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = line.removeprefix("Help ").split()
    assert run([*path, "--help"]) == 0
    expected = capsys.readouterr().out
    assert run((line if line.startswith("Help") else f"help {line}").split()) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    "line",
    [
        "mpc please",
        "Task list is unsorted",
        "explain this",
        "help me",
        "help mcp pleas",
        "help serve xyzzy",
        "update the docs",
    ],
)
def test_words_that_only_resemble_a_group_are_a_prompt(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*line.split(), "-o", "json", "--no-such-option"]) == 42
    assert "--no-such-option" in capsys.readouterr().err
