"""A player of transcripts between a real client and its IDE: it sends the client's lines to a companion.

A transcript is a text file. `C>` is a message of the client, `S>` one of the server, `P>` an action of the user
in the (headless) editor, `#` a comment. The `S>` lines that follow each other may come in any order, but all of
them, and nothing else, must have come before the next `C>` or `P>` line. $WORKSPACE is the path of the workspace and
$URL its file URL. "$ANY" stands for any value, {"$JSON": VALUE} for a text that is this value as JSON, and "..." as a
key or last item for any further content.
"""

import asyncio
import json
import re
from pathlib import Path
from typing import Any, cast

from websockets.asyncio.client import ClientConnection

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.editor import Diagnostic, Position, Range, Severity
from support.waiting import eventually_async

ANSWER_SECONDS = 30.0
_RANGE = re.compile(r"(\S+) (\d+):(\d+)-(\d+):(\d+)")


async def play(transcript: Path, connection: ClientConnection, editor: HeadlessEditor, workspace: Path) -> None:
    """Play the transcript; raise an AssertionError that names the line without the written response."""
    told: list[Any] = []
    expected: list[tuple[int, Any]] = []
    for number, line in enumerate(transcript.read_text(encoding="utf-8").splitlines(), 1):
        text = line.replace("$WORKSPACE", str(workspace)).replace("$URL", workspace.as_uri())
        kind, _, content = text.partition("> ")
        if kind == "S":
            expected.append((number, json.loads(content)))
        elif kind in ("C", "P"):
            await _receive(connection, expected, told)
            if kind == "C":
                await connection.send(json.dumps(json.loads(content), ensure_ascii=False))
            else:
                await _act(editor, workspace, content)
        else:
            assert not line or line.startswith("#"), f"{transcript.name}:{number}: {line}"
    await _receive(connection, expected, told)


async def _receive(connection: ClientConnection, expected: list[tuple[int, Any]], told: list[Any]) -> None:
    while expected:
        try:
            message = json.loads(await asyncio.wait_for(connection.recv(), ANSWER_SECONDS))
        except TimeoutError:
            raise AssertionError(f"never came: {expected}") from None
        found = next((entry for entry in expected if matches(entry[1], message)), None)
        if found is not None:
            expected.remove(found)
            told.append(message)
        else:
            # A notification that repeats an earlier one changes nothing.
            is_repeated = "method" in message and message in told
            assert is_repeated, f"line {expected[0][0]}: {message} instead of {expected}"


def matches(expected: Any, actual: Any) -> bool:
    """Return whether a message matches the written one."""
    if expected == "$ANY":
        return True
    if isinstance(expected, dict) and "$JSON" in expected and isinstance(actual, str):
        return matches(expected["$JSON"], json.loads(actual))
    if isinstance(expected, dict) and isinstance(actual, dict):
        wanted = cast("dict[str, Any]", expected)
        given = cast("dict[str, Any]", actual)
        names = wanted.keys() - {"..."}
        if not ("..." in wanted or names == given.keys()):
            return False
        return all(name in given and matches(wanted[name], given[name]) for name in names)
    if isinstance(expected, list) and isinstance(actual, list):
        wanted_items = cast("list[Any]", expected)
        given_items = cast("list[Any]", actual)
        if wanted_items and wanted_items[-1] == "...":
            wanted_items = wanted_items[:-1]
            given_items = given_items[: len(wanted_items)]
        return len(wanted_items) == len(given_items) and all(map(matches, wanted_items, given_items))
    return bool(expected == actual)


async def _act(editor: HeadlessEditor, workspace: Path, action: str) -> None:
    verb, _, rest = action.partition(" ")
    match verb:
        case "open":
            await editor.open_file(str(workspace / rest))
        case "close":
            await editor.close_file(str(workspace / rest))
        case "select":
            found = _RANGE.fullmatch(rest)
            assert found, action
            line, character, end_line, end_character = map(int, found.groups()[1:])
            at = Range(Position(line, character), Position(end_line, end_character))
            await editor.open_file(str(workspace / found[1]), at)
        case "mention":
            name, *lines = rest.split()
            editor.mention(str(workspace / name), *map(int, lines))
        case "diagnose":
            name, line, message = rest.split(" ", 2)
            at = Range(Position(int(line), 0), Position(int(line), 1))
            path = str(workspace / name)
            editor.set_diagnostics(path, [Diagnostic(path, at, Severity.ERROR, message, "linter", "E1")])
        case "accept" | "reject" | "type":
            review = (await eventually_async(lambda: editor.open_reviews, what="a review"))[0]
            if verb == "type":
                editor.edit_diff(review.id, json.loads(rest))
            elif verb == "accept":
                editor.accept_diff(review.id)
            else:
                editor.reject_diff(review.id)
        case _:
            raise AssertionError(f"the user cannot {action}")
