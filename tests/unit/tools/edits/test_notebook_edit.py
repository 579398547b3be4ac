"""Notebooks by their cells: what is read, what an edit changes and what it keeps; nbformat judges the result."""

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import v4

from isthmus.tools.edits.notebook_edit import NotebookEdit
from isthmus.tools.port.base import CallContext, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.workspace import Workspace
from isthmus.tools.reading.read_file import ReadFile

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(workspace: Path) -> Path:
    made = v4.new_notebook(  # pyright: ignore[reportUnknownMemberType]
        cells=[
            v4.new_markdown_cell("# Title", id="title"),  # pyright: ignore[reportUnknownMemberType]
            v4.new_code_cell(  # pyright: ignore[reportUnknownMemberType]
                "x = 1\nprint(x)",
                id="code",
                execution_count=3,
                outputs=[v4.new_output("stream", name="stdout", text="1\n")],  # pyright: ignore[reportUnknownMemberType]
            ),
            v4.new_code_cell("y = 2", id="last"),  # pyright: ignore[reportUnknownMemberType]
        ]
    )
    file = workspace / "n.ipynb"
    nbformat.write(made, file)  # pyright: ignore[reportUnknownMemberType]
    return file


def context(path: Path) -> CallContext:
    return CallContext(Workspace(path.parent), "c", path.parent / ".out", {})


async def edit(path: Path, **arguments: Any) -> dict[str, Any]:
    """Edit the notebook, check it with nbformat, and return it."""
    tool, call = NotebookEdit(), {"notebook_path": path.name, **arguments}
    assert await tool.propose(call, context(path)) is not None
    assert isinstance(await tool.run(call, context(path)), ToolSucceeded)
    nbformat.validate(nbformat.read(path, as_version=4))  # pyright: ignore[reportUnknownMemberType]
    return json.loads(path.read_text("utf-8"))


def sources(notebook: dict[str, Any]) -> list[tuple[str, str]]:
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


async def test_a_notebook_is_read_by_its_cells_with_their_outputs(path: Path) -> None:
    result = await ReadFile().run({"file_path": path.name}, context(path))
    assert isinstance(result, ToolSucceeded)
    assert result.for_model == (
        '<cell id="title" type="markdown">\n# Title\n</cell>\n<cell id="code" type="code">\nx = 1\nprint(x)\n</cell>\n'
        '<output>\n1\n\n</output>\n<cell id="last" type="code">\ny = 2\n</cell>'
    )


async def test_a_new_source_keeps_everything_but_the_outputs_of_its_cell(path: Path) -> None:
    before = path.read_text("utf-8")
    notebook = await edit(path, cell_id="code", new_source="x = 5\n")
    assert sources(notebook) == [("markdown", "# Title"), ("code", "x = 5\n"), ("code", "y = 2")]
    assert (notebook["cells"][1]["outputs"], notebook["cells"][1]["execution_count"]) == ([], None)
    after = path.read_text("utf-8")
    start, end = before.index('"x = 1'), before.index('"id": "last"')
    assert after.endswith(before[end:])
    assert after[: before.index('"cell_type": "code"')] == before[: before.index('"cell_type": "code"')]
    assert start < end


@pytest.mark.parametrize(("cell_id", "place"), [("title", 1), ("code", 2), ("last", 3), (None, 0), ("cell-1", 2)])
async def test_a_cell_is_inserted_after_another_or_at_the_beginning(
    path: Path, cell_id: str | None, place: int
) -> None:
    where = {} if cell_id is None else {"cell_id": cell_id}
    notebook = await edit(path, edit_mode="insert", cell_type="markdown", new_source="new\ntext", **where)
    assert sources(notebook)[place] == ("markdown", "new\ntext")
    assert len(notebook["cells"]) == 4
    assert len({cell["id"] for cell in notebook["cells"]}) == 4


@pytest.mark.parametrize("cell_id", ["title", "code", "last"])
async def test_a_cell_is_deleted(path: Path, cell_id: str) -> None:
    notebook = await edit(path, edit_mode="delete", cell_id=cell_id)
    assert cell_id not in {cell["id"] for cell in notebook["cells"]}
    assert len(notebook["cells"]) == 2


async def test_the_only_cell_is_deleted_and_another_one_inserted(path: Path) -> None:
    for cell_id in ("title", "code", "last"):
        notebook = await edit(path, edit_mode="delete", cell_id=cell_id)
    assert notebook["cells"] == []
    notebook = await edit(path, edit_mode="insert", cell_type="code", new_source="z")
    assert sources(notebook) == [("code", "z")]


async def test_a_cell_becomes_one_of_another_kind(path: Path) -> None:
    notebook = await edit(path, cell_id="code", new_source="text", cell_type="markdown")
    assert "outputs" not in notebook["cells"][1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"cell_id": "none", "new_source": "x"}, "there is no cell 'none'; the first cells are: title, code, last"),
        ({"cell_id": "cell-9", "new_source": "x"}, "there is no cell"),
        ({"new_source": "x"}, "cell_id: expected the name of a cell to replace"),
        ({"cell_id": "code"}, "new_source: expected"),
        ({"edit_mode": "insert", "new_source": "x"}, "cell_type: expected the kind"),
        ({"edit_mode": "move", "cell_id": "code", "new_source": "x"}, "edit_mode: expected one of"),
        ({"cell_id": "code", "new_source": "x = 1\nprint(x)"}, "there is nothing to change"),
    ],
)
async def test_what_cannot_be_done_is_said(path: Path, arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolFailure, match=problem):
        await NotebookEdit().propose({"notebook_path": path.name, **arguments}, context(path))


async def test_a_file_that_is_no_notebook_is_not_edited(path: Path) -> None:
    path.write_text("[1", "utf-8")
    with pytest.raises(ToolFailure, match="it is not a notebook"):
        await NotebookEdit().propose({"notebook_path": path.name, "cell_id": "a", "new_source": "b"}, context(path))
    result = await ReadFile().run({"file_path": path.name}, context(path))
    assert isinstance(result, ToolSucceeded)
    assert result.for_model == "[1"
