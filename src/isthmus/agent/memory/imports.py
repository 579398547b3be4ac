"""``@path`` imports in instruction files: where they stand in a text, and which text they bring.

A path is relative to the file it stands in; code is left as it is. Only text files inside the allowed roots are
imported, each once on the way down, so that a cycle ends. Deliberately not here: which files are read at first.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

MAXIMUM_DEPTH = 5
"""Maximum nesting of imports, as in Gemini CLI."""
MAXIMUM_IMPORTS = 100
"""Imports in one instruction file, nested ones counted."""

MAXIMUM_PATH = 1_024
"""Characters of a path that is written in a file."""

_IMPORT = re.compile(r"(?<![^\s(\[])@(?=[\w./~])(\S+)")
_BACKTICKS = re.compile(r"`+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_LIST_ITEM = re.compile(r" {0,3}([-*+]|\d+[.)])\s")
_TRAILING = ".,;:!?)]}>'\""

ReadText = Callable[[Path], "str | None"]
"""Reads a file for an import; None when it may not be read, which the reader reports to the user."""


@dataclass(slots=True)
class Imported:
    """A text with its imports in place, the files that came in, and what could not be imported."""

    text: str
    files: list[Path] = field(default_factory=list[Path])
    problems: list[str] = field(default_factory=list[str])


def with_imports(text: str, path: Path, locate: Callable[[str, Path], Path | None], read: ReadText) -> Imported:
    """Return the text of ``path`` with what it imports in place.

    ``locate`` gives the file that a written path means in a folder, None when there is none that may be read.
    """
    found = Imported("")
    found.text = _replace(text, path, (path,), locate, read, found)
    return found


def _replace(
    text: str,
    path: Path,
    chain: tuple[Path, ...],
    locate: Callable[[str, Path], Path | None],
    read: ReadText,
    found: Imported,
) -> str:
    pieces: list[str] = []
    end = 0
    for start, stop, written in imports_in(text):
        target, written = _target(written, path.parent, locate)
        stop = start + 1 + len(written)
        if target is None:
            if _is_meant_as_file(written):
                found.problems.append(f"{path} imports {written}, which is not a file that may be imported")
            continue
        if target in chain:
            found.problems.append(f"{path} imports {written}, which imports it in turn; left out there")
            continue
        if len(chain) > MAXIMUM_DEPTH or len(found.files) >= MAXIMUM_IMPORTS:
            limit = f"more than {MAXIMUM_DEPTH} deep" if len(chain) > MAXIMUM_DEPTH else f"the limit {MAXIMUM_IMPORTS}"
            found.problems.append(f"{path} imports {written}: left out, {limit}")
            continue
        content = read(target)
        if content is None:
            continue
        found.files.append(target)
        inner = _replace(content, target, (*chain, target), locate, read, found)
        pieces += [text[end:start], _framed(written, inner)]
        end = stop
    pieces.append(text[end:])
    return "".join(pieces)


def _target(written: str, folder: Path, locate: Callable[[str, Path], Path | None]) -> tuple[Path | None, str]:
    """Return the file that is meant, without the punctuation of the sentence around it."""
    name = written if len(written) <= MAXIMUM_PATH else ""
    while name:
        target = locate(name, folder)
        if target is not None:
            return target, name
        if name[-1] not in _TRAILING:
            break
        name = name[:-1]
    return None, written[:MAXIMUM_PATH].rstrip(_TRAILING) or written


def _is_meant_as_file(written: str) -> bool:
    return written.startswith(("./", "../", "/", "~/")) or written.lower().endswith((".md", ".txt", ".mdx"))


def _framed(written: str, text: str) -> str:
    return f"<!-- Imported from: {written} -->\n{text.strip()}\n<!-- End of import from: {written} -->"


def imports_in(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and path of each ``@path`` outside code."""
    offset = 0
    for line, is_code in _lines(text):
        if not is_code and "@" in line:
            for match in _IMPORT.finditer(_without_code_spans(line)):
                yield offset + match.start(), offset + match.end(), match[1]
        offset += len(line)


def _without_code_spans(line: str) -> str:
    """Return the line with blanks in place of what stands between two runs of equally many backticks."""
    runs = [found.span() for found in _BACKTICKS.finditer(line)]
    later: dict[int, list[int]] = {}
    for index in reversed(range(len(runs))):
        later.setdefault(runs[index][1] - runs[index][0], []).append(index)
    pieces: list[str] = []
    end = index = 0
    while index < len(runs):
        start, stop = runs[index]
        same = later[stop - start]
        while same and same[-1] <= index:
            same.pop()
        if same:
            index = same.pop()
            pieces += [line[end:start], " " * (runs[index][1] - start)]
            end = runs[index][1]
        index += 1
    return "".join((*pieces, line[end:]))


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines with their ends, and whether each is in a fenced or an indented block of code."""
    fence = ""
    is_blank_before, is_in_list, is_indented = True, False, False
    for line in text.splitlines(keepends=True):
        match = _FENCE.match(line)
        if fence:
            yield line, True
            if match is not None and match[1].startswith(fence) and not match[2].strip():
                fence = ""
            continue
        if match is not None and not (match[1][0] == "`" and "`" in match[2]):
            fence = match[1]
            yield line, True
            is_blank_before = False
            continue
        is_blank = not line.strip()
        deep = line.startswith(("    ", "\t"))
        is_indented = deep and not is_blank and not is_in_list and (is_blank_before or is_indented)
        if not deep and not is_blank:
            is_in_list = _LIST_ITEM.match(line) is not None
        yield line, is_indented
        is_blank_before = is_blank
