"""Options that belong together: as one decorator of a command, and as one argument of it."""

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def option_group(*options: Callable[[Any], Any]) -> Callable[[CommandT], CommandT]:
    """Return a decorator that adds options to a command, in this order."""

    def add(command: CommandT) -> CommandT:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def gathered(name: str, record: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command its options as a record, in the argument ``name``.

    Every option that is named like a field of the record is a value of it; the command gets the others as they are.
    """
    names = frozenset(field.name for field in fields(record))

    def gather(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def gathering(*arguments: Any, **options: Any) -> Any:
            given = {key: options.pop(key) for key in names & options.keys()}
            return command(*arguments, **{name: record(**given)}, **options)

        return gathering

    return gather
