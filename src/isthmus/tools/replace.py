"""replace: replace a text in a file with another."""

import asyncio
from collections.abc import Mapping
from typing import Any

from isthmus.development_tool import ConfirmationDetails, FileDiff, ToolOutput
from isthmus.tools.arguments import CheckedArguments, check_arguments, path_parameter
from isthmus.tools.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.edit import EditTarget, edit_target, proposed_diff, write_approved
from isthmus.tools.editor_text import EditorText, no_editor, require_saved
from isthmus.tools.failure import ToolFailure
from isthmus.tools.replacement import Replaced, replace_text

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "file_path": path_parameter("The file, absolute or relative to the workspace."),
        "instruction": {"type": "string", "description": "What the change is for, in one sentence."},
        "old_string": {
            "type": "string",
            "description": (
                "The text to replace, exactly as it is in the file, with enough lines around the change that it "
                "occurs only once. An empty one creates a new file."
            ),
        },
        "new_string": {"type": "string", "description": "The text to put in its place, complete and literal."},
        "allow_multiple": {
            "type": "boolean",
            "description": "true: replace every occurrence; otherwise old_string must occur exactly once.",
        },
    },
    "required": ["file_path", "old_string", "new_string"],
}
_OLDER = {"expected_replacements": {"type": "integer", "minimum": 1}}
_ALIASES = {"absolute_path": "file_path", "path": "file_path"}


class Replace:
    """Edits a part of one text file."""

    name = "replace"
    description = (
        "Replaces text in a file of the workspace. old_string must be the exact text of the file, indentation and "
        "newlines included, and occur once; read the file first. The user may change the result before it is "
        "written; the answer then says what was written."
    )
    parameters = PARAMETERS
    kind = ToolKind.EDIT

    def __init__(self, editor_text: EditorText = no_editor) -> None:
        self._editor_text = editor_text

    def describe(self, arguments: Arguments) -> str:
        """Return the file and the beginnings of the two texts."""
        checked = self._check(arguments)
        path = checked.string("file_path")
        if not checked.string("old_string"):
            return f"Create {path}"
        return f"{path}: {_first_line(checked.string('old_string'))} => {_first_line(checked.string('new_string'))}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the change as a FileDiff."""
        change, _ = await asyncio.to_thread(self._proposal, arguments, context)
        await require_saved(self._editor_text, change)
        return change

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Write the approved content."""
        shown = self._check(arguments).string("file_path")
        proposal, note = context.approved.details, ""
        if not isinstance(proposal, FileDiff):
            proposal, note = await asyncio.to_thread(self._proposal, arguments, context)
        written = await asyncio.to_thread(write_approved, context, shown, proposal, context.approved.modified_content)
        done = "Created the new file" if written.old_content is None else "Modified the file"
        for_model = f"{done} {written.file_path}.{note}"
        if written.new_content != proposal.new_content:
            for_model += f" User modified the content of the file to be: {written.new_content}"
        else:
            for_model += f" What changed:\n{written.formatted_diff}"
        return ToolSucceeded(ToolOutput(diff=written), for_model)

    def _proposal(self, arguments: Arguments, context: ToolContext) -> tuple[FileDiff, str]:
        checked = self._check(arguments)
        target = edit_target(context.workspace, checked.string("file_path"))
        content, note = _new_content(target, checked)
        return proposed_diff(context.workspace, target, content), note

    def _check(self, arguments: Arguments) -> CheckedArguments:
        schema = {**PARAMETERS, "properties": {**PARAMETERS["properties"], **_OLDER}}
        return check_arguments(self.name, schema, arguments, _ALIASES)


def _new_content(target: EditTarget, checked: CheckedArguments) -> tuple[str, str]:
    """Return the text after the replacement, and a note for the model if the match was not exact."""
    old, new = checked.string("old_string"), checked.string("new_string")
    if target.text is None:
        if old:
            message = f"{target.shown} does not exist; use write_file, or an empty old_string, to create it"
            raise ToolFailure(message, "file_not_found")
        return new, ""
    if not old:
        message = f"{target.shown} already exists; an empty old_string only creates files. Give the text to replace"
        raise ToolFailure(message, "attempt_to_create_existing_file")
    if old == new:
        raise ToolFailure("old_string and new_string are the same; there is nothing to change", "edit_no_change")
    allows_any = checked.boolean("allow_multiple") and "expected_replacements" not in checked
    expected = None if allows_any else checked.integer("expected_replacements", 1)
    outcome = replace_text(target.text, old, new, expected)
    if isinstance(outcome, Replaced):
        return outcome.text, f" (old_string was found with {outcome.tolerated}.)" if outcome.tolerated else ""
    if outcome.count == 0:
        message = (
            f"old_string does not occur in {target.shown}: expected 1 occurrence, found 0; nothing was changed. "
            + (
                f"The nearest lines are:\n{outcome.nearest}\nCopy the text exactly"
                if outcome.nearest
                else "Read the file again and copy the text exactly"
            )
        )
        raise ToolFailure(message, "edit_no_occurrence_found")
    lines = ", ".join(map(str, outcome.lines)) + ", ..." * (outcome.count > len(outcome.lines))
    message = (
        f"old_string occurs {outcome.count} times in {target.shown} (at line {lines}), expected {expected}; "
        "nothing was changed. Add surrounding lines to make it unique, or set allow_multiple to replace all"
    )
    raise ToolFailure(message, "edit_expected_occurrence_mismatch")


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= 40 else line[:37] + "..."
