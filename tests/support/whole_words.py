"""Texts of the program, found in its source, and a search for words that a screen breaks between two rows."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pyte
from wcwidth import wcswidth

from support.terminal_screen import TerminalScreen

SOURCE = Path(__file__).resolve().parents[2] / "src" / "isthmus"
PLACEHOLDER = "a-name-of-some-length"
"""Text in the place of each value in an f-string."""
FEWEST_WORDS = 4
SIZES = ((80, 24), (120, 40), (50, 24))
"""Columns and rows of the windows that are looked at."""


def texts_in(*rooms: str) -> list[str]:
    """Return the texts of four words or more in these files and folders of the source, without its docstrings."""
    found: dict[str, None] = {}
    for room in rooms:
        place = SOURCE / room
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            for text in _literals(ast.parse(path.read_text("utf-8"))):
                line = " ".join(text.split())
                if len(line.split()) >= FEWEST_WORDS:
                    found[line] = None
    return list(found)


def rows_of(output: str, columns: int) -> list[str]:
    """Return the rows that a terminal of this width shows after this output."""
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output).split("\n")
    screen = TerminalScreen(columns, sum(len(line) // columns + 2 for line in lines))
    pyte.Stream(screen).feed(output.replace("\n", "\r\n"))
    return "\n".join(row.rstrip() for row in screen.display).rstrip().split("\n")


def broken_words(rows: Sequence[str], texts: Iterable[str], columns: int) -> list[str]:
    """Return the words of `texts` that end one row and go on in the next, though they are shorter than half a row."""
    words = {word for text in texts for word in text.split() if wcswidth(word) <= columns // 2}
    broken: list[str] = []
    for above, below in pairwise(rows):
        if above.split() and below.split():
            end, beginning = above.split()[-1], below.split()[0]
            if end + beginning in words and end not in words:
                broken.append(f"{end}|{beginning}")
    return broken


def _literals(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else PLACEHOLDER for part in node.values]
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield from _literals(node)
