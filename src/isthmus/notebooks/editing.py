"""Editing a notebook by its cells: replace the source of one, insert one, delete one. Pure.

Cells that are not edited keep their exact text. A code cell whose source changes loses its outputs, which belonged to
the former code.
"""

import json
import re
import secrets
from dataclasses import replace
from typing import Any

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.notebooks.notebook import Cell, Notebook, NotebookError

CELL_KINDS = ("code", "markdown", "raw")
_INDEX = re.compile(r"cell-(\d{1,6})")
"""Name of a cell without an id: its index from 0, as in Claude Code."""
_FIRST = Cell("", {}, "\n  ", "\n ")
"""Blanks around the first cell of a notebook that has none."""
_IDS_FROM_MINOR = 5
"""Minor version of nbformat 4 from which cells have ids."""


def name_of(cell: Cell, index: int) -> str:
    """Return the name by which a cell is edited: its id, or ``cell-N`` with its index from 0."""
    return cell.id or f"cell-{index}"


def find_cell(notebook: Notebook, name: str) -> int:
    """Return the index from 0 of the cell with this name.

    Raises:
        NotebookError: there is no such cell; the text names some that there are.
    """
    for index, cell in enumerate(notebook.cells):
        if cell.id == name:
            return index
    if (match := _INDEX.fullmatch(name)) is not None and int(match[1]) < len(notebook.cells):
        return int(match[1])
    names = ", ".join(name_of(cell, index) for index, cell in enumerate(notebook.cells[:20])) or "none"
    raise NotebookError(f"there is no cell {name[:100]!r}; the first cells are: {names}")


def with_new_source(notebook: Notebook, index: int, source: str, kind: str | None) -> str:
    """Return the text of the notebook with another source, and perhaps another kind, of a cell."""
    cell = notebook.cells[index]
    value = {**cell.value, "source": _lines(source)}
    value = _of_kind(value, kind or cell.kind)
    cells = [*notebook.cells[:index], _cell(value, cell), *notebook.cells[index + 1 :]]
    return notebook.with_cells(cells)


def with_cell_after(notebook: Notebook, index: int | None, source: str, kind: str) -> str:
    """Return the text of the notebook with a new cell after another one; None is the beginning."""
    value = _of_kind({"cell_type": kind, "metadata": {}, "source": _lines(source)}, kind)
    if _has_ids(notebook):
        value = {"cell_type": kind, "id": secrets.token_hex(4), **value}
    at = 0 if index is None else index + 1
    made = _cell(value, notebook.cells[0]) if notebook.cells else replace(_cell(value, _FIRST), trail=_FIRST.trail)
    return notebook.with_cells([*notebook.cells[:at], made, *notebook.cells[at:]])


def without_cell(notebook: Notebook, index: int) -> str:
    """Return the text of the notebook without a cell."""
    return notebook.with_cells([*notebook.cells[:index], *notebook.cells[index + 1 :]])


def _of_kind(value: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return a new or changed cell as one of this kind."""
    value = {**value, "cell_type": kind}
    if kind != "code":
        return {name: item for name, item in value.items() if name not in ("outputs", "execution_count")}
    return {**value, "execution_count": None, "outputs": []}


def _cell(value: dict[str, Any], like: Cell) -> Cell:
    indentation = like.lead.rpartition("\n")[2]
    text = json.dumps(value, indent=1, ensure_ascii=False)
    # The blanks at the end of the list are those of its last cell, which the notebook adds.
    return Cell(text.replace("\n", f"\n{indentation}"), value, like.lead, "")


def _lines(source: str) -> list[str]:
    return source.splitlines(keepends=True)


def _has_ids(notebook: Notebook) -> bool:
    if any(cell.id for cell in notebook.cells):
        return True
    minor = notebook.members.get("nbformat_minor")
    return isinstance(minor, int) and minor >= _IDS_FROM_MINOR


def cells_text(notebook: Notebook, maximum_output: int = 2_000) -> str:
    """Return a notebook as text for a model: each cell with its name, kind, source and the texts of its outputs."""
    pieces: list[str] = []
    for index, cell in enumerate(notebook.cells):
        pieces.append(f'<cell id="{name_of(cell, index)}" type="{cell.kind}">\n{cell.source}\n</cell>')
        outputs = "\n".join(filter(None, map(_output_text, cell.outputs)))
        if outputs:
            cut = "" if len(outputs) <= maximum_output else f"\n[{len(outputs) - maximum_output} more characters]"
            pieces.append(f"<output>\n{outputs[:maximum_output]}{cut}\n</output>")
    return "\n".join(pieces)


def _output_text(output: JsonObject) -> str:
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    found: object = output.get("text") or as_object(output.get("data")).get("text/plain")
    return as_text(found) or "".join(map(as_text, as_list(found)))
