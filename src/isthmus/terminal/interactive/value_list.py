"""The values of a command's argument as a numbered list, and the line that a user types below it. Pure.

Not here: asking for the values, see `command_list`, and for the line, see `conversation`.
"""

from collections.abc import Sequence

from isthmus.record import record
from isthmus.slash_commands.tree import Completion
from isthmus.text.visible import visible_line

MAXIMUM_VALUES = 60
"""Maximum number of values that are shown to choose from."""
MAXIMUM_NAME = 60
"""Maximum number of characters by which the descriptions of all values are moved to the right."""
OTHER_ROWS = 4
"""Rows of the terminal that the list leaves free: a blank one, the number of further values, the prompt, its cursor."""


@record
class ValueList:
    """The values of the only argument of ``command``, as typed with its slash, in the order of the agent.

    Without a choice the command runs without a value, unless its argument ``is_required`` or the values have
    descriptions: these show all that the command alone would list.
    """

    command: str
    values: Sequence[Completion]
    is_required: bool = False

    @property
    def runs_alone(self) -> bool:
        """Whether the command runs without a value if none is chosen."""
        return not self.is_required and not any(item.description for item in self.values)

    @property
    def prompt(self) -> str:
        """The prompt below the list."""
        name = visible_line(self.command[1:])
        return f"{name}, or a number: " if self.runs_alone else f"{name} (a number, or Enter for none): "

    def lines(self, rows: int) -> Sequence[str]:
        """Return a line for each value that a terminal with ``rows`` rows can show; none is cut to a width."""
        names = [visible_line(self._value(item)) for item in self.values[: self.shown(rows)]]
        widest = min(MAXIMUM_NAME, max(map(len, names), default=0))
        lines = [
            f"{number:>2}  {name:<{widest}}  {visible_line(item.description)}".rstrip()
            for number, (name, item) in enumerate(zip(names, self.values, strict=False), 1)
        ]
        left = len(self.values) - len(lines)
        return [*lines, *([f"and {left} more, whose names can be typed"] if left else [])]

    def line_of(self, typed: str, rows: int) -> str | None:
        """Return the line to run for a typed number or value; None for none. Numbers are as in :meth:`lines`."""
        typed = typed.strip()
        if typed.isdecimal() and 1 <= int(typed[:9]) <= self.shown(rows):
            return self.values[int(typed[:9]) - 1].line
        if typed:
            return f"{self.command} {typed}"
        return self.command if self.runs_alone else None

    @property
    def has_plain_names(self) -> bool:
        """Whether no value begins with a digit, which a typed number could be meant for."""
        return not any(self._value(item)[:1].isdecimal() for item in self.values)

    def shown(self, rows: int) -> int:
        """Return the number of values that a terminal with ``rows`` rows can show."""
        return min(len(self.values), MAXIMUM_VALUES, max(1, rows - OTHER_ROWS))

    def _value(self, item: Completion) -> str:
        return item.line.removeprefix(f"{self.command} ")
