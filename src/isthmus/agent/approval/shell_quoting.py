"""Puts a text into a shell command as data: what is in it is never read as shell, also where the place is in quotes.

The syntax around each place is looked at, so that the quotes of whoever wrote the command and ours do not undo each
other. A place where no quoting is safe is refused. Deliberately not here: what a program makes of its arguments
(``bash -c "... {{args}}"`` hands them to a shell again).
"""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from isthmus.agent.approval.shell_syntax import parse_shell
from isthmus.errors import IsthmusError

if TYPE_CHECKING:
    from tree_sitter import Node

_UNQUOTABLE = frozenset(
    ("heredoc_body", "expansion", "comment", "arithmetic_expansion", "subscript", "c_style_for_statement", "ERROR")
)


class UnquotableError(IsthmusError):
    """The place for a text in a shell command is one where it cannot be quoted."""


def with_text(command: str, place: str, text: str) -> str:
    """Return the command with ``text`` instead of each ``place``, quoted for where it stands.

    Raises:
        UnquotableError: the command is not understood, or a place is in a comment, a here-document, backquotes or such.
    """
    pieces = command.split(place)
    if len(pieces) == 1:
        return command
    marks = [_mark(command, number) for number in range(len(pieces) - 1)]
    marked = pieces[0] + "".join(f"{mark}{piece}" for mark, piece in zip(marks, pieces[1:], strict=True))
    root = parse_shell(marked)
    if root is None or root.has_error:
        raise UnquotableError(f"{place} cannot be put in: {command[:200]!r} is not understood as a shell command")
    source, end = marked.encode(), 0
    written: list[str] = []
    for mark in marks:
        start = source.index(mark.encode(), end)
        written += [source[end:start].decode(), _quoted(root, start, start + len(mark), place, text)]
        end = start + len(mark)
    return "".join((*written, source[end:].decode()))


def _mark(command: str, number: int) -> str:
    """Return a word that stands for a place, and nowhere else in the command."""
    mark = f"xPLACEx{number}x"
    while mark in command:
        mark += "x"
    return mark


def _quoted(root: "Node", start: int, end: int, place: str, text: str) -> str:
    quoted = shlex.quote(text)
    around = list(_around(root, start, end))
    before = (root.text or b"")[:start]
    is_escaped = (len(before) - len(before.rstrip(b"\\"))) % 2 == 1
    leaf = around[0].type if around else ""
    if not any(_is_unquotable(node) for node in around):
        if leaf == "word" and not is_escaped:
            return quoted
        if leaf == "string_content" and around[1].type == "string" and not is_escaped:
            return f'"{quoted}"'
        if leaf == "raw_string":
            return f"'{quoted}'"
    raise UnquotableError(
        f"{place} stands where it cannot be quoted for the shell (a comment, a here-document, backquotes, ${{...}},"
        f' arithmetic, or behind a backslash); put it into a variable first: x={place}; ... "$x"'
    )


def _around(root: "Node", start: int, end: int) -> Iterator["Node"]:
    """Yield the nodes that a place is in, the innermost first."""
    node = root.descendant_for_byte_range(start, end)
    while node is not None:
        yield node
        node = node.parent


def _is_unquotable(node: "Node") -> bool:
    first = (node.text or b"")[:2]
    return (
        node.type in _UNQUOTABLE
        or (node.type == "command_substitution" and first.startswith(b"`"))
        or (node.type == "compound_statement" and first == b"((")
    )
