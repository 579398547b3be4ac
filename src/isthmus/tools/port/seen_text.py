"""The text of a file as a model has seen it: its digest, and the lines that were shown.

Line ends and the last newline do not count. What a session makes of it is in :mod:`isthmus.agent.session.known_files`.
"""

import hashlib
import json
import re
from pathlib import Path, PurePath

from isthmus.internal_events import SeenText
from isthmus.notebooks.notebook import NotebookError, parse
from isthmus.text.diff import split_lines
from isthmus.tools.port.content import read_bytes, text_of
from isthmus.tools.port.excerpt import Excerpt
from isthmus.tools.port.failure import ToolFailure

_NUMBER = re.compile(r"^\d+\t", re.MULTILINE)


def seen_text(path: PurePath, text: str, excerpt: Excerpt) -> SeenText:
    """Return what an excerpt shows of the file at an absolute path with this text; lines that are cut do not count."""
    last = 0 if excerpt.has_cut_lines else excerpt.last
    return SeenText(str(path), text_digest(text), excerpt.first, last, excerpt.total, cells_digest(path, text))


def whole_text(path: PurePath, text: str) -> SeenText:
    """Return that the whole text of the file at an absolute path is known."""
    lines = len(split_lines(text))
    return SeenText(str(path), text_digest(text), 1, lines, lines, cells_digest(path, text))


def file_now(path: Path) -> SeenText | None:
    """Return the state of a file, of which no line is shown; None if it is not there or not text. Blocks."""
    try:
        text = text_of(read_bytes(path, path.name), path, path.name).text
    except ToolFailure:
        return None
    return SeenText(str(path), text_digest(text), 1, 0, len(split_lines(text)), cells_digest(path, text))


def comparable_text(text: str) -> str:
    """Return a text without what does not count: kinds of line ends, and the last newline."""
    return text.replace("\r\n", "\n").removesuffix("\n")


def without_line_numbers(text: str) -> str:
    """Return a text that a model was given without the numbers that :class:`Excerpt` puts before lines."""
    return _NUMBER.sub("", text)


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits, without what does not count."""
    return _sha256(comparable_text(text))


def cells_digest(path: PurePath, text: str) -> str:
    """Return the SHA-256 of a notebook's cells without their outputs; empty for any other file."""
    if path.suffix.lower() != ".ipynb":
        return ""
    try:
        return _sha256(json.dumps([(cell.kind, cell.source) for cell in parse(text).cells]))
    except NotebookError:
        return ""


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
