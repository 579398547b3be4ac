"""Hunks of a review that are accepted and rejected in a real Neovim."""

from pathlib import Path

import pytest

from isthmus.editors.neovim.editor import NeovimEditor
from isthmus.ide.editor import DiffAccepted
from isthmus.text.hunks import hunks_between, with_hunks
from support.editing import make_file, review
from support.neovim import PLUGIN, Heard, RunningNeovim, view_is_closed

pytestmark = pytest.mark.anyio

OLD = "a\nb\nc\nd\ne\nf\ng\nh\n"
NEW = "A\nb\nnew\nc\ne\nf\nG\nG2\nh\nend\n"
"""Changed, added, removed, changed, and added at the end: five hunks, each on line `LINES` of the proposal."""
LINES = {1: 1, 2: 3, 3: 4, 4: 7, 5: 10}


async def test_any_hunks_can_be_rejected_and_accepted_again(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    assert len(hunks_between(OLD, NEW)) == len(LINES)
    path = make_file(workspace, "a.py", OLD)
    for number in range(2 ** len(LINES)):
        rejected = [hunk for hunk in LINES if number >> (hunk - 1) & 1]
        again = [hunk for hunk in rejected if (hunk + number) % 3 == 0]
        await editor.open_diff(review(path, NEW, number))
        for hunk in reversed(rejected):  # so that the lines of those that follow stay where they are
            await neovim.enter(str(LINES[hunk]), "IsthmusHunkReject")
            if hunk in again:
                await neovim.enter("IsthmusHunkAccept")
        kept = set(LINES) - (set(rejected) - set(again))
        await neovim.enter("w")
        text = with_hunks(OLD, NEW, kept)
        assert await heard.decision() == DiffAccepted(f"review-{number}", text), (rejected, again)
        await view_is_closed(neovim)
        heard.events.clear()


async def test_the_hunks_of_a_range_are_rejected_and_one_is_undone(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py", OLD), NEW))
    await neovim.enter("%IsthmusHunkReject")
    assert await neovim.lines() == OLD.split("\n")[:-1]
    await neovim.type("u")
    assert await neovim.lines() == NEW.split("\n")[:-1]
    await neovim.enter("%IsthmusHunkReject", "8", "IsthmusHunkAccept")
    await neovim.enter("w")
    assert await heard.decision() == DiffAccepted("review-1", with_hunks(OLD, NEW, [5]))


async def test_hunks_are_chosen_beside_the_file_on_disk_too(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py", OLD), NEW))
    await neovim.type("<C-w>h")
    await neovim.enter("4,7IsthmusHunkReject", "1IsthmusHunkReject", "7IsthmusHunkAccept")
    await neovim.type("<C-w>l")
    await neovim.enter("w")
    assert await heard.decision() == DiffAccepted("review-1", with_hunks(OLD, NEW, [2, 4, 5]))


async def test_a_rejected_last_hunk_brings_back_how_the_file_ends(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.py", "a\r\nb\r\nc")
    await editor.open_diff(review(path, "A\r\nb\r\nC\r\n"))
    await neovim.enter("$", "IsthmusHunkReject", "w")
    assert await heard.decision() == DiffAccepted("review-1", "A\r\nb\r\nc")


async def test_a_line_without_a_hunk_says_so_and_so_does_another_buffer(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await neovim.enter("IsthmusHunkReject")
    assert await neovim.has_message("no proposed edit is under the cursor")
    await editor.open_diff(review(make_file(workspace, "a.py", OLD), NEW))
    await neovim.enter("2IsthmusHunkReject")
    assert await neovim.has_message("this line has no hunk")
    assert await neovim.lines() == NEW.split("\n")[:-1]


async def test_the_plugins_keys_decide_hunks(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await neovim.command(f"set runtimepath^={PLUGIN}")
    await neovim.lua("require('isthmus').setup({ autostart = false, keys = '<leader>a' })")
    await editor.open_diff(review(make_file(workspace, "a.py", OLD), NEW))
    await neovim.type("gg\\ahrVjj\\ahr1G\\aha")
    await neovim.enter("w")
    assert await heard.decision() == DiffAccepted("review-1", with_hunks(OLD, NEW, [1, 3, 4, 5]))
