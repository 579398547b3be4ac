"""Options of a command that are handed to it as one record."""

import click
from click.testing import CliRunner

from isthmus.cli.arguments.option_group import gathered, option_group
from isthmus.record import record


@record
class Given:
    name: str
    files: tuple[str, ...] = ()
    is_loud: bool = False


@click.command()
@option_group(click.option("--name", default="nobody"), click.option("--loud", "is_loud", is_flag=True))
@click.option("--port", type=int)
@gathered("given", Given)
@click.pass_context
def command(context: click.Context, given: Given, port: int | None) -> None:
    """Say what was given."""
    assert context.command.help == "Say what was given."
    click.echo(f"{given} {port}")


def test_a_command_gets_the_options_of_a_record_as_one_argument() -> None:
    found = CliRunner().invoke(command, ["--loud", "--port", "8"], catch_exceptions=False)
    assert found.output == f"{Given('nobody', (), True)} 8\n"


def test_a_field_without_an_option_keeps_its_default() -> None:
    found = CliRunner().invoke(command, ["--name", "Ada"], catch_exceptions=False)
    assert found.output == f"{Given('Ada')} None\n"
