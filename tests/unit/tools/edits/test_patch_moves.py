"""Moves in patches: two calls, each with a question of its own; the file stays until its text is in the new place."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from isthmus.development_tool import FileDiff
from isthmus.tools.edits.apply_patch import ApplyPatch
from isthmus.tools.edits.patch_text import FilePatch, Hunk, parse_file_patch
from isthmus.tools.port.base import Approved, Overwriting
from isthmus.tools.port.failure import ToolFailure
from support.tool_calls import success_of, tool_context

pytestmark = pytest.mark.anyio

MOVE = """\
*** Begin Patch
*** Update File: old/a.py
*** Move to: new/b.py
@@
-x = 1
+x = 2
*** End Patch
"""
WHOLE = "*** Begin Patch\n*** Update File: old/a.py\n*** Move to: new/b.py\n*** End Patch"
WRITE, REMOVE = ApplyPatch().split({"input": MOVE})


@pytest.fixture
def source(workspace: Path) -> Path:
    path = workspace / "old" / "a.py"
    path.parent.mkdir()
    path.write_bytes(b"\xef\xbb\xbf# \xc3\xa9\r\nx = 1\r\n")
    path.chmod(0o755)
    return path


async def carried_out(workspace: Path, arguments: Mapping[str, Any], modified: str | None = None) -> str:
    context = tool_context(workspace)
    proposal = await ApplyPatch().propose(arguments, context)
    assert isinstance(proposal, FileDiff)
    return (await success_of(ApplyPatch(), context, Approved(proposal, modified), **arguments)).for_model


def test_a_move_is_parsed_with_and_without_hunks() -> None:
    hunk = Hunk(("x = 1",), ("x = 2",))
    assert parse_file_patch(MOVE) == FilePatch("update", "old/a.py", hunks=(hunk,), moved_to="new/b.py")
    assert parse_file_patch(WHOLE) == FilePatch("update", "old/a.py", moved_to="new/b.py")


def test_a_move_is_one_call_that_writes_and_one_that_removes() -> None:
    tool = ApplyPatch()
    assert [tool.describe(arguments) for arguments in (WRITE, REMOVE)] == [
        "Move old/a.py to new/b.py",
        "Delete old/a.py, which was moved to new/b.py",
    ]
    assert [tool.waits_for_earlier(arguments) for arguments in (WRITE, REMOVE)] == [False, True]
    # All that is removed is in the new file: nothing of it need have been read.
    assert [tool.overwriting(arguments) for arguments in (WRITE, REMOVE)] == [Overwriting.NOTHING] * 2


async def test_the_moved_file_keeps_its_bytes_and_its_mode(workspace: Path, source: Path) -> None:
    told = await carried_out(workspace, WRITE)
    moved = workspace / "new" / "b.py"
    assert moved.read_bytes() == b"\xef\xbb\xbf# \xc3\xa9\r\nx = 2\r\n"
    assert moved.stat().st_mode & 0o777 == 0o755
    assert source.exists()
    assert told.startswith(f"Created the new file {moved} from old/a.py. What changed:\n--- a/new/b.py\n")
    assert "# é" in told
    assert await carried_out(workspace, REMOVE) == f"Deleted {source}."
    assert not source.exists()


async def test_a_move_without_hunks_says_nothing_of_the_text(workspace: Path, source: Path) -> None:
    write, remove = ApplyPatch().split({"input": WHOLE})
    assert await carried_out(workspace, write) == f"Created the new file {workspace / 'new/b.py'} from old/a.py."
    await carried_out(workspace, remove)
    assert not source.exists()


@pytest.mark.parametrize("happened", ["not written", "changed there", "changed here", "changed in the review"])
async def test_a_file_stays_unless_its_text_is_in_the_new_place(workspace: Path, source: Path, happened: str) -> None:
    moved = workspace / "new" / "b.py"
    if happened != "not written":
        await carried_out(workspace, WRITE, "x = 3\n" if happened == "changed in the review" else None)
    if happened == "changed there":
        moved.write_text("x = 2\n", encoding="utf-8")
    if happened == "changed here":
        source.write_text("x = 1\ny = 1\n", encoding="utf-8")
    with pytest.raises(ToolFailure, match=r"old/a.py stays: new/b.py does not have its text") as failure:
        await carried_out(workspace, REMOVE)
    assert failure.value.category == "not_moved"
    assert source.exists()


async def test_a_change_between_the_question_and_the_removal_keeps_the_file(workspace: Path, source: Path) -> None:
    await carried_out(workspace, WRITE)
    proposal = await ApplyPatch().propose(REMOVE, tool_context(workspace))
    (workspace / "new" / "b.py").unlink()
    with pytest.raises(ToolFailure, match=r"old/a\.py stays"):
        await success_of(ApplyPatch(), tool_context(workspace), Approved(proposal), **REMOVE)
    assert source.exists()


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("taken.py", "taken.py already exists; choose another path, or delete it first"),
        ("../out.py", "outside the workspace"),
        (".git/hooks/x", "belongs to git"),
    ],
)
async def test_a_move_to_a_place_that_is_taken_or_closed_is_refused(
    workspace: Path, source: Path, target: str, reason: str
) -> None:
    (workspace / "taken.py").write_bytes(b"mine")
    write, _ = ApplyPatch().split({"input": MOVE.replace("new/b.py", target)})
    with pytest.raises(ToolFailure, match=reason):
        await carried_out(workspace, write)
    assert source.exists()
    assert (workspace / "taken.py").read_bytes() == b"mine"


async def test_a_move_to_the_same_path_is_an_update(workspace: Path, source: Path) -> None:
    (update,) = ApplyPatch().split({"input": MOVE.replace("new/b.py", "old/a.py")})
    await carried_out(workspace, update)
    assert source.read_bytes().endswith(b"x = 2\r\n")
