"""Options that belong together, as one decorator of a command."""

from collections.abc import Callable
from typing import Any, TypeVar

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def option_group(*options: Callable[[Any], Any]) -> Callable[[CommandT], CommandT]:
    """Return a decorator that adds options to a command, in this order."""

    def add(command: CommandT) -> CommandT:
        for option in reversed(options):
            command = option(command)
        return command

    return add
