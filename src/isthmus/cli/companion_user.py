"""The running companion at which a command of ``isthmus ide`` acts as the user, and the options that name it."""

import json
import os
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import click

from isthmus.cli.arguments.file_location import locate, parse_range

P = ParamSpec("P")
Result = dict[str, Any]

_COMMON = (
    click.option("--json", "as_json", is_flag=True, help="Print the answer as one JSON object."),
    click.option("--port", type=int, help="The companion on this port."),
    click.option("--workspace", metavar="DIR", help="The companion of this folder (default: the current one)."),
)


class CompanionUser:
    """Sends commands to the companion that the options name, and prints its answers."""

    def __init__(self, as_json: bool, port: int | None, workspace: str | None) -> None:
        self.as_json = as_json
        self._port = port
        self.directory = workspace or "."
        self._folders = (workspace,) if workspace else ()

    def locate(self, file: str) -> str:
        """Return the absolute path of a file that the user named."""
        return locate(file, self._folders)

    def parse(self, place: str) -> tuple[str, int | None, int | None, int | None, int | None]:
        """Parse a file with a position or a range, as :func:`parse_range` does."""
        return parse_range(place, self._folders)

    def ask(self, command: str, *, wait_seconds: float = 0.0, **arguments: object) -> Result:
        """Run a command in the companion and return its result.

        Raises:
            IsthmusError: it failed.
        """
        from isthmus.ide.control import control_client

        # A named workspace takes precedence over the variables of this terminal.
        environment: Mapping[str, str] = os.environ if self.directory == "." else {}
        companion = control_client.choose(control_client.running(), self.directory, environment, self._port)
        return dict(control_client.ask(companion, command, wait_seconds=wait_seconds, **arguments)) | {
            "port": companion.port
        }

    def show(self, result: Result, text: str) -> None:
        """Print a result in the requested form."""
        from isthmus.text.visible import visible

        # Files, their names and the agents' own names may contain anything, also control sequences.
        click.echo(json.dumps(result) if self.as_json else visible(text))


def user_command(function: Callable[Concatenate[CompanionUser, P], None]) -> Callable[..., None]:
    """Return a command that receives the companion which its options name."""

    @wraps(function)
    def run(as_json: bool, port: int | None, workspace: str | None, *args: P.args, **kwargs: P.kwargs) -> None:
        function(CompanionUser(as_json, port, workspace), *args, **kwargs)

    decorated: Callable[..., None] = run
    for option in _COMMON:
        decorated = option(decorated)
    return decorated


def numbers_of(option: str, text: str | None, otherwise: str) -> list[int] | None:
    """Return the numbers in a list such as ``1,3`` or ``2-4``; None without one.

    ``otherwise`` says what to do instead of giving an empty list.

    Raises:
        click.UsageError: it is not a list of numbers.
    """
    if text is None:
        return None
    from isthmus.text.hunks import numbers_in

    if not text.strip():
        raise click.UsageError(f"{option}: expected at least one number; {otherwise}")
    try:
        return numbers_in(text)
    except ValueError as error:
        raise click.UsageError(f"{option}: expected numbers as in 1,3 or 2-4, received {text}") from error
