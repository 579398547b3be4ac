"""read_file: read the text of one file, whole or a range of its lines, or an image.

Reads files of the workspace, and the kept outputs of calls of the same task. An image is copied to these, so that the
model sees it throughout the conversation as it was when it was read.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.media import Media
from isthmus.notebooks.editing import cells_text
from isthmus.notebooks.notebook import NotebookError, parse
from isthmus.runtime.brief_work import briefly
from isthmus.text.units import show_size
from isthmus.tools.edits.editor_text import EditorText, no_editor, unsaved_text
from isthmus.tools.port.arguments import INVALID_ARGUMENTS, CheckedArguments, check_arguments, path_parameter
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.content import read_bytes, text_of
from isthmus.tools.port.excerpt import MAXIMUM_CHARACTERS, MAXIMUM_LINE_CHARACTERS, MAXIMUM_LINES, excerpt_of
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.kept_files import KeptFiles
from isthmus.tools.port.seen_text import seen_text
from isthmus.tools.port.workspace import OUTSIDE_WORKSPACE

SHOWN_KINDS = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
}
"""Types of files that are shown to models that accept them, by suffix."""
MAXIMUM_SHOWN_BYTES = 10_000_000
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "file_path": path_parameter("The file, absolute or relative to the workspace."),
        "start_line": {"type": "integer", "minimum": 1, "description": "The first line to read; lines count from 1."},
        "end_line": {"type": "integer", "minimum": 1, "description": "The last line to read, included."},
    },
    "required": ["file_path"],
}
_OLDER = {
    "offset": {"type": "integer", "minimum": 0},
    "limit": {"type": "integer", "minimum": 1},
}
_ALIASES = {"absolute_path": "file_path", "path": "file_path"}


class ReadFile:
    """Reads one text file."""

    name = "read_file"
    description = (
        f"Reads a text file of the workspace. At most {MAXIMUM_LINES} lines and {MAXIMUM_CHARACTERS:,} characters come "
        f"at once, and lines of more than {MAXIMUM_LINE_CHARACTERS} characters are cut; the result says when something "
        "was left out and how to read on with start_line and end_line. Before each line stand its number and a tab, "
        "which are not part of the file. Notebooks come by their cells. Images and PDF documents are shown; other "
        "binary files are not read."
    )
    parameters = PARAMETERS
    kind = ToolKind.READ

    def __init__(self, editor_text: EditorText = no_editor) -> None:
        self._editor_text = editor_text

    def describe(self, arguments: Arguments) -> str:
        """Return the file and the lines."""
        checked = self._check(arguments)
        start, end = _range(checked)
        lines = "" if (start, end) == (1, None) else f" lines {start}-{'' if end is None else end}"
        return f"Read {checked.string('file_path')}{lines}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the arguments; there is nothing to confirm."""
        _open(context, self._check(arguments).string("file_path"))
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the text, after a note if it is not the whole file; the model also gets the numbers of its lines."""
        checked = self._check(arguments)
        shown = checked.string("file_path")
        path = _open(context, shown)
        data = await briefly(read_bytes, path, shown)
        try:
            text = text_of(data, path, shown).text.replace("\r\n", "\n")
        except ToolFailure:
            media_type = SHOWN_KINDS.get(path.suffix.lower())
            if media_type is None or len(data) > MAXIMUM_SHOWN_BYTES:
                raise
            return await asyncio.to_thread(_read_media, data, media_type, path, context)
        unsaved = await unsaved_text(self._editor_text, path, text)
        whole = text if unsaved is None else unsaved
        if path.suffix.lower() == ".ipynb":
            text, unsaved = await asyncio.to_thread(_by_cells, text if unsaved is None else unsaved), None
        start, end = _range(checked)
        excerpt = excerpt_of(text if unsaved is None else unsaved.replace("\r\n", "\n"), start, end)
        note = excerpt.note(shown) if excerpt.is_partial else ""
        if unsaved is not None:
            note = f"{shown} has changes in the user's editor that are not saved; this is the editor's text.\n{note}"
        # The cells of a notebook have names, and no lines of the file.
        text_for_model = excerpt.text if path.suffix.lower() == ".ipynb" else excerpt.numbered
        for_model = note + text_for_model or f"{shown} is empty."
        return ToolSucceeded(ToolOutput(text=note + excerpt.text), for_model, seen=(seen_text(path, whole, excerpt),))

    def outside(self, arguments: Arguments, context: ToolContext) -> Path | None:
        """Return the file outside the workspace that a call would read, without symbolic links."""
        try:
            path = self._check(arguments).string("file_path")
        except ToolFailure:
            return None
        try:
            _open(context, path)
        except ToolFailure as failure:
            return _existing(context.workspace.root, path) if failure.category == OUTSIDE_WORKSPACE else None
        return None

    def _check(self, arguments: Arguments) -> CheckedArguments:
        schema = {**PARAMETERS, "properties": {**PARAMETERS["properties"], **_OLDER}}
        return check_arguments(self.name, schema, arguments, _ALIASES)


def _by_cells(text: str) -> str:
    """Return a notebook by its cells; the text itself if it is not one."""
    try:
        return cells_text(parse(text))
    except NotebookError:
        return text


def _existing(root: Path, path: str) -> Path | None:
    try:
        resolved = (root / Path(path).expanduser()).resolve()
        return resolved if resolved.is_file() else None
    except (OSError, RuntimeError, ValueError):
        return None


def _open(context: ToolContext, path: str) -> Path:
    return context.workspace.open_path(path, context.output_folder, *context.readable_folders)


def _read_media(data: bytes, media_type: str, path: Path, context: ToolContext) -> ToolSucceeded:
    """Return the result of reading an image or a document.

    Raises:
        ToolFailure: a copy cannot be written.
    """
    try:
        kept = KeptFiles(context.output_folder, context.tool_call_id).keep(data, path.suffix.lower())
    except OSError as error:
        raise ToolFailure(f"{path} cannot be shown: {error.strerror or error}", "read_content_failure") from error
    text = f"{path.name}: {media_type}, {show_size(len(data))}"
    return ToolSucceeded(ToolOutput(text=text), text, () if kept is None else (Media(media_type, kept),))


def _range(checked: CheckedArguments) -> tuple[int, int | None]:
    """Return the first and last line, 1-based; the older arguments are a 0-based offset and a count."""
    start = checked.integer("start_line", checked.integer("offset", 0) + 1)
    end: int | None = None
    if "end_line" in checked:
        end = checked.integer("end_line", 0)
    elif "limit" in checked:
        end = start + checked.integer("limit", 0) - 1
    if end is not None and end < start:
        message = f"read_file: end_line: expected start_line ({start}) or a later line, received {end}"
        raise ToolFailure(message, INVALID_ARGUMENTS)
    return start, end
