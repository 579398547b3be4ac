"""write_file: create a file, or replace its whole content."""

import asyncio
from collections.abc import Mapping
from typing import Any

from isthmus.development_tool import ConfirmationDetails, FileDiff, ToolOutput
from isthmus.encoding.codec import JsonObject
from isthmus.text.text_file import with_newlines_of
from isthmus.tools.edits.edit import edit_target, proposed_diff, write_approved, written_text
from isthmus.tools.edits.edit_forms import CONTENT_NAMES, FILE_NAMES, with_usual_names
from isthmus.tools.edits.editor_text import EditorText, no_editor, require_saved
from isthmus.tools.port.arguments import CheckedArguments, check_arguments, path_parameter
from isthmus.tools.port.base import (
    Arguments,
    CallContext,
    Overwriting,
    ToolContext,
    ToolKind,
    ToolResult,
    ToolSucceeded,
)
from isthmus.tools.port.failure import ToolFailure

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "file_path": path_parameter("The file, absolute or relative to the workspace. Missing folders are created."),
        "content": {
            "type": "string",
            "description": "The whole content of the file, literally; nothing may be left out or abbreviated.",
        },
    },
    "required": ["file_path", "content"],
}


class WriteFile:
    """Writes one text file."""

    name = "write_file"
    description = (
        "Writes a text file of the workspace: creates it, or replaces its whole content. Read a file before you "
        "overwrite it. To change a part of a file use replace. The user may change the content before it is written; "
        "the result then says what was written. The encoding and the CRLF newlines of an existing file are kept."
    )
    parameters = PARAMETERS
    kind = ToolKind.EDIT
    other_names = frozenset({"Write", "write", "create_file"})

    def __init__(self, editor_text: EditorText = no_editor) -> None:
        self._editor_text = editor_text

    def meant(self, arguments: Arguments) -> tuple[str, JsonObject] | None:
        """Return the call with its usual arguments."""
        try:
            return self.name, with_usual_names(self.name, arguments, FILE_NAMES, CONTENT_NAMES)
        except ToolFailure:
            return None  # It fails with the same words when it is proposed.

    def describe(self, arguments: Arguments) -> str:
        """Return the file."""
        return f"Write {self._check(arguments).string('file_path')}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the change as a FileDiff."""
        change = await asyncio.to_thread(self._proposal, arguments, context)
        await require_saved(self._editor_text, change)
        return change

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Write the approved content."""
        shown = self._check(arguments).string("file_path")
        proposal = context.approved.details
        if not isinstance(proposal, FileDiff):
            proposal = await asyncio.to_thread(self._proposal, arguments, context)
        written = await asyncio.to_thread(write_approved, context, shown, proposal, context.approved.modified_content)
        done = "Created and wrote the new file" if written.old_content is None else "Overwrote the file"
        for_model = f"{done} {written.file_path}."
        if written.new_content == proposal.new_content:
            return ToolSucceeded(ToolOutput(diff=written), for_model, wrote=written_text(written))
        for_model += f" User modified the `content` to be: {written.new_content}"
        return ToolSucceeded(ToolOutput(diff=written), for_model, seen=written_text(written))

    def overwriting(self, arguments: Arguments) -> Overwriting:
        """Return that all of the file is replaced."""
        return Overwriting.WHOLE

    def _proposal(self, arguments: Arguments, context: ToolContext) -> FileDiff:
        checked = self._check(arguments)
        target = edit_target(context.workspace, checked.string("file_path"))
        content = with_newlines_of(target.text or "", checked.string("content"))
        return proposed_diff(context.workspace, target, content)

    def _check(self, arguments: Arguments) -> CheckedArguments:
        given = with_usual_names(self.name, arguments, FILE_NAMES, CONTENT_NAMES)
        return check_arguments(self.name, PARAMETERS, given)
