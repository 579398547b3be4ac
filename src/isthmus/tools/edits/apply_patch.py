"""apply_patch: change a file by a patch in the form that Codex models are trained on."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from isthmus.development_tool import ConfirmationDetails, FileDiff, ToolOutput
from isthmus.encoding.codec import JsonObject
from isthmus.tools.edits.edit import edit_result, edit_target, proposed_diff, remove_approved, write_approved
from isthmus.tools.edits.editor_text import EditorText, no_editor, require_saved
from isthmus.tools.edits.patch_text import FilePatch, PatchError, file_sections, parse_file_patch, patched_text
from isthmus.tools.port.arguments import CheckedArguments, check_arguments
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
        "input": {
            "type": "string",
            "description": (
                "The patch: '*** Begin Patch', then for each file '*** Add File: PATH' with lines '+...', "
                "'*** Update File: PATH' with hunks, or '*** Delete File: PATH', then '*** End Patch'. A hunk is '@@' "
                "with an optional line that comes before it, and lines that begin with ' ', '-' or '+', with three "
                "lines of context on both sides."
            ),
            "minLength": 1,
        },
    },
    "required": ["input"],
}
_ALIASES = {"patch": "input"}
_CATEGORY = "invalid_patch"
_TRAINED = re.compile(r"(?:.*/)?(?:gpt-|o\d|codex)", re.IGNORECASE)


class ApplyPatch:
    """Changes one text file by a patch; the agent splits a patch of several files into calls."""

    name = "apply_patch"
    description = (
        "Changes files of the workspace by a patch. Paths are relative to the workspace. Read a file before you patch "
        "it; context and removed lines must be those of the file. The user decides on each file, and may change the "
        "result before it is written; the answer then says what was written."
    )
    parameters = PARAMETERS
    kind = ToolKind.EDIT

    def __init__(self, editor_text: EditorText = no_editor) -> None:
        self._editor_text = editor_text

    def suits(self, model_name: str) -> bool:
        """Return whether a model is trained to write patches: OpenAI's, also through another provider."""
        return _TRAINED.match(model_name) is not None

    def split(self, arguments: Arguments) -> Sequence[JsonObject]:
        """Return the arguments of a call for each file of the patch."""
        name = next((name for name in ("input", *_ALIASES) if isinstance(arguments.get(name), str)), None)
        if name is None:
            return (dict(arguments),)
        return tuple({**arguments, name: section} for section in file_sections(str(arguments[name])))

    def describe(self, arguments: Arguments) -> str:
        """Return the kind of the change and the file."""
        patch = _patch(self._check(arguments))
        return f"{'Create' if patch.kind == 'add' else patch.kind.capitalize()} {patch.path}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the change as a FileDiff; a deletion has no text left."""
        change, _ = await asyncio.to_thread(self._proposal, arguments, context)
        await require_saved(self._editor_text, change)
        return change

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Write the approved content, or delete the file."""
        patch = _patch(self._check(arguments))
        proposal, note = context.approved.details, ""
        with suppress(ToolFailure):  # A file that changed meanwhile is reported by the write.
            computed, note = await asyncio.to_thread(self._proposal, arguments, context)
            proposal = proposal or computed
        if not isinstance(proposal, FileDiff):
            proposal, note = await asyncio.to_thread(self._proposal, arguments, context)
        modified = context.approved.modified_content
        if patch.kind == "delete" and not modified:
            removed = await asyncio.to_thread(remove_approved, context, patch.path, proposal)
            return ToolSucceeded(ToolOutput(diff=removed), f"Deleted {removed.file_path}.")
        written = await asyncio.to_thread(write_approved, context, patch.path, proposal, modified)
        return edit_result(written, proposal, note)

    def overwriting(self, arguments: Arguments) -> Overwriting:
        """Return that a deletion removes all of the file."""
        is_deletion = _patch(self._check(arguments)).kind == "delete"
        return Overwriting.WHOLE if is_deletion else Overwriting.NOTHING

    def _proposal(self, arguments: Arguments, context: ToolContext) -> tuple[FileDiff, str]:
        patch = _patch(self._check(arguments))
        target = edit_target(context.workspace, patch.path)
        if patch.kind == "add":
            if target.text is not None:
                message = f"{target.shown} already exists; use '*** Update File: {target.shown}' to change it"
                raise ToolFailure(message, "attempt_to_create_existing_file")
            return proposed_diff(context.workspace, target, "".join(line + "\n" for line in patch.lines)), ""
        if target.text is None:
            raise ToolFailure(f"{target.shown} does not exist; use '*** Add File: ' to create it", "file_not_found")
        if patch.kind == "delete":
            return proposed_diff(context.workspace, target, ""), ""
        try:
            text, tolerated = patched_text(target.text, patch)
        except PatchError as error:
            message = f"{target.shown}: {error}; nothing was changed"
            raise ToolFailure(message, "edit_no_occurrence_found") from error
        return proposed_diff(context.workspace, target, text), "".join(f" ({note}.)" for note in tolerated)

    def _check(self, arguments: Arguments) -> CheckedArguments:
        return check_arguments(self.name, self.parameters, arguments, _ALIASES)


def _patch(checked: CheckedArguments) -> FilePatch:
    try:
        return parse_file_patch(checked.string("input"))
    except PatchError as error:
        raise ToolFailure(f"apply_patch: {error}", _CATEGORY) from error
