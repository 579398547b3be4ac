"""The built-in search engine: a program that finds the lines of files that match a Python regular expression.

It runs in its own process, so that an expression that does not terminate can be killed, and imports only the standard
library, so that it starts quickly. Standard input is one line of JSON, the query, followed by the paths, each ended by
a NUL byte. Standard output is one line of JSON for each file with matches, or that was not searched.
"""

import codecs
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

MAXIMUM_FILE_BYTES = 10 * 1024 * 1024
"""Maximum size of files that are searched."""
MAXIMUM_LINE_CHARACTERS = 2_000
SAMPLE_BYTES = 8_192

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_PLAIN = re.compile(r"[\w \"'#%&,/:;<=>@`~!-]+")
"""Literal patterns: a file that does not contain one need not be searched line by line."""


def is_binary(sample: bytes) -> bool:
    """Return whether a file that begins with these bytes is binary: it contains a NUL byte and is not UTF-16."""
    return b"\0" in sample[:SAMPLE_BYTES] and not sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def lines_of(data: bytes) -> list[str]:
    """Return the lines of a file without their newlines; bytes that are not UTF-8 become lone surrogates."""
    return _text(data).split("\n")


def _text(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    return data.decode("utf-8", "surrogateescape")


def compiled(query: dict[str, Any]) -> re.Pattern[str]:
    """Return the regular expression of a query.

    Raises:
        re.error: the expression is invalid.
    """
    pattern = re.escape(query["pattern"]) if query["fixed_strings"] else query["pattern"]
    return re.compile(pattern, 0 if query["case_sensitive"] else re.IGNORECASE)


def matching_lines(
    data: bytes, search: Callable[[str], object], excluded: Callable[[str], object] | None, may_skip: bool
) -> Iterator[tuple[int, str]]:
    """Yield the 1-based numbers and texts of the matching lines. `may_skip`: search the whole text first."""
    text = _text(data).replace("\r\n", "\n")
    if may_skip and not search(text):
        return
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    for number, line in enumerate(lines, 1):
        if search(line) and not (excluded is not None and excluded(line)):
            yield number, line


def printable(line: str) -> str:
    """Return the line as valid Unicode, cut to one character more than the limit."""
    return line[: MAXIMUM_LINE_CHARACTERS + 1].encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def main() -> None:
    """Answer the query on standard input."""
    query = json.loads(sys.stdin.buffer.readline())
    regex = compiled(query)
    may_skip = query["fixed_strings"] or _PLAIN.fullmatch(query["pattern"]) is not None
    excluded = re.compile(query["exclude"], regex.flags).search if query["exclude"] else None
    for index, path in enumerate(sys.stdin.buffer.read().split(b"\0")[:-1]):
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - pathlib takes longer to import than the search
                sample = file.read(SAMPLE_BYTES)
                if is_binary(sample):
                    _report(index, [], "binary")
                    continue
                data = sample + file.read(MAXIMUM_FILE_BYTES)
                cut = "large" if file.read(1) else ""
        except OSError:
            _report(index, [], "unreadable")
            continue
        found: list[tuple[int, str]] = []
        for number, line in matching_lines(data, regex.search, excluded, may_skip):
            if len(found) == query["maximum"]:
                break
            found.append((number, printable(line)))
        if found or cut:
            _report(index, found, cut)


def _report(index: int, found: list[tuple[int, str]], skipped: str = "") -> None:
    sys.stdout.write(json.dumps([index, found, skipped]) + "\n")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os._exit(1)
