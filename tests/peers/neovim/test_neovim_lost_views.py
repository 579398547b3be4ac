"""Reviews whose Neovim quits, crashes or is killed while the user types: the typed text is sent, and kept."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from isthmus.editors.neovim.editor import NeovimEditor, attach
from isthmus.ide.companion import Companion
from isthmus.ide.editor import DiffEdited, DiffRejected
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.review import Rejected
from support.companion_recorder import Recorder
from support.editing import make_file, review
from support.editor_deadlines import PATIENT_LIMITS, PATIENT_NEOVIM
from support.neovim import Heard, RunningNeovim
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def _quit(neovim: RunningNeovim, command: str) -> None:
    with contextlib.suppress(Exception):  # it ends before it answers
        await neovim.connection.request("nvim_command", command, timeout=5)


async def test_what_is_typed_is_told_soon(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    proposal = review(make_file(workspace, "a.py"), "new\r\n")
    await editor.open_diff(proposal)
    await neovim.type("Amine<Esc>")
    await eventually_async(lambda: DiffEdited(proposal.id, "newmine\r\n") in heard.events, what="the text in the view")
    assert heard.decisions == []
    await neovim.type("u")
    await eventually_async(lambda: DiffEdited(proposal.id, "new\r\n") in heard.events, what="the proposal again")


async def test_a_neovim_that_is_killed_has_told_what_was_typed(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    proposal = review(make_file(workspace, "a.py"), "new\n")
    await editor.open_diff(proposal)
    await neovim.type("Amine")  # and is still typing
    await eventually_async(lambda: DiffEdited(proposal.id, "newmine\n") in heard.events, what="the text in the view")
    neovim.process.kill()
    await asyncio.wait_for(heard.task, 30)
    assert heard.decisions == []


@pytest.mark.parametrize(("keys", "left"), [("Amine<Esc>", "newmine\n"), ("", None)])
async def test_quitting_rejects_and_hands_over_what_was_typed(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, keys: str, left: str | None
) -> None:
    proposal = review(make_file(workspace, "a.py"), "new\n")
    await editor.open_diff(proposal)
    await neovim.type(keys)
    await _quit(neovim, "qall!")
    await asyncio.wait_for(heard.task, 30)
    assert heard.decisions == [DiffRejected(proposal.id, left)]


async def test_rejecting_by_hand_hands_over_what_was_typed(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    proposal = review(make_file(workspace, "a.py"), "new\n")
    await editor.open_diff(proposal)
    await neovim.type("Amine<Esc>")
    await neovim.type(":quit<CR>")
    assert await heard.decision() == DiffRejected(proposal.id, "newmine\n")


async def test_a_companion_keeps_what_was_typed_into_a_neovim_that_quits(
    neovim: RunningNeovim, workspace: Path, tmp_path: Path
) -> None:
    editor = await attach(neovim.address, PATIENT_NEOVIM)
    companion, client = Companion(editor, kept=KeptTexts(tmp_path / "kept"), limits=PATIENT_LIMITS), Recorder()
    companion.attach(client)
    running = asyncio.create_task(companion.run())
    await companion.open_diff(client, make_file(workspace, "a.py"), "new\n")
    await neovim.type("Amine<Esc>")
    await _quit(neovim, "qall!")
    await asyncio.wait_for(running, 30)
    assert [Path(path).read_text(encoding="utf-8") for path in companion.kept_texts.paths()] == ["newmine\n"]
    assert [decided.state for decided in client.decisions] == [Rejected()]
    await editor.aclose()
