"""notebook_edit: edit a Jupyter notebook by its cells, with Claude Code's arguments for it."""

import asyncio
from collections.abc import Mapping
from typing import Any

from isthmus.development_tool import ConfirmationDetails, FileDiff
from isthmus.notebooks.editing import (
    CELL_KINDS,
    find_cell,
    name_of,
    with_cell_after,
    with_new_source,
    without_cell,
)
from isthmus.notebooks.notebook import NotebookError, parse
from isthmus.tools.edits.edit import edit_result, edit_target, proposed_diff, require_whole, write_approved
from isthmus.tools.edits.editor_text import EditorText, no_editor, require_saved
from isthmus.tools.port.arguments import INVALID_ARGUMENTS, CheckedArguments, check_arguments, path_parameter
from isthmus.tools.port.base import Arguments, CallContext, Overwriting, ToolContext, ToolKind, ToolResult
from isthmus.tools.port.failure import ToolFailure

_MODES = ("replace", "insert", "delete")
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "notebook_path": path_parameter("The notebook (.ipynb), absolute or relative to the workspace."),
        "cell_id": {
            "type": "string",
            "description": "The cell, as read_file names it. To insert: the cell before; without it, at the beginning.",
        },
        "new_source": {"type": "string", "description": "The whole source of the cell."},
        "cell_type": {"type": "string", "enum": list(CELL_KINDS), "description": "Needed to insert a cell."},
        "edit_mode": {"type": "string", "enum": list(_MODES), "description": "replace is the default."},
    },
    "required": ["notebook_path"],
}
_ALIASES = {"file_path": "notebook_path", "path": "notebook_path"}


class NotebookEdit:
    """Edits one cell of a notebook."""

    name = "notebook_edit"
    description = (
        "Edits one cell of a Jupyter notebook: replaces its whole source, inserts a cell, or deletes one. Outputs of a "
        "code cell that changes are removed. read_file shows a notebook by its cells, with their names."
    )
    parameters = PARAMETERS
    kind = ToolKind.EDIT

    def __init__(self, editor_text: EditorText = no_editor) -> None:
        self._editor_text = editor_text

    def describe(self, arguments: Arguments) -> str:
        """Return the notebook, the cell and the kind of the edit."""
        checked = self._check(arguments)
        cell = f" cell {checked.string('cell_id')}" if "cell_id" in checked else " a cell at the beginning"
        return f"{_mode(checked).capitalize()}{cell} of {checked.string('notebook_path')}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the change as a FileDiff."""
        change = await asyncio.to_thread(self._proposal, arguments, context)
        await require_saved(self._editor_text, change)
        return change

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Write the approved content."""
        shown = self._check(arguments).string("notebook_path")
        proposal = context.approved.details
        if not isinstance(proposal, FileDiff):
            proposal = await asyncio.to_thread(self._proposal, arguments, context)
        written = await asyncio.to_thread(write_approved, context, shown, proposal, context.approved.modified_content)
        return edit_result(written, proposal, "", shows_diff=True)

    def overwriting(self, arguments: Arguments) -> Overwriting:
        """Return that a cell is replaced or deleted, unless one is inserted."""
        is_insertion = _mode(self._check(arguments)) == "insert"
        return Overwriting.NOTHING if is_insertion else Overwriting.PART

    def _proposal(self, arguments: Arguments, context: ToolContext) -> FileDiff:
        checked = self._check(arguments)
        target = edit_target(context.workspace, checked.string("notebook_path"))
        if target.text is None:
            raise ToolFailure(f"{target.shown} does not exist; create it with write_file", "file_not_found")
        try:
            return proposed_diff(context.workspace, target, _edited(target.text, checked))
        except NotebookError as error:
            raise ToolFailure(f"{target.shown}: {error}", "edit_no_occurrence_found") from error

    def _check(self, arguments: Arguments) -> CheckedArguments:
        checked = check_arguments(self.name, PARAMETERS, arguments, _ALIASES)
        for name, allowed in (("edit_mode", _MODES), ("cell_type", CELL_KINDS)):
            if name in checked and checked.string(name) not in allowed:
                raise _invalid(f"{name}: expected one of {', '.join(allowed)}, received {checked.string(name)[:50]!r}")
        mode = _mode(checked)
        if mode != "insert" and "cell_id" not in checked:
            raise _invalid(f"cell_id: expected the name of a cell to {mode}")
        if mode == "insert" and "cell_type" not in checked:
            raise _invalid("cell_type: expected the kind of the new cell")
        if mode != "delete" and arguments.get("new_source") is None:
            raise _invalid("new_source: expected the source of the cell")
        return checked


def _edited(text: str, checked: CheckedArguments) -> str:
    notebook = parse(text)
    index = find_cell(notebook, checked.string("cell_id")) if "cell_id" in checked else None
    source = checked.string("new_source", "")
    kind = checked.string("cell_type") if "cell_type" in checked else None
    match _mode(checked):
        case "insert":
            return with_cell_after(notebook, index, source, kind or "code")
        case "delete":
            return without_cell(notebook, index or 0)
        case _:
            cell = notebook.cells[index or 0]
            if cell.source == source and kind in (None, cell.kind):
                name = name_of(cell, index or 0)
                raise ToolFailure(f"cell {name} already has this source; there is nothing to change", "edit_no_change")
            require_whole(f"cell {name_of(cell, index or 0)}", source, cell.source)
            return with_new_source(notebook, index or 0, source, kind)


def _mode(checked: CheckedArguments) -> str:
    return checked.string("edit_mode") if "edit_mode" in checked else "replace"


def _invalid(problem: str) -> ToolFailure:
    return ToolFailure(f"notebook_edit: {problem}", INVALID_ARGUMENTS)
