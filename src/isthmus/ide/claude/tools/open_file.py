"""openFile: shows a file to the user, and selects a range by text or by lines.

The Editor port has no preview mode: ``preview`` is accepted and ignored. The text is searched with its unsaved changes,
as the user sees it. Files hidden from agents are not searched, because the result would reveal their contents.
"""

from isthmus.ide.claude.documents import document_summary, find_open, locate, require_openable, text_of
from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.wire import (
    ArgumentError,
    Arguments,
    flag,
    json_result,
    language_id,
    line_number,
    schema,
    string,
)
from isthmus.ide.companion import Companion
from isthmus.ide.editor import Position, Range
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import OPEN_FILE
from isthmus.ide.positions import position_at
from isthmus.record import record

SHOWN_CHARACTERS = 200
"""Maximum length of the searched text in the result."""

TOOL = ToolDefinition(
    OPEN_FILE,
    "Open a file in the editor and optionally select a range of text",
    schema(
        {
            "filePath": string("Path to the file to open"),
            "preview": flag("Whether to open the file in preview mode", default=False),
            "startText": string("Text pattern to find the start of the selection"),
            "endText": string("Text pattern to find the end of the selection, after the start"),
            "startLine": line_number("First line of the selection, 1-based"),
            "endLine": line_number("Last line of the selection, 1-based"),
            "selectToEndOfLine": flag("Whether to extend the selection to the end of its last line", default=False),
            "makeFrontmost": flag("Whether to make the file the active editor tab", default=True),
        },
        ["filePath"],
    ),
)


@record
class _Found:
    """Range to select, and message to the client; ``at`` is None if the cursor does not move."""

    at: Range | None
    message: str


async def run(companion: Companion, client: ClaudeSession, arguments: Arguments) -> CallToolResult:
    """Open the file, and report the selection."""
    search = _Search.of(arguments)
    path = await locate(companion, arguments.required_path("filePath"))
    file = await find_open(companion, path)
    if file is None:
        await require_openable(companion, path)
    focus = arguments.flag("makeFrontmost", default=True)
    target = path if file is None else file.path
    if companion.hidden.hides(path):
        await companion.editor.open_file(target, focus=focus)
        if not focus:
            return json_result({"success": True, "filePath": path, "languageId": language_id(path)})
        note = " (it is hidden from agents and was not searched)" if search.is_selection else ""
        return CallToolResult.text(f"Opened file: {path}{note}")
    found = search.find(await text_of(companion, target)) if search.is_selection else None
    await companion.editor.open_file(target, found.at if found is not None else None, focus=focus)
    if not focus:
        document = await document_summary(companion, path, await find_open(companion, path))
        return json_result(
            {
                "success": True,
                "filePath": path,
                "languageId": document.language_id,
                "lineCount": document.line_count,
            }
        )
    return CallToolResult.text(found.message if found is not None else f"Opened file: {path}")


@record
class _Search:
    start_text: str | None
    end_text: str | None
    start_line: int | None
    end_line: int | None
    to_end_of_line: bool

    @staticmethod
    def of(arguments: Arguments) -> "_Search":
        search = _Search(
            arguments.text("startText") or None,
            arguments.text("endText") or None,
            arguments.number("startLine"),
            arguments.number("endLine"),
            arguments.flag("selectToEndOfLine", default=False),
        )
        if search.end_text is not None and search.start_text is None:
            raise ArgumentError("openFile: endText needs startText; the selection goes from one to the other")
        if search.end_line is not None and search.start_line is None:
            raise ArgumentError("openFile: endLine needs startLine")
        if search.end_line is not None and search.start_line is not None and search.end_line < search.start_line:
            raise ArgumentError(
                f"openFile: expected endLine not before startLine, received {search.start_line} to {search.end_line}"
            )
        return search

    @property
    def is_selection(self) -> bool:
        return self.start_text is not None or self.start_line is not None

    def find(self, text: str) -> _Found:
        """Find the range; text takes precedence over lines. CR LF is read as LF, because clients only know one form."""
        text = text.replace("\r\n", "\n")
        if self.start_text is not None:
            return self._find_text(text, self.start_text.replace("\r\n", "\n"), _cut(self.start_text))
        first = self.start_line or 1
        last = self.end_line or first
        line_count = text.count("\n") + (not text.endswith("\n"))
        if first > line_count:
            return _Found(None, f"Opened file, but it has only {line_count} lines, no line {first}")
        last = min(last, line_count)
        end = _end_of_line(text, _start_of_line(text, last))
        return _Found(
            Range(Position(first - 1, 0), position_at(text, end)), f"Opened file and selected lines {first} to {last}"
        )

    def _find_text(self, text: str, start_text: str, named: str) -> _Found:
        start = text.find(start_text)
        if start < 0:
            return _Found(None, f'Opened file, but text "{named}" not found')
        end = start + len(start_text)
        message = f'Opened file and selected text "{named}"'
        if self.end_text is not None:
            end_text = self.end_text.replace("\r\n", "\n")
            found = text.find(end_text, end)
            if found < 0:
                place = position_at(text, start)
                message = f'Opened file and positioned at "{named}" (end text "{_cut(self.end_text)}" not found)'
                return _Found(Range(place, place), message)
            end = found + len(end_text)
            message = f'Opened file and selected text from "{named}" to "{_cut(self.end_text)}"'
        if self.to_end_of_line:
            end = _end_of_line(text, end)
        return _Found(Range(position_at(text, start), position_at(text, end)), message)


def _cut(text: str) -> str:
    """Return a text, cut for a result."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def _start_of_line(text: str, number: int) -> int:
    start = 0
    for _ in range(number - 1):
        start = text.index("\n", start) + 1
    return start


def _end_of_line(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end
