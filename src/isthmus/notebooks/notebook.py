"""Jupyter notebooks (``.ipynb``) as text, with the exact text of each cell, so that other cells are not changed. Pure.

A cell keeps its source text; its value is only for reading. There is no validation against nbformat's schema. Not here:
the changes between two notebooks, see :mod:`isthmus.notebooks.changes`.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from isthmus.encoding.codec import MAXIMUM_DEPTH, JsonObject, is_deeper
from isthmus.errors import IsthmusError
from isthmus.record import record

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class NotebookError(IsthmusError):
    """Text that is not a notebook; the message contains the expectation and the position."""


@record
class Cell:
    """A cell. ``text`` is its exact text in the file, from its ``{`` to its ``}``.

    ``lead`` contains the blanks between the ``[`` or comma and the cell; ``trail`` those between the cell and the comma
    or ``]``.
    """

    text: str
    value: JsonObject
    lead: str
    trail: str

    @property
    def id(self) -> str | None:
        """The cell's id (from nbformat 4.5 on), or None."""
        found = self.value.get("id")
        return found if isinstance(found, str) and found else None

    @property
    def kind(self) -> str:
        """Kind of the cell as in the file, usually ``code``, ``markdown`` or ``raw``."""
        return str(self.value.get("cell_type", "code"))

    @property
    def source(self) -> str:
        """The user's text; in the file it may be a list of lines."""
        return _join(self.value.get("source", ""))

    @property
    def outputs(self) -> tuple[JsonObject, ...]:
        """The outputs of a code cell."""
        found: object = self.value.get("outputs")
        if not isinstance(found, list):
            return ()
        return tuple(cast(JsonObject, item) for item in cast("list[object]", found) if isinstance(item, dict))


@record
class Notebook:
    """A parsed notebook. ``head + cells + tail`` is its text: head ends with the ``[``, tail begins with the ``]``.

    ``members`` are the other members of the outermost object: metadata and format version. ``end_blanks`` contains the
    blanks between ``[`` and ``]`` if there are no cells.
    """

    head: str
    cells: tuple[Cell, ...]
    tail: str
    members: JsonObject
    end_blanks: str = ""

    @property
    def text(self) -> str:
        """The whole text, as parsed."""
        return self.with_cells(self.cells)

    def with_cells(self, cells: Sequence[Cell]) -> str:
        """Return the text with other cells. Head, tail and the texts of the cells are not changed."""
        if not cells:
            return f"{self.head}{'' if self.cells else self.end_blanks}{self.tail}"
        last = self.cells[-1] if self.cells else cells[-1]
        # Blanks before a comma belong to the cell; those before the `]` belong to the last cell, whichever it is.
        parts = [f"{cell.lead}{cell.text}{'' if cell is last else cell.trail}" for cell in cells]
        return f"{self.head}{','.join(parts)}{last.trail}{self.tail}"


