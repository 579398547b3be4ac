"""Supported linters: their command lines and the decoding of their output. Pure; callers pass the texts of files.

Positions: ruff counts rows and columns from 1, columns in characters; pyright's positions are as in LSP. In a notebook
they are relative to the cell, which the message names.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final, cast

from isthmus.encoding.codec import from_json
from isthmus.errors import DecodeError
from isthmus.ide.editor import Diagnostic, Position, Severity
from isthmus.ide.positions import from_encoding, from_one_based, line_at, ordered
from isthmus.notebooks.notebook import NotebookError, parse
from isthmus.record import record
from isthmus.text.offsets import OffsetEncoding

MAXIMUM_DIAGNOSTICS: Final = 1000
"""Maximum number of diagnostics of one run."""
_ERRORS: Final = frozenset({None, "invalid-syntax", "E902", "F821"})
"""Codes that ruff's own language server reports as errors."""


@record
class Linter:
    """A linter. The paths of files are appended to ``command``; ``decode`` takes its output and the texts by path.

    ``seconds`` is the maximum duration of one run, ``suffixes`` the suffixes of the files that the linter reads.
    """

    name: str
    command: tuple[str, ...]
    seconds: float
    decode: Callable[[bytes, Mapping[str, str]], tuple[Diagnostic, ...]]
    suffixes: tuple[str, ...] = (".py", ".pyi")


@record
class _RuffPlace:
    row: int
    column: int


@record
class _RuffItem:
    filename: str
    message: str
    location: _RuffPlace
    end_location: _RuffPlace
    code: str | None = None
    cell: int | None = None


@record
class _PyrightPlace:
    line: int = 0
    character: int = 0


@record
class _PyrightRange:
    start: _PyrightPlace = field(default_factory=_PyrightPlace)
    end: _PyrightPlace = field(default_factory=_PyrightPlace)


@record
class _PyrightItem:
    file: str
    severity: str
    message: str
    range: _PyrightRange = field(default_factory=_PyrightRange)
    rule: str | None = None


@record
class _PyrightReport:
    general_diagnostics: tuple[_PyrightItem, ...]


def decode_ruff(data: bytes, texts: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """Decode the output of ``ruff check --output-format json``.

    Raises:
        DecodeError: the output is in another form.
    """
    value = _json(data, "ruff")
    if not isinstance(value, list):
        raise DecodeError("ruff", "a list", value)
    items = cast("list[object]", value)[:MAXIMUM_DIAGNOSTICS]
    return tuple(_ruff_diagnostic(from_json(_RuffItem, item, f"ruff[{i}]"), texts) for i, item in enumerate(items))


def _ruff_diagnostic(item: _RuffItem, texts: Mapping[str, str]) -> Diagnostic:
    text, message = texts.get(item.filename), item.message
    if item.cell is not None:
        text, message = _cell_source(text, item.cell), f"cell {item.cell}: {message}"
    at = ordered(_ruff_place(text, item.location), _ruff_place(text, item.end_location))
    severity = Severity.ERROR if item.code in _ERRORS else Severity.WARNING
    return Diagnostic(item.filename, at, severity, message, "ruff", item.code)


def _cell_source(text: str | None, number: int) -> str | None:
    """Return the source of a notebook's cell (1-based), because positions in notebooks are relative to the cell."""
    try:
        return parse(text).cells[number - 1].source if text is not None else None
    except (NotebookError, IndexError):
        return None  # changed meanwhile


def _ruff_place(text: str | None, place: _RuffPlace) -> Position:
    position = from_one_based(place.row, place.column)
    if text is None:
        return position
    line = line_at(text, position.line)[1] if position.line <= text.count("\n") else ""
    return Position(position.line, from_encoding(line, position.character, OffsetEncoding.UTF_32))


def decode_pyright(data: bytes, texts: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """Decode the output of ``pyright --outputjson``.

    Raises:
        DecodeError: the output is in another form.
    """
    report = from_json(_PyrightReport, _json(data, "pyright"), "pyright")
    return tuple(map(_pyright_diagnostic, report.general_diagnostics[:MAXIMUM_DIAGNOSTICS]))


def _pyright_diagnostic(item: _PyrightItem) -> Diagnostic:
    start, end = item.range.start, item.range.end
    at = ordered(Position(start.line, start.character), Position(end.line, end.character))
    severity = Severity(item.severity) if item.severity in set(Severity) else Severity.INFORMATION
    return Diagnostic(item.file, at, severity, item.message, "Pyright", item.rule)


def _json(data: bytes, where: str) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DecodeError(where, "JSON on standard output", data[:200].decode("utf-8", "replace")) from error


RUFF: Final = Linter(
    "ruff",
    # Without a cache: a project's settings may put it into any folder of the user.
    ("ruff", "check", "--output-format=json", "--force-exclude", "--no-fix", "--no-cache", "-q", "--exit-zero", "--"),
    10.0,
    decode_ruff,
    (".py", ".pyi", ".ipynb"),
)
PYRIGHT: Final = Linter("pyright", ("pyright", "--outputjson"), 60.0, decode_pyright)
LINTERS: Final[Mapping[str, Linter]] = {linter.name: linter for linter in (RUFF, PYRIGHT)}
