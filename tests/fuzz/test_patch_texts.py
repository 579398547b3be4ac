"""Diffs, edits and notebooks of any text: a proposal has the intended result, and no unexpected error is raised."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isthmus.development_tool import FileDiff
from isthmus.notebooks.changes import compare
from isthmus.notebooks.notebook import NotebookError, parse
from isthmus.notebooks.view import changes_between, describe
from isthmus.text.diff import line_opcodes, split_lines, unified_diff
from isthmus.text.text_file import BinaryContentError, UnencodableTextError, decode_text, with_newlines_of
from isthmus.tools.edits.replace import Replace
from isthmus.tools.port.base import ToolContext
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.workspace import Workspace
from support.fuzzing import TIMEOUT, cases

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(TIMEOUT)]

LINES = (
    "",
    "a",
    "b",
    "  a",
    "\ta",
    "a ",
    "--- a",
    "+++ b",
    "@@ -1 +1 @@",
    "\\ No newline at end of file",
    "-",
    "+",
    " ",
    "é",
    "\U0001f600",
    "a\x0bb",
    "a\x0cb",
    "a\x85b",
    "a\u2028b",
    "\x1b[0m",
    "{",
    "}",
    "x" * 300,
)
ENDS = ("\n", "\n", "\n", "\n", "\r\n", "\r")


def text(chance: random.Random) -> str:
    lines = chance.choices(LINES, k=chance.choice((0, 1, 2, 5, 20, 60)))
    end = chance.choice(ENDS)
    written = "".join(line + (end if chance.random() < 0.95 else chance.choice(ENDS)) for line in lines)
    return written if chance.random() < 0.7 else written[:-1]


def changed(chance: random.Random, old: str) -> str:
    """Return the text with some lines removed, inserted, moved or changed."""
    lines = split_lines(old)
    for _ in range(chance.choice((0, 1, 1, 2, 8))):
        place = chance.randrange(len(lines) + 1)
        match chance.randrange(4):
            case 0:
                del lines[place : place + chance.choice((1, 1, 3))]
            case 1:
                lines[place:place] = split_lines(text(chance))[:5]
            case 2 if lines:
                lines[place:place] = [lines.pop(chance.randrange(len(lines)))]
            case _:
                lines[place : place + 1] = [chance.choice(LINES) + "\n"]
    return "".join(lines)


def applied(old: str, diff: str) -> str:
    """Return the text with a unified diff applied, by the rules of patch(1) for a diff that fits without offset."""
    lines, rows = split_lines(old), iter(diff.split("\n")[2:-1])
    result: list[str] = []
    place = 0
    last_is_new = False
    for row in rows:
        if (hunk := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@.*", row)) is not None:
            start = int(hunk[1]) - (0 if hunk[2] == "0" else 1)
            result += lines[place:start]
            place = start
        elif row.startswith("\\"):
            result[-1:] = [result[-1].removesuffix("\n")] if last_is_new else result[-1:]
        else:
            last_is_new = row[0] in " +"
            if row[0] in " -":
                assert lines[place].removesuffix("\n") == row[1:], "the diff names the lines that there are"
                place += 1
            if row[0] in " +":
                result.append(row[1:] + "\n")
    return "".join((*result, *lines[place:]))


def check_diff(chance: random.Random) -> None:
    old = text(chance)
    new = changed(chance, old) if chance.random() < 0.8 else text(chance)
    diff = unified_diff(old, new, "f")
    assert (diff == "") == (old == new)
    assert applied(old, diff) == new if diff else old == new
    before, after = split_lines(old), split_lines(new)
    rebuilt: list[str] = []
    end = 0
    for tag, start, stop, new_start, new_stop in line_opcodes(before, after):
        assert start == end
        rebuilt += before[start:stop] if tag == "equal" else after[new_start:new_stop]
        end = stop
    assert (rebuilt, end) == (after, len(before))
    assert with_newlines_of(new, new) == new
    assert re.sub(r"\r\n?|\n", "\n", with_newlines_of(old, new)) == re.sub(r"\r\n?|\n", "\n", new)


def check_bytes(chance: random.Random) -> None:
    marks = (b"", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\0\0\xfe\xff")
    encoding = chance.choice(("utf-8", "utf-8", "latin-1", "utf-16-le", "utf-32-be"))
    data = chance.choice(marks) + text(chance).encode(encoding, "replace") + chance.randbytes(chance.choice((0, 0, 3)))
    try:
        file = decode_text(data)
    except BinaryContentError:
        return
    assert file.form.encode(file.text) == data
    try:
        again = file.form.encode(changed(chance, file.text) + chance.choice(("", "é", "\ud800")))
    except UnencodableTextError:
        return
    assert isinstance(again, bytes)


async def check_replace(chance: random.Random, folder: Path) -> None:
    file = folder / "f.txt"
    content = text(chance)
    file.write_bytes(content.encode())
    start, end = sorted((chance.randrange(len(content) + 1), chance.randrange(len(content) + 1)))
    old = content[start:end] if chance.random() < 0.8 else text(chance)
    arguments: dict[str, Any] = {"file_path": str(file), "old_string": old, "new_string": text(chance)}
    arguments |= chance.choice(({}, {}, {"allow_multiple": True}, {"expected_replacements": chance.randrange(-1, 4)}))
    if chance.random() < 0.1:
        arguments[chance.choice([*arguments])] = chance.choice((7, None, [], "\0", {"a": 1}))
    tool = Replace()
    context = ToolContext(Workspace(folder), "c", folder / "out", {})
    try:
        tool.describe(arguments)
        proposal = await tool.propose(arguments, context)
    except ToolFailure:
        assert file.read_bytes() == content.encode()
        return
    assert isinstance(proposal, FileDiff)
    assert file.read_bytes() == content.encode(), "a proposal writes nothing"
    if content.count(old) == 1 and proposal.old_content is not None and "\r" not in content + arguments["new_string"]:
        assert proposal.new_content == content.replace(old, arguments["new_string"])


def notebook(chance: random.Random, cells: list[dict[str, Any]]) -> str:
    whole = {"cells": cells, "metadata": chance.choice(({}, {"a": 1})), "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=chance.choice((None, 1, 4)), ensure_ascii=chance.random() < 0.5)


def some_cells(chance: random.Random) -> Iterator[dict[str, Any]]:
    for number in range(chance.randrange(7)):
        source: Any = text(chance)
        source = source.splitlines(keepends=True) if chance.random() < 0.5 else source
        cell: dict[str, Any] = {
            "cell_type": chance.choice(("code", "markdown", "raw", 7)),
            "metadata": {},
            "source": source,
        }
        yield cell | ({"id": chance.choice(("x", str(number)))} if chance.random() < 0.8 else {})


def check_notebook(chance: random.Random) -> None:
    cells = list(some_cells(chance))
    old = notebook(chance, cells)
    chance.shuffle(cells)
    new = notebook(chance, [*cells[: chance.randrange(7)], *some_cells(chance)])
    if chance.random() < 0.2:
        place = chance.randrange(len(new))
        new = new[:place] + chance.choice(("", "{", '"', "\\", "]", ",")) + new[place + 1 :]
        changes_between("n.ipynb", old, new)
    try:
        changes = compare(parse(old), parse(new))
    except NotebookError:
        return
    describe(changes)
    numbers = [change.number for change in changes.all]
    assert changes.accept(()) == old
    assert not numbers or changes.accept(numbers) == new
    chosen = chance.sample(numbers, chance.randrange(len(numbers) + 1))
    result = parse(changes.accept(chosen, {number: text(chance) for number in chosen[:2]}))
    assert len(result.cells) == len(json.loads(result.text)["cells"])


async def test_a_diff_an_edit_and_accepted_cells_lead_to_what_was_meant(tmp_path: Path) -> None:
    for chance in cases("patch texts", 0.1, least=60):
        match chance.randrange(4):
            case 0:
                check_diff(chance)
            case 1:
                check_bytes(chance)
            case 2:
                check_notebook(chance)
            case _:
                await check_replace(chance, tmp_path)
