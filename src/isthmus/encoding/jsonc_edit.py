"""Sets or removes one member of a JSONC text without changing any other character. Pure.

Comments, order, indentation, trailing commas, line ends and a byte order mark stay. If a key occurs twice in an object,
the last one counts, as for readers of the file. Elements of lists are not edited.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.record import record

_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t\r\n]+)
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<open>[{\[])
    | (?P<close>[}\]])
    | (?P<comma>,)
    | (?P<colon>:)
    | (?P<word>[^\s,:{}\[\]"/]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_BYTE_ORDER_MARK = "\ufeff"
_BLANKS = " \t\r\n"


@record
class _Token:
    kind: str
    start: int
    end: int


@dataclass(slots=True)
class _Member:
    """Offsets of a member in the text; ``comma`` is the offset of the comma after its value."""

    key: str
    start: int
    value_start: int
    value_end: int
    comma: int | None = None


@record
class _Object:
    """An object: ``start`` is the offset of its ``{``, ``end`` the offset of its ``}``."""

    start: int
    end: int
    members: tuple[_Member, ...]

    def find(self, key: str) -> _Member | None:
        return next((member for member in reversed(self.members) if member.key == key), None)


@record
class _Edit:
    start: int
    end: int
    text: str


def set_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return `text` with the member at `path` (keys, outermost first) set to a JSON value.

    An existing member keeps its place; a new one comes last. Missing objects on the path are added, also in place
    of null. An empty text is an empty object.

    Raises:
        JsoncError: the text is not JSON, or the value at the top or on the path is not an object.
    """
    if not path:
        raise ValueError("expected the key of a member")
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    if not text.removeprefix(mark).strip(_BLANKS):
        line_end = _line_end(text)
        return f"{mark}{_format_value(_nest(path, value), '', '  ', line_end)}{line_end}"
    parse(text)
    found = _object(text, _start(text), ())
    for depth, key in enumerate(path):
        member = found.find(key)
        rest = path[depth + 1 :]
        if member is None:
            return _apply(text, _insertion(text, found, key, _nest(rest, value)))
        is_absent = text[member.value_start : member.value_end] == "null"
        if not rest or is_absent:
            written = _replacement(text, found, member, _nest(rest, value))
            return _apply(text, [_Edit(member.value_start, member.value_end, written)])
        found = _object(text, member.value_start, path[: depth + 1])
    raise AssertionError("the last key ends the loop")


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return `text` without the member at `path`, if it exists. Comments outside of the member stay.

    Raises:
        JsoncError: the text is not JSON, or the value at the top or on the path is not an object.
    """
    if not text.removeprefix(_BYTE_ORDER_MARK).strip(_BLANKS):
        return text
    while True:
        parse(text)
        found = _object(text, _start(text), ())
        for depth, key in enumerate(path[:-1]):
            member = found.find(key)
            if member is None or text[member.value_start : member.value_end] == "null":
                return text
            found = _object(text, member.value_start, path[: depth + 1])
        member = found.find(path[-1])
        if member is None:
            return text
        # Repeat: if the key occurs twice, the other one would count now.
        text = _apply(text, _removal(text, found, member))


# --- reading ---------------------------------------------------------------------------------------------------------


def _tokens(text: str, start: int) -> Iterator[_Token]:
    """Yield the tokens from `start` on, without blanks; the text has been parsed, so that nothing else is there."""
    position = start
    while (match := _TOKEN.match(text, position)) is not None:
        position = match.end()
        if match.lastgroup != "blank":
            yield _Token(str(match.lastgroup), match.start(), match.end())
    if position < len(text):
        raise _error(text, position, f"unexpected character {text[position]!r}")


def _start(text: str) -> int:
    """Return the offset at which the value of the whole text begins."""
    first = 1 if text.startswith(_BYTE_ORDER_MARK) else 0
    return next(token.start for token in _tokens(text, first) if token.kind != "comment")


def _object(text: str, start: int, path: Sequence[str]) -> _Object:
    """Return the object whose ``{`` is at `start`."""
    if text[start] != "{":
        where = f"{'.'.join(path)}: " if path else ""
        raise _error(text, start, f"{where}expected an object {{...}}")
    members: list[_Member] = []
    member: _Member | None = None
    depth, is_key = 0, True
    for token in _tokens(text, start):
        if token.kind == "open":
            depth += 1
        elif token.kind == "close":
            depth -= 1
            if depth == 0:
                return _Object(start, token.start, tuple(members))
        if token.kind == "comment" or (depth == 1 and token.start == start):
            continue
        if depth > 1 or token.kind == "close":
            if member is not None:
                member.value_start = min(member.value_start, token.start)
                member.value_end = token.end
        elif token.kind == "comma":
            if member is None or member.comma is not None:
                raise _error(text, token.start, "a comma without a member before it")
            member.comma = token.start
            is_key = True
        elif token.kind == "colon":
            is_key = False
        elif is_key:
            key = str(json.loads(text[token.start : token.end]))
            member = _Member(key, token.start, len(text), token.end)
            members.append(member)
        elif member is not None:
            member.value_start, member.value_end = token.start, token.end
    raise _error(text, len(text), "the object does not end")


def _error(text: str, position: int, message: str) -> JsoncError:
    before = text[:position].removeprefix(_BYTE_ORDER_MARK)
    return JsoncError(message, before.count("\n") + 1, len(before) - before.rfind("\n"))


# --- writing ---------------------------------------------------------------------------------------------------------


def _nest(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _apply(text: str, edits: Sequence[_Edit]) -> str:
    # From the end to the start; of two edits at one offset the later first, so that its text follows the other.
    for _, edit in sorted(enumerate(edits), key=lambda item: (item[1].start, item[0]), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _insertion(text: str, parent: _Object, key: str, value: Any) -> list[_Edit]:
    """Return the edits that add a member after the existing ones."""
    unit, line_end = _unit(text), _line_end(text)
    name = json.dumps(key, ensure_ascii=False)
    last = parent.members[-1] if parent.members else None
    if last is not None and not _begins_line(text, last.start):
        comma = [] if last.comma is not None else [_Edit(last.value_end, last.value_end, ",")]
        place = last.value_end if last.comma is None else last.comma + 1
        # After a line comment, only a new line can hold the member.
        end = _end_of_remarks(text, place)
        gap = " " if end == place else f"{line_end}{_indentation(text, last.start)}"
        again = "," if last.comma is not None else ""
        return [*comma, _Edit(end, end, f"{gap}{name}: {json.dumps(value, ensure_ascii=False)}{again}")]
    if last is None:
        outer = _indentation(text, parent.start)
        inner = outer + unit
        place = end = _end_of_contents(text, parent)
        edits: list[_Edit] = []
        is_closed = "\n" in text[end : parent.end]
        tail = "" if is_closed else f"{line_end}{outer}"
    else:
        inner = _indentation(text, last.start)
        edits = [] if last.comma is not None else [_Edit(last.value_end, last.value_end, ",")]
        place = last.value_end if last.comma is None else last.comma + 1
        end = _end_of_remarks(text, place)
        tail = "," if last.comma is not None else ""
    edits.append(_Edit(end, end, f"{line_end}{inner}{name}: {_format_value(value, inner, unit, line_end)}{tail}"))
    return edits


def _replacement(text: str, parent: _Object, member: _Member, value: Any) -> str:
    """Return the text of a value in place of the one of `member`: on one line if its object is on one line."""
    if not _begins_line(text, member.start) and "\n" not in text[parent.start : parent.end]:
        return json.dumps(value, ensure_ascii=False)
    return _format_value(value, _indentation(text, member.start), _unit(text), _line_end(text))


def _removal(text: str, parent: _Object, member: _Member) -> list[_Edit]:
    edits: list[_Edit] = []
    end = member.value_end
    if member.comma is not None:
        between = text[end : member.comma]
        if between.strip(_BLANKS):
            edits.append(_Edit(member.comma, member.comma + 1, ""))
        else:
            end = member.comma + 1
    else:
        index = parent.members.index(member)
        before = parent.members[index - 1] if index else None
        if before is not None and before.comma is not None:
            edits.append(_Edit(before.comma, before.comma + 1, ""))
    start, line_start = member.start, text.rfind("\n", 0, member.start) + 1
    behind = end + len(text[end:]) - len(text[end:].lstrip(" \t"))
    ends_line = text.startswith(("\n", "\r\n"), behind)
    if ends_line and _begins_line(text, start):
        start, end = line_start, text.index("\n", behind) + 1
    elif ends_line or (member.comma is None and not _begins_line(text, start)):
        start = len(text[:start].rstrip(" \t"))
    else:
        end = behind
    return [*edits, _Edit(start, end, "")]


def _format_value(value: Any, indentation: str, unit: str, line_end: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{line_end}{indentation}".join(lines)


def _line_end(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _unit(text: str) -> str:
    """Return the indentation of one level, taken from the first member of the outermost object."""
    members = _object(text, _start(text), ()).members
    if members and _begins_line(text, members[0].start) and (found := _indentation(text, members[0].start)):
        return found
    return "  "


def _indentation(text: str, position: int) -> str:
    """Return the blanks at the beginning of the line of `position`."""
    line = text[text.rfind("\n", 0, position) + 1 : position].removeprefix(_BYTE_ORDER_MARK)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_line(text: str, position: int) -> bool:
    """Return whether only blanks precede `position` in its line, and the line is not the first."""
    line_start = text.rfind("\n", 0, position) + 1
    return line_start > 0 and not text[line_start:position].strip(" \t")


def _end_of_remarks(text: str, position: int) -> int:
    """Return the end of the comments that follow in the same line; `position` if there are none."""
    end = position
    for token in _tokens(text, position):
        if token.kind != "comment" or "\n" in text[end : token.start]:
            break
        end = token.end
    # A carriage return before the line feed belongs to the line end, not to the comment.
    return end - 1 if text[end - 1 : end + 1] == "\r\n" and end > position else end


def _end_of_contents(text: str, parent: _Object) -> int:
    """Return the end of the comments in an object without members; the offset after its ``{`` if it has none."""
    end = parent.start + 1
    for token in _tokens(text, parent.start + 1):
        if token.kind != "comment":
            break
        end = token.end
    return end - 1 if text[end - 1 : end + 1] == "\r\n" and end > parent.start + 1 else end
