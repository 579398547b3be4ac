"""Writes the tables of settings keys into the documents, each between two marks. A test keeps them current."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from isthmus.settings.guards import GUARDS
from isthmus.settings.keys import KEYS

DOCS = Path(__file__).resolve().parent.parent / "docs"
COMMAND = ".venv/bin/python scripts/settings_tables.py"
_MARKED = re.compile(r"(<!-- (\w+): written by scripts/settings_tables\.py [^>]*-->\n)(.*?)(<!-- /\2 -->)", re.DOTALL)


def _meanings() -> Iterable[str]:
    yield from ("| key | meaning | files |", "|---|---|---|")
    yield from (f"| `{key.name}` | {key.effect} | {key.reader.merge.value} |" for key in KEYS.values())


def _setters() -> Iterable[str]:
    yield from ("| key | may be set by |", "|---|---|")
    for key in KEYS.values():
        limit = f"; it {key.limit}" if key.limit else ""
        yield f"| `{key.name}` | {key.setter.value}{limit} |"


def _guards() -> Iterable[str]:
    yield from ("| key | in Gemini CLI |", "|---|---|")
    yield from (f"| `{key}` | {effect} |" for key, effect in GUARDS.items())


TABLES: Mapping[str, Mapping[str, Callable[[], Iterable[str]]]] = {
    "reference/settings.md": {"keys": _meanings, "guards": _guards},
    "explanation/security.md": {"keys": _setters},
}
"""Functions that return the lines of the tables of each page, by their marks."""


def tables(page: str) -> Mapping[str, str]:
    """Return the tables of a page as they are to be, by their marks."""
    return {mark: "".join(f"{line}\n" for line in lines()) for mark, lines in TABLES[page].items()}


def tables_in(text: str) -> Mapping[str, str]:
    """Return the tables in the text of a page, by their marks."""
    return {found[2]: found[3] for found in _MARKED.finditer(text)}


def with_tables(text: str, written: Mapping[str, str]) -> str:
    """Return the text of a page with other tables between its marks."""
    return _MARKED.sub(lambda found: f"{found[1]}{written[found[2]]}{found[4]}", text)


if __name__ == "__main__":
    for name in TABLES:
        page = DOCS / name
        page.write_text(with_tables(page.read_text(encoding="utf-8"), tables(name)), encoding="utf-8")
        sys.stdout.write(f"{page}\n")
