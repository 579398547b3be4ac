"""Insert a text into a shell command as data: the shell never interprets it, even if its place is inside quotes.

The syntax around each place determines the quoting, so that the quotes of the command and the inserted quotes do not
cancel each other out. A place where no quoting is safe is refused. Not covered: a program that passes its arguments to
a shell again (``bash -c "... {{args}}"``).
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
    """A place in a shell command where a text cannot be quoted."""


def with_text(command: str, place: str, text: str) -> str:
    """Return the command with ``text`` in place of each ``place``, quoted for its surroundings.

    Raises:
        UnquotableError: the command cannot be parsed, or a place is in a comment, a here-document or the like.
    """
    pieces = command.split(place)
    if len(pieces) == 1:
        return command
    marks = [_mark(command, number) for number in range(len(pieces) - 1)]
    marked = pieces[0] + "".join(f"{mark}{piece}" for mark, piece in zip(marks, pieces[1:], strict=True))
    root = parse_shell(marked)
    if root is None or root.has_error:
        raise UnquotableError(
            f"{place} cannot be replaced: {command[:200]!r} is not a shell command that can be parsed"
        )
    source, end = marked.encode(), 0
    written: list[str] = []
    for mark in marks:
        start = source.index(mark.encode(), end)
        written += [source[end:start].decode(), _quoted(root, start, start + len(mark), place, text)]
        end = start + len(mark)
    return "".join((*written, source[end:].decode()))


def _mark(command: str, number: int) -> str:
    """Return a word that marks a place and does not occur in the command."""
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
        f"{place} is where it cannot be quoted for the shell (a comment, a here-document, backquotes, ${{...}},"
        f' arithmetic, or after a backslash); put it into a variable first: x={place}; ... "$x"'
    )


def _around(root: "Node", start: int, end: int) -> Iterator["Node"]:
    """Yield the nodes that contain a place, innermost first."""
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
