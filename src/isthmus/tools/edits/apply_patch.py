"""apply_patch: change a file by a patch in the form that Codex models are trained on."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from isthmus.development_tool import ConfirmationDetails, FileDiff, ToolOutput
from isthmus.encoding.codec import JsonObject
from isthmus.text.diff import unified_diff
from isthmus.text.visible import printable
from isthmus.tools.edits.edit import (
    EditTarget,
    edit_result,
    edit_target,
    proposed_diff,
    remove_approved,
    write_approved,
)
from isthmus.tools.edits.editor_text import EditorText, no_editor, require_saved
from isthmus.tools.edits.patch_text import (
    APPLY_PATCH,
    GRAMMAR,
    PATCH_ARGUMENTS,
    FilePatch,
    PatchError,
    file_sections,
    parse_file_patch,
    patched_text,
)
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
from isthmus.tools.port.workspace import Workspace

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "input": {
            "type": "string",
            "description": (
                "The patch: '*** Begin Patch', then for each file '*** Add File: PATH' with lines '+...', "
                "'*** Update File: PATH' with hunks, or '*** Delete File: PATH', then '*** End Patch'. To move a file, "
                "'*** Move to: PATH' follows '*** Update File: PATH', and hunks if its text changes. A hunk is '@@' "
                "with an optional line that comes before it, and lines that begin with ' ', '-' or '+', with three "
                "lines of context on both sides."
            ),
            "minLength": 1,
        },
    },
    "required": ["input"],
}
_REMOVES = "removes_moved"
"""Argument of the second call of a move: it removes the file whose text the first one has written."""
_HIDDEN: Mapping[str, Any] = {_REMOVES: {"type": "boolean"}}
_ALIASES: Mapping[str, str] = dict.fromkeys(PATCH_ARGUMENTS[1:], PATCH_ARGUMENTS[0])
NOT_MOVED = "not_moved"
"""Category of a removal whose file is not in its new place."""
_CATEGORY = "invalid_patch"


class ApplyPatch:
    """Changes one text file by a patch; the agent splits a patch of several files into calls.

    A move is two calls: one writes the text at its new path, and the other then removes the file, if it is all there.
    """

    name = APPLY_PATCH
    description = (
        "Changes files of the workspace by a patch. Paths are relative to the workspace. Read a file before you patch "
        "it; context and removed lines must be those of the file. The user decides on each file, and may change the "
        "result before it is written; the answer then says what was written."
    )
    parameters = PARAMETERS
    kind = ToolKind.EDIT
    text_argument = PATCH_ARGUMENTS[0]
    grammar = GRAMMAR

    def __init__(self, editor_text: EditorText = no_editor) -> None:
        self._editor_text = editor_text

    def split(self, arguments: Arguments) -> Sequence[JsonObject]:
        """Return the arguments of a call for each file of the patch, and of two for one that is moved."""
        name = next((name for name in PATCH_ARGUMENTS if isinstance(arguments.get(name), str)), None)
        if name is None:
            return (dict(arguments),)
        calls: list[JsonObject] = []
        for section in file_sections(str(arguments[name])):
            calls.append({**arguments, name: section})
            with suppress(PatchError):
                if parse_file_patch(section).moved_to and not arguments.get(_REMOVES):
                    calls.append({**arguments, name: section, _REMOVES: True})
        return calls

    def describe(self, arguments: Arguments) -> str:
        """Return the kind of the change and the file."""
        checked = self._check(arguments)
        patch = _patch(checked)
        if patch.moved_to and checked.boolean(_REMOVES):
            return f"Delete {patch.path}, which was moved to {patch.moved_to}"
        if patch.moved_to:
            return f"Move {patch.path} to {patch.moved_to}"
        return f"{'Create' if patch.kind == 'add' else patch.kind.capitalize()} {patch.path}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the change as a FileDiff; a deletion has no text left."""
        change, _ = await asyncio.to_thread(self._proposal, arguments, context)
        await require_saved(self._editor_text, change)
        return change

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Write the approved content, or delete the file."""
        checked = self._check(arguments)
        patch = _patch(checked)
        proposal, note = context.approved.details, ""
        with suppress(ToolFailure):  # A file that changed meanwhile is reported by the write.
            computed, note = await asyncio.to_thread(self._proposal, arguments, context)
            proposal = proposal or computed
        if not isinstance(proposal, FileDiff):
            proposal, note = await asyncio.to_thread(self._proposal, arguments, context)
        modified = context.approved.modified_content
        if patch.moved_to and not checked.boolean(_REMOVES):
            return await asyncio.to_thread(_written_in_new_place, context, patch, proposal, note)
        if patch.moved_to:
            await asyncio.to_thread(_require_moved, context.workspace, patch)
        if (patch.kind == "delete" or patch.moved_to) and not modified:
            removed = await asyncio.to_thread(remove_approved, context, patch.path, proposal)
            return ToolSucceeded(ToolOutput(diff=removed), f"Deleted {removed.file_path}.")
        written = await asyncio.to_thread(write_approved, context, patch.path, proposal, modified)
        return edit_result(written, proposal, note)

    def overwriting(self, arguments: Arguments) -> Overwriting:
        """Return that a deletion removes all of the file, unless its text has a new place."""
        is_deletion = _patch(self._check(arguments)).kind == "delete"
        return Overwriting.WHOLE if is_deletion else Overwriting.NOTHING

    def waits_for_earlier(self, arguments: Arguments) -> bool:
        """Return whether a call removes a file that the call before it moves."""
        return arguments.get(_REMOVES) is True

    def removes(self, arguments: Arguments) -> bool:
        """Return whether a call removes its file; not if its arguments are invalid."""
        try:
            checked = self._check(arguments)
            patch = _patch(checked)
        except ToolFailure:
            return False
        return patch.kind == "delete" or (bool(patch.moved_to) and bool(checked.boolean(_REMOVES)))

    def moved_from(self, arguments: Arguments) -> str | None:
        """Return the path of the file that a call moves; None if it moves none, or its arguments are invalid."""
        try:
            patch = _patch(self._check(arguments))
        except ToolFailure:
            return None
        return patch.path if patch.moved_to else None

    def _proposal(self, arguments: Arguments, context: ToolContext) -> tuple[FileDiff, str]:
        checked = self._check(arguments)
        patch = _patch(checked)
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
        if patch.moved_to and checked.boolean(_REMOVES):
            _require_moved(context.workspace, patch)
            return proposed_diff(context.workspace, target, ""), ""
        text, note = _patched(target, target.text, patch)
        if not patch.moved_to:
            return proposed_diff(context.workspace, target, text), note
        place = edit_target(context.workspace, patch.moved_to)
        if place.text is not None:
            message = f"{place.shown} already exists; choose another path, or delete it first"
            raise ToolFailure(message, "attempt_to_create_existing_file")
        return proposed_diff(context.workspace, place, text, moved=target), note

    def _check(self, arguments: Arguments) -> CheckedArguments:
        schema = {**PARAMETERS, "properties": {**PARAMETERS["properties"], **_HIDDEN}}
        return check_arguments(self.name, schema, arguments, _ALIASES)


def _patched(target: EditTarget, text: str, patch: FilePatch) -> tuple[str, str]:
    """Return the text after an update, and what was tolerated, for the model.

    Raises:
        ToolFailure: a hunk does not fit.
    """
    try:
        changed, tolerated = patched_text(text, patch)
    except PatchError as error:
        message = f"{target.shown}: {error}; nothing was changed"
        raise ToolFailure(message, "edit_no_occurrence_found") from error
    return changed, "".join(f" ({note}.)" for note in tolerated)


def _written_in_new_place(context: CallContext, patch: FilePatch, proposal: FileDiff, note: str) -> ToolSucceeded:
    """Write the text of a file that is moved, and return the result; blocks."""
    moved = edit_target(context.workspace, patch.path)
    modified = context.approved.modified_content
    written = write_approved(context, patch.moved_to, proposal, modified, moved=moved)
    if written.new_content != proposal.new_content:
        return edit_result(written, proposal, note)
    told = f"Created the new file {written.file_path} from {patch.path}.{note}"
    if written.new_content != moved.text:
        shown = printable(context.workspace.relative(Path(written.file_path)))
        told += f" What changed:\n{unified_diff(moved.text, written.new_content, shown)}"
    return ToolSucceeded(ToolOutput(diff=written), told)


def _require_moved(workspace: Workspace, patch: FilePatch) -> None:
    """Check that the new place of a file has its text, so that nothing is lost when it is removed.

    Raises:
        ToolFailure: it has another text, or is not there.
    """
    source, place = edit_target(workspace, patch.path), edit_target(workspace, patch.moved_to)
    with suppress(ToolFailure):
        if source.text is not None and place.text == _patched(source, source.text, patch)[0]:
            return
    message = (
        f"{source.shown} stays: {place.shown} does not have its text, because it was not written, or was changed"
        f" since. If {source.shown} is not needed any more, delete it with '*** Delete File: {source.shown}'"
    )
    raise ToolFailure(message, NOT_MOVED)


def _patch(checked: CheckedArguments) -> FilePatch:
    try:
        return parse_file_patch(checked.string("input"))
    except PatchError as error:
        raise ToolFailure(f"apply_patch: {error}", _CATEGORY) from error