def parse(text: str) -> Notebook:
    """Parse a notebook. A byte order mark stays in ``head``.

    Raises:
        NotebookError: the text is not JSON, or has no list of cells.
    """
    try:
        notebook = _parse(text)
        if is_deeper([notebook.members, *(cell.value for cell in notebook.cells)], MAXIMUM_DEPTH):
            raise RecursionError
        return notebook
    except json.JSONDecodeError as error:
        raise NotebookError(
            f"it is not a notebook: expected JSON; line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except (RecursionError, MemoryError) as error:
        raise NotebookError(f"it is not a notebook: its JSON is nested more than {MAXIMUM_DEPTH} deep") from error
    except ValueError as error:
        raise NotebookError(f"it is not a notebook: its JSON cannot be read: {error}") from error


def with_source(cell: Cell, source: str) -> Cell:
    """Return the cell with another source, in the former form (list of lines or string). Nothing else changes."""
    value = {**cell.value, "source": source}
    position = _blanks(cell.text, 1)
    while cell.text[position] != "}":
        key, position = _string(cell.text, position)
        start = _blanks(cell.text, _expect(cell.text, position, ":"))
        found, end = cast("tuple[object, int]", _DECODER.raw_decode(cell.text, start))
        if key == "source":
            written = _format_source(cell.text[start:end], found, source)
            return replace(cell, text=cell.text[:start] + written + cell.text[end:], value=value)
        position = _blanks(cell.text, end)
        if cell.text[position] == ",":
            position = _blanks(cell.text, position + 1)
    comma = "" if cell.text[1:-1].strip(" \t\r\n") == "" else ", "
    return replace(cell, text=f'{{"source": {_format_source("", "", source)}{comma}{cell.text[1:]}', value=value)


def _format_source(former: str, value: object, source: str) -> str:
    if not isinstance(value, list):
        return json.dumps(source, ensure_ascii=False)
    lines = [json.dumps(line, ensure_ascii=False) for line in source.splitlines(keepends=True)]
    if not lines:
        return "[]"
    inner = _blanks(former, 1)
    lead = former[1:inner] if former[inner] != "]" else ""
    end = former[len(former[:-1].rstrip(" \t\r\n")) : -1] if lead else ""
    return f"[{lead}{(',' + (lead or ' ')).join(lines)}{end}]"


def _parse(text: str) -> Notebook:
    position = _blanks(text, 1 if text.startswith("\ufeff") else 0)
    position = _blanks(text, _expect(text, position, "{"))
    members: dict[str, Any] = {}
    found: tuple[int, int, tuple[Cell, ...], str] | None = None
    while text[position : position + 1] != "}":
        key, position = _string(text, position)
        start = _blanks(text, _expect(text, position, ":"))
        if key == "cells" and text[start : start + 1] == "[":
            cells, blanks, end = _cells(text, start)
            found = (start + 1, end - 1, cells, blanks)
        else:
            members[key], end = _DECODER.raw_decode(text, start)
        position = _blanks(text, end)
        if text[position : position + 1] == ",":
            position = _blanks(text, position + 1)
            if text[position : position + 1] == "}":
                raise json.JSONDecodeError("expected a member after the comma", text, position)
        elif text[position : position + 1] != "}":
            raise json.JSONDecodeError("expected a comma or }", text, position)
    if _blanks(text, position + 1) != len(text):
        raise json.JSONDecodeError("expected nothing after the notebook", text, position + 1)
    if found is None or "cells" in members:
        raise NotebookError("it is not a notebook: expected one member 'cells' with a list")
    start, end, cells, blanks = found
    return Notebook(text[:start], cells, text[end:], members, blanks)


def _cells(text: str, start: int) -> tuple[tuple[Cell, ...], str, int]:
    """Return the cells of the list whose ``[`` is at `start`, the blanks in an empty list, and its end."""
    cells: list[Cell] = []
    position = start + 1
    while True:
        begin = _blanks(text, position)
        if text[begin : begin + 1] == "]" and not cells:
            return (), text[position:begin], begin + 1
        value, end = cast("tuple[object, int]", _DECODER.raw_decode(text, begin))
        if not isinstance(value, dict):
            raise NotebookError(f"it is not a notebook: expected an object as cell {len(cells) + 1}")
        behind = _blanks(text, end)
        cells.append(Cell(text[begin:end], cast(JsonObject, value), text[position:begin], text[end:behind]))
        if text[behind : behind + 1] == "]":
            return tuple(cells), "", behind + 1
        position = _expect(text, behind, ",")


def _string(text: str, position: int) -> tuple[str, int]:
    if text[position : position + 1] != '"':
        raise json.JSONDecodeError("expected a name in quotes", text, position)
    key, end = cast("tuple[str, int]", _DECODER.raw_decode(text, position))
    return key, _blanks(text, end)


def _expect(text: str, position: int, character: str) -> int:
    if text[position : position + 1] != character:
        raise json.JSONDecodeError(f"expected {character}", text, position)
    return position + 1


def _blanks(text: str, position: int) -> int:
    found = _BLANKS.match(text, position)
    return found.end() if found is not None else position


def _join(value: object) -> str:
    if isinstance(value, list):
        return "".join(str(line) for line in cast("list[object]", value))
    return str(value)
