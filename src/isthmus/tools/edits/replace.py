"""replace: replace a text in a file with another."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from isthmus.development_tool import ConfirmationDetails, FileDiff
from isthmus.encoding.codec import JsonObject
from isthmus.tools.edits.edit import edit_result, edit_target, proposed_diff, write_approved
from isthmus.tools.edits.edit_forms import CONTENT_NAMES, FILE_NAMES, replace_arguments, with_usual_names
from isthmus.tools.edits.editor_text import EditorText, no_editor, require_saved
from isthmus.tools.edits.replacement import Replaced, replace_text
from isthmus.tools.matching.readings import doubtful_part
from isthmus.tools.port.arguments import INVALID_ARGUMENTS, CheckedArguments, check_arguments, path_parameter
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult
from isthmus.tools.port.failure import ToolFailure

_EDIT: Mapping[str, Any] = {
    "old_string": {
        "type": "string",
        "description": (
            "The text to replace, as it is in the file, with enough lines around the change that it occurs only once. "
            "An empty one creates a new file."
        ),
    },
    "new_string": {"type": "string", "description": "The text to put in its place, complete and literal."},
    "allow_multiple": {
        "type": "boolean",
        "description": "true: replace every occurrence; otherwise old_string must occur exactly once.",
    },
}
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "file_path": path_parameter("The file, absolute or relative to the workspace."),
        **_EDIT,
        "edits": {
            "type": "array",
            "description": (
                "Several edits of the file instead of old_string and new_string. They are made in this order, each in "
                "the result of those before it, and all of them or none."
            ),
            "minItems": 1,
            "items": {"type": "object", "properties": _EDIT, "required": ["old_string", "new_string"]},
        },
    },
    "required": ["file_path"],
}
MADE_ALREADY = "edit_made_already"
"""Category of an edit whose result the file has."""
_OLDER = {"expected_replacements": {"type": "integer", "minimum": 1}}
_PROSE = (".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc")
"""Ends of the names of files that may be about code fences."""


class Replace:
    """Edits a part of one text file."""

    name = "replace"
    description = (
        "Replaces text in a file of the workspace, at one place or at several. Read the file first. old_string must "
        "be the text of the file, indentation and newlines included, and occur once; small slips are put right where "
        "only one place can be meant, and the answer says so. The user may change the result before it is written; "
        "the answer then says what was written."
    )
    parameters = PARAMETERS
    kind = ToolKind.EDIT
    other_names = frozenset(
        {"Edit", "edit", "edit_file", "MultiEdit", "multi_edit", "multiedit", "replace_in_file", "search_replace"}
        | {"str_replace", "str_replace_editor", "str_replace_based_edit_tool"}
    )

    def __init__(self, editor_text: EditorText = no_editor) -> None:
        self._editor_text = editor_text

    def meant(self, arguments: Arguments) -> tuple[str, JsonObject] | None:
        """Return the call with its usual arguments, or of the tool that a form of another agent means."""
        if arguments.get("command") == "create" and isinstance(arguments.get("file_text"), str):
            return "write_file", with_usual_names(self.name, arguments, FILE_NAMES, CONTENT_NAMES)
        try:
            return self.name, replace_arguments(self.name, arguments)
        except ToolFailure:
            return None  # It fails with the same words when it is proposed.

    def describe(self, arguments: Arguments) -> str:
        """Return the file and the beginnings of the two texts."""
        checked = self._check(arguments)
        path, edits = checked.string("file_path"), _edits(checked)
        if not edits[0].string("old_string"):
            return f"Create {path}"
        first = f"{path}: {_first_line(edits[0].string('old_string'))} => {_first_line(edits[0].string('new_string'))}"
        return first if len(edits) == 1 else f"{first}, and {len(edits) - 1} more"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the change as a FileDiff."""
        change, _ = await asyncio.to_thread(self._proposal, arguments, context)
        await require_saved(self._editor_text, change)
        return change

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Write the approved content."""
        shown = self._check(arguments).string("file_path")
        proposal, note = context.approved.details, ""
        with suppress(ToolFailure):  # A file that has changed since is reported by the write.
            computed, note = await asyncio.to_thread(self._proposal, arguments, context)
            proposal = proposal or computed
        if not isinstance(proposal, FileDiff):
            proposal, note = await asyncio.to_thread(self._proposal, arguments, context)
        written = await asyncio.to_thread(write_approved, context, shown, proposal, context.approved.modified_content)
        return edit_result(written, proposal, note)

    def _proposal(self, arguments: Arguments, context: ToolContext) -> tuple[FileDiff, str]:
        checked = self._check(arguments)
        target = edit_target(context.workspace, checked.string("file_path"))
        edits = _edits(checked)
        text, notes = target.text, list[str]()
        for number, edit in enumerate(edits, 1):
            where = f"edits[{number}]: " if len(edits) > 1 else ""
            try:
                text, tolerated = _edited(text, target.shown, edit, where)
            except ToolFailure as failure:
                if failure.category != MADE_ALREADY or edit not in edits[: number - 1]:
                    raise
                notes.append(f" ({where}the same as an earlier one, which was made once.)")
                continue
            if tolerated:
                notes.append(f" ({where}old_string was found with {tolerated}.)")
        return proposed_diff(context.workspace, target, text or ""), "".join(notes)

    def _check(self, arguments: Arguments) -> CheckedArguments:
        given = replace_arguments(self.name, arguments)
        edits = given.get("edits")
        if edits and (given.get("old_string") or given.get("new_string")):
            message = f"{self.name}: expected old_string and new_string, or edits; received both"
            raise ToolFailure(message, INVALID_ARGUMENTS)
        required = PARAMETERS["required"] if edits else [*PARAMETERS["required"], "old_string", "new_string"]
        schema = {"type": "object", "properties": {**PARAMETERS["properties"], **_OLDER}, "required": required}
        return check_arguments(self.name, schema, given)


def _edits(checked: CheckedArguments) -> tuple[CheckedArguments, ...]:
    return checked.objects("edits") or (checked,)


def _edited(text: str | None, shown: str, edit: CheckedArguments, where: str) -> tuple[str, str]:
    """Return the text after one edit, and the difference that was tolerated; `text` is None for a new file.

    `where` names the edit in failures, if there are several.
    """
    old, new = edit.string("old_string"), edit.string("new_string")
    if text is None:
        if old:
            message = f"{where}{shown} does not exist; use write_file, or an empty old_string, to create it"
            raise ToolFailure(message, "file_not_found")
        return new, ""
    if not old:
        message = f"{where}{shown} already exists; an empty old_string only creates files. Give the text to replace"
        raise ToolFailure(message, "attempt_to_create_existing_file")
    if old == new:
        raise ToolFailure(f"{where}old_string and new_string are the same; nothing to change", "edit_no_change")
    if not shown.lower().endswith(_PROSE) and (part := doubtful_part(text, old, new)) is not None:
        message = (
            f"{where}new_string has {part}, which {shown} would then have, too; nothing was changed. Repeat the edit"
            " with the text alone"
        )
        raise ToolFailure(message, INVALID_ARGUMENTS)
    allows_any = edit.boolean("allow_multiple") and "expected_replacements" not in edit
    expected = None if allows_any else edit.integer("expected_replacements", 1)
    outcome = replace_text(text, old, new, expected)
    if isinstance(outcome, Replaced):
        return outcome.text, outcome.tolerated
    if outcome.made_at and outcome.count:
        message = (
            f"{where}{shown} already has new_string around old_string, at line {outcome.made_at}: this edit seems to be"
            " made already; nothing was changed. To make it again, give more of the lines around it"
        )
        raise ToolFailure(message, MADE_ALREADY)
    if outcome.made_at:
        message = (
            f"{where}old_string does not occur in {shown}, but new_string does, at line {outcome.made_at}: this edit"
            " seems to be made already; nothing was changed"
        )
        raise ToolFailure(message, MADE_ALREADY)
    if outcome.count == 0:
        message = (
            f"{where}old_string does not occur in {shown}: expected 1 occurrence, found 0; nothing was changed. "
            + (
                f"The nearest lines are:\n{outcome.nearest}\nCopy the text exactly"
                if outcome.nearest
                else "Read the file again and copy the text exactly"
            )
        )
        raise ToolFailure(message, "edit_no_occurrence_found")
    lines = ", ".join(map(str, outcome.lines)) + ", ..." * (outcome.count > len(outcome.lines))
    message = (
        f"{where}old_string occurs {outcome.count} times in {shown} (at line {lines}), expected {expected}; "
        "nothing was changed. Add surrounding lines to make it unique, or set allow_multiple to replace all"
    )
    raise ToolFailure(message, "edit_expected_occurrence_mismatch")


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= 40 else line[:37] + "..."
