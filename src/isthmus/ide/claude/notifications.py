"""Notifications of the companion to a Claude CLI: ``selection_changed`` and ``at_mentioned``. No I/O.

Positions are 0-based and characters UTF-16 units, as in the Editor port. Real CLIs derive their displayed line numbers
from them. Keys without a value are left out, because real CLIs ignore a message with null.
"""

from isthmus.encoding.codec import JsonObject
from isthmus.ide.context import cut_selection
from isthmus.ide.editor import FileMentioned, OpenFile, Position, Range
from isthmus.ide.file_uri import file_uri
from isthmus.rpc.messages import JsonMessage, notification

SELECTION_CHANGED = "selection_changed"
AT_MENTIONED = "at_mentioned"
TOOLS_CHANGED = "notifications/tools/list_changed"
START = Position(0, 0)


def range_json(at: Range) -> JsonObject:
    """Return ``{"start", "end"}``, as in LSP."""
    return {"start": _position(at.start), "end": _position(at.end)}


def selection_json(file: OpenFile) -> JsonObject:
    """Return ``{text, filePath, fileUrl, selection}`` of a file: its selection, or the position of the cursor.

    A text of more than 16,384 UTF-16 units is cut, and ends with a mark.
    """
    if file.selection is not None:
        at, text = file.selection.range, cut_selection(file.selection.text)
    else:
        cursor = file.cursor or START
        at, text = Range(cursor, cursor), ""
    return {
        "text": text,
        "filePath": file.path,
        "fileUrl": file_uri(file.path),
        "selection": {**range_json(at), "isEmpty": not text},
    }


def selection_changed(selection: JsonObject) -> JsonMessage:
    """Return the notification of a selection from :func:`selection_json`."""
    return notification(SELECTION_CHANGED, selection)


def nothing_selected(selection: JsonObject) -> JsonObject:
    """Return the empty selection that withdraws a selection in a closed file."""
    empty = range_json(Range(START, START))
    return {**selection, "text": "", "selection": {**empty, "isEmpty": True}}


def at_mentioned(mention: FileMentioned) -> JsonMessage:
    """Return the notification of a mention; without lines it means the whole file."""
    params: JsonObject = {"filePath": mention.path}
    if mention.start_line is not None:
        end = mention.start_line if mention.end_line is None else mention.end_line
        params = {**params, "lineStart": mention.start_line, "lineEnd": end}
    return notification(AT_MENTIONED, params)


def _position(position: Position) -> JsonObject:
    return {"line": position.line, "character": position.character}
