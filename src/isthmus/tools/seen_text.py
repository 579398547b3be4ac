"""The text of a file as a model has seen it: its digest, and the lines that were shown.

Line ends and the last newline do not count, nor do the outputs of a notebook. What a session makes of it is in
:mod:`isthmus.agent.seen_files`.
"""

import hashlib
import json
from pathlib import Path, PurePath

from isthmus.internal_events import SeenText
from isthmus.notebooks.notebook import NotebookError, parse
from isthmus.text.diff import split_lines
from isthmus.tools.content import read_bytes, text_of
from isthmus.tools.excerpt import Excerpt
from isthmus.tools.failure import ToolFailure


def seen_text(path: PurePath, text: str, excerpt: Excerpt) -> SeenText:
    """Return what an excerpt shows of the file at an absolute path with this text; lines that are cut do not count."""
    last = 0 if excerpt.has_cut_lines else excerpt.last
    return SeenText(str(path), text_digest(path, text), excerpt.first, last, excerpt.total)


def whole_text(path: PurePath, text: str) -> SeenText:
    """Return that the whole text of the file at an absolute path is known."""
    lines = len(split_lines(text))
    return SeenText(str(path), text_digest(path, text), 1, lines, lines)


def comparable_text(path: PurePath, text: str) -> str:
    """Return a text without what does not count: kinds of line ends, the last newline, outputs of a notebook."""
    if path.suffix.lower() == ".ipynb":
        try:
            return json.dumps([(cell.kind, cell.source) for cell in parse(text).cells])
        except NotebookError:
            pass
    return text.replace("\r\n", "\n").removesuffix("\n")


def file_digest(path: Path) -> str | None:
    """Return the digest of a file as it is now; None if it is not there, or cannot be read as text. Blocks."""
    try:
        return text_digest(path, text_of(read_bytes(path, path.name), path, path.name).text)
    except ToolFailure:
        return None


def text_digest(path: PurePath, text: str) -> str:
    """Return the SHA-256 of the text of a file, in hexadecimal digits, without what does not count."""
    return hashlib.sha256(comparable_text(path, text).encode("utf-8", "surrogatepass")).hexdigest()
