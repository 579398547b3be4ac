"""``@path`` imports in instruction files: finding them in a text, and inserting the imported text.

A path is relative to its file; paths in code are not imports. Only text files inside the allowed roots are imported,
and no file imports itself, directly or through others. Not here: the choice of instruction files, see
`isthmus.agent.memory.reading`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

MAXIMUM_DEPTH = 5
"""Maximum nesting of imports, as in Gemini CLI."""
MAXIMUM_IMPORTS = 100
"""Maximum number of imports in one instruction file, including nested ones."""

MAXIMUM_PATH = 1_024
"""Maximum length in characters of an imported path."""

_IMPORT = re.compile(r"(?<![^\s(\[])@(?=[\w./~])(\S+)")
_BACKTICKS = re.compile(r"`+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_LIST_ITEM = re.compile(r" {0,3}([-*+]|\d+[.)])\s")
_TRAILING = ".,;:!?)]}>'\""

ReadText = Callable[[Path], "str | None"]
"""Reads a file for an import; returns None if it must not or cannot be read, after reporting that to the user."""


@dataclass(slots=True)
class Imported:
    """A text with its imports inserted, the imported files, and the failed imports."""

    text: str
    files: list[Path] = field(default_factory=list[Path])
    problems: list[str] = field(default_factory=list[str])


def with_imports(text: str, path: Path, locate: Callable[[str, Path], Path | None], read: ReadText) -> Imported:
    """Return the text of ``path`` with its imports inserted.

    ``locate`` returns the file that a path means in a folder; None if no such file may be read.
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
        pieces += [text[end:start], _frame(written, inner)]
        end = stop
    pieces.append(text[end:])
    return "".join(pieces)


def _target(written: str, folder: Path, locate: Callable[[str, Path], Path | None]) -> tuple[Path | None, str]:
    """Return the imported file, and its path without the punctuation of the sentence around it."""
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


def _frame(written: str, text: str) -> str:
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
    """Return the line with its code spans (between two runs of equally many backticks) blanked out."""
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
    """Yield each line with its line ending, and whether it is in a fenced or an indented block of code."""
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
