import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from isthmus.development_tool import FileDiff
from isthmus.tools.edits.write_file import WriteFile
from isthmus.tools.port.base import Approved
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.reading.read_file import ReadFile
from support.tool_calls import success_of, tool_context

pytestmark = pytest.mark.anyio

Swap = Callable[[str, Callable[[], None]], None]
BEFORE_READING = "isthmus.tools.port.content.open_file"
BEFORE_WRITING = "isthmus.tools.edits.edit.make_folders"


@pytest.fixture
def right_before(monkeypatch: pytest.MonkeyPatch) -> Swap:
    """Return a function that acts between the check of a path and its use by another function."""

    def arrange(function: str, action: Callable[[], None]) -> None:
        module, _, name = function.rpartition(".")
        real = getattr(importlib.import_module(module), name)

        def act_first(*arguments: object) -> object:
            action()
            return real(*arguments)

        monkeypatch.setattr(function, act_first)

    return arrange


@pytest.fixture
def outside(workspace: Path, tmp_path: Path) -> Path:
    """Return a folder with a secret; one in the workspace looks like it."""
    for folder, text in ((tmp_path / "outside", "secret\n"), (workspace / "sub", "harmless\n")):
        folder.mkdir()
        (folder / "a.txt").write_text(text)
    return tmp_path / "outside"


def folder_swapped(workspace: Path, outside: Path) -> Callable[[], None]:
    def swap() -> None:
        if not (workspace / "sub").is_symlink():
            (workspace / "sub").rename(workspace / "before")
            (workspace / "sub").symlink_to(outside)

    return swap


def file_swapped(workspace: Path, outside: Path) -> Callable[[], None]:
    def swap() -> None:
        (workspace / "sub" / "a.txt").unlink()
        (workspace / "sub" / "a.txt").symlink_to(outside / "a.txt")

    return swap


def workspace_swapped(workspace: Path, outside: Path) -> Callable[[], None]:
    def swap() -> None:
        if not workspace.is_symlink():
            outside.rename(outside.parent / "sub")
            outside.mkdir()
            (outside.parent / "sub").rename(outside / "sub")
            workspace.rename(workspace.with_name("before"))
            workspace.symlink_to(outside)

    return swap


SWAPS = pytest.mark.parametrize("swapped", [folder_swapped, file_swapped, workspace_swapped])


@SWAPS
async def test_what_became_a_link_after_the_check_is_not_read(
    workspace: Path, outside: Path, right_before: Swap, swapped: Callable[[Path, Path], Callable[[], None]]
) -> None:
    right_before(BEFORE_READING, swapped(workspace, outside))
    with pytest.raises(ToolFailure, match="symbolic link") as failure:
        await success_of(ReadFile(), tool_context(workspace), None, file_path="sub/a.txt")
    assert failure.value.category == "link_in_path"


@SWAPS
async def test_what_became_a_link_after_the_check_is_not_written(
    workspace: Path, outside: Path, right_before: Swap, swapped: Callable[[Path, Path], Callable[[], None]]
) -> None:
    arguments = {"file_path": "sub/a.txt", "content": "mine\n"}
    context = tool_context(workspace)
    proposal = await WriteFile().propose(arguments, context)
    assert isinstance(proposal, FileDiff)
    right_before(BEFORE_WRITING, swapped(workspace, outside))
    with pytest.raises(ToolFailure, match="symbolic link"):
        await success_of(WriteFile(), context, Approved(proposal, None), **arguments)
    left = [path.read_text() for path in outside.rglob("a.txt")]
    assert left == ["secret\n"]


async def test_a_new_file_is_not_made_where_a_link_came_meanwhile(
    workspace: Path, outside: Path, right_before: Swap
) -> None:
    arguments = {"file_path": "sub/new/b.txt", "content": "mine\n"}
    context = tool_context(workspace)
    proposal = await WriteFile().propose(arguments, context)
    assert isinstance(proposal, FileDiff)
    right_before(BEFORE_WRITING, folder_swapped(workspace, outside))
    with pytest.raises(ToolFailure, match="symbolic link"):
        await success_of(WriteFile(), context, Approved(proposal, None), **arguments)
    assert [path.name for path in outside.iterdir()] == ["a.txt"]
