"""Keys meant for other text never decide a review in Neovim, however short the time after it appears."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.editors.neovim.editor import NeovimEditor, attach
from isthmus.ide.editor import DiffAccepted, DiffRejected
from support.editing import content, make_file, review
from support.editor_deadlines import PATIENT_NEOVIM
from support.neovim import PLUGIN, Heard, RunningNeovim, hearing, running_neovim, view_is_closed
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

DELAYS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 1.99)
"""Seconds between the view of a review and keys that were meant for other text."""
_LATER = (
    "_G.later = {}; vim.defer_fn = function(work, after) table.insert(_G.later, { work = work, after = after }) end"
)
"""Replacement of the clock that also stops timers."""
_PASSED = "for _, timer in ipairs(_G.later) do if timer.after <= ... * 1000 then timer.work() end end"
_CLOCK = "_G.clock = (vim.uv or vim.loop).hrtime(); (vim.uv or vim.loop).hrtime = function() return _G.clock end"


@pytest.fixture
async def neovim(workspace: Path) -> AsyncGenerator[RunningNeovim]:
    """Start Neovim as a user has it, with reviews after their pause and a stopped clock."""
    async with running_neovim(workspace, reviews=()) as running:
        await running.lua(_CLOCK)
        yield running


@pytest.fixture
async def editor(neovim: RunningNeovim) -> AsyncGenerator[NeovimEditor]:
    attached = await attach(neovim.address, PATIENT_NEOVIM)
    yield attached
    await attached.aclose()


@pytest.fixture
async def heard(editor: NeovimEditor) -> AsyncGenerator[Heard]:
    async with hearing(editor) as heard:
        yield heard


async def _pass(neovim: RunningNeovim, seconds: float) -> None:
    await neovim.lua("_G.clock = _G.clock + ... * 1e9", seconds)


async def _is_in_front(neovim: RunningNeovim) -> bool:
    return await neovim.lua("return (vim.b.isthmus_path or vim.b.isthmus_question) ~= nil")


async def _in_front(neovim: RunningNeovim) -> None:
    await eventually_async(lambda: _is_in_front(neovim), what="the review is in front")


async def _told(neovim: RunningNeovim, text: str) -> None:
    async def is_told() -> bool:
        messages: str = await neovim.lua("return vim.fn.execute('messages')")
        return text in " ".join(messages.split())  # a long message comes line by line

    await eventually_async(is_told, what=text)


async def test_a_write_of_ones_own_file_saves_it_and_accepts_no_review_that_just_came_up(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    own, other = make_file(workspace, "own.txt", ""), make_file(workspace, "a.py")
    await neovim.command(f"edit {own}")
    for number, delay in enumerate(DELAYS):
        await neovim.set_lines(f"typed {number}")
        await _pass(neovim, 5)
        await editor.open_diff(review(other, "proposed\n", number))
        assert await _is_in_front(neovim), "the user was idle"
        await _pass(neovim, delay)
        await neovim.type(":w<CR>")
        assert content(own) == f"typed {number}\n".encode(), f"{delay} s"
        assert await editor.close_diff(f"review-{number}") == "proposed\n", f"{delay} s"
    assert heard.decisions == []


async def test_what_a_user_types_when_a_review_comes_up_goes_into_their_own_file(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    own = make_file(workspace, "own.txt", "one\n")
    await neovim.command(f"edit {own}")
    await _pass(neovim, 5)
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await neovim.type("otwo<Esc>ZZ")
    assert content(own) == b"one\ntwo\n"
    assert await editor.close_diff("review-1") == "proposed\n"
    assert heard.decisions == []


async def test_keys_that_were_meant_for_ones_own_file_answer_no_question(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await neovim.command(f"edit {make_file(workspace, 'own.txt', 'one')}")
    await _pass(neovim, 5)
    asking = asyncio.create_task(editor.confirm("May I?", "print(1)"))

    async def is_asked() -> bool:
        return "May I?" in await neovim.lines()

    await eventually_async(is_asked, what="the question in front")
    await _pass(neovim, 1)
    await neovim.type("yyp")
    assert await neovim.lines() == ["one", "one"]
    assert not asking.done()
    await _told(neovim, "May I? - :IsthmusAllow or :IsthmusRefuse")
    await neovim.type("<C-w>wy")
    assert await asyncio.wait_for(asking, 30) is True


async def test_a_review_that_could_be_read_takes_keys_and_says_so_before(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await neovim.command(f"edit {make_file(workspace, 'own.txt')}")
    await _pass(neovim, 5)
    await neovim.lua(_LATER)
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    takes_keys = "return vim.b.isthmus_takes_keys == true and vim.wo.winbar:find(':w') ~= nil"
    for seconds in (0, 1.99):
        await neovim.lua(_PASSED, seconds)
        assert "keys still go where you were" in await neovim.lua("return vim.wo.winbar")
        assert not await neovim.lua(takes_keys)
    await _pass(neovim, 2.01)
    await neovim.lua(_PASSED, 2.01)
    assert await neovim.lua(takes_keys)
    await neovim.type(":w<CR>")
    assert await heard.decision() == DiffAccepted("review-1", "proposed\n")


@pytest.mark.parametrize(
    ("before", "after", "saved"),
    [("jk", ":w<CR>", "one\n"), (":", "w<CR>", "one\n"), ("ox", "<Esc>:w<CR>", "one\nx\n")],
)
async def test_a_review_waits_behind_until_the_user_pauses(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, before: str, after: str, saved: str
) -> None:
    own = make_file(workspace, "own.txt", "one\n")
    await neovim.command(f"edit {own}")
    await neovim.lua("vim.bo.modified = true")
    await neovim.type(before)
    await _pass(neovim, 0.3)
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    assert not await _is_in_front(neovim)
    await _pass(neovim, 0.3)
    await neovim.type(after)
    assert content(own) == saved.encode()
    await _told(neovim, "review of a.py waits in tab 2")
    assert not await _is_in_front(neovim)
    await _pass(neovim, 1.01)
    await _in_front(neovim)
    assert heard.decisions == []
    await _pass(neovim, 2.01)
    await neovim.type(":q<CR>")
    assert await heard.decision() == DiffRejected("review-1")


async def test_after_keys_went_back_the_review_waits_for_the_user_to_come(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await neovim.command(f"edit {make_file(workspace, 'own.txt')}")
    await _pass(neovim, 5)
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await neovim.type("j")
    assert not await _is_in_front(neovim)
    await _told(neovim, "review of a.py waits in tab 2 (2gt)")
    await _pass(neovim, 0.1)
    await neovim.type("2gt")
    assert await _is_in_front(neovim)
    await _pass(neovim, 0.3)
    await neovim.type(":w<CR>")
    assert await heard.decision() == DiffAccepted("review-1", "proposed\n")


async def test_a_quit_without_saving_that_was_meant_for_the_review_loses_no_own_changes(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    own = make_file(workspace, "own.txt", "one\n")
    await neovim.command(f"edit {own}")
    await neovim.set_lines("not saved yet")
    await _pass(neovim, 5)
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await neovim.type(":q!<CR>")
    await _told(neovim, ":quit! is not done")
    assert await neovim.lines() == ["not saved yet"]
    assert heard.decisions == []


async def test_keys_for_a_terminal_go_on_going_there(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await neovim.command("terminal cat")
    await neovim.type("i")
    await _pass(neovim, 5)
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await _in_front(neovim)
    await neovim.type("ZZ yes<CR>")

    async def has_arrived() -> bool:
        return "ZZ yes" in await neovim.lines()

    await eventually_async(has_arrived, what="the text in the terminal")
    assert await neovim.mode() == "t"
    assert await editor.close_diff("review-1") == "proposed\n"
    assert heard.decisions == []


async def test_keys_for_one_review_do_not_decide_the_next(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await neovim.command(f"edit {make_file(workspace, 'own.txt')}")
    for number, name in enumerate(("a.py", "b.py"), 1):
        await _pass(neovim, 5)
        await editor.open_diff(review(make_file(workspace, name), "proposed\n", number))
    await _pass(neovim, 5)
    await neovim.type(":w<CR>")
    await heard.decision()
    await eventually_async(lambda: neovim.lua("return vim.fn.tabpagenr('$') == 2"), what="one view is left")
    await neovim.type(":wq<CR>")
    await _told(neovim, "b.py is not accepted: that began before it could be read")
    await _pass(neovim, 1.01)
    await neovim.type(":w<CR>")
    await eventually_async(lambda: len(heard.decisions) == 2, what="the other decision")
    assert heard.decisions == [DiffAccepted("review-1", "proposed\n"), DiffAccepted("review-2", "proposed\n")]


async def test_a_command_that_was_begun_for_a_review_that_ended_does_not_accept_another(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await neovim.command(f"edit {make_file(workspace, 'own.txt')}")
    for number, name in enumerate(("a.py", "b.py"), 1):
        await _pass(neovim, 5)
        await editor.open_diff(review(make_file(workspace, name), "proposed\n", number))
    await _pass(neovim, 5)
    for command in (":w", ":IsthmusDiffAccept"):
        await neovim.connection.request("nvim_input", command, timeout=30)
        await _pass(neovim, 0.1)
        if command == ":w":
            assert await editor.close_diff("review-1") == "proposed\n"
        else:
            await editor.open_diff(review(make_file(workspace, "c.py"), "proposed\n", 3))
            assert await editor.close_diff("review-3") == "proposed\n"
        await _pass(neovim, 3)
        await neovim.type("<CR>")
        assert heard.decisions == []
    await neovim.type(":IsthmusDiffAccept<CR>")
    assert await heard.decision() == DiffAccepted("review-2", "proposed\n")


@pytest.mark.parametrize("command", ["silent! write", "wall", "lua vim.cmd('update')"])
async def test_a_program_that_saves_everything_accepts_nothing(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, command: str
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await _pass(neovim, 60)
    await neovim.command(command)
    await _told(neovim, "that did not come from a key")
    assert await editor.close_diff("review-1") == "proposed\n"
    await view_is_closed(neovim)
    assert heard.decisions == []


async def test_mapped_keys_decide_only_a_review_under_the_cursor_that_could_be_read(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await neovim.command(f"set runtimepath^={PLUGIN}", f"edit {make_file(workspace, 'own.txt', 'one')}")
    await neovim.lua("require('isthmus').setup({ keys = '\\\\a' })")
    await _pass(neovim, 5)
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await _pass(neovim, 1)
    await neovim.type("\\aa")
    await _told(neovim, "no proposed edit is under the cursor")
    assert await neovim.lines() == ["one"]
    await _pass(neovim, 5)
    await neovim.type("2gt")
    await neovim.lua("require('isthmus').decide(true)")
    await _told(neovim, "is not decided: that did not come from a key")
    assert heard.decisions == []
    await neovim.type("\\aa")
    assert await heard.decision() == DiffAccepted("review-1", "proposed\n")
    await view_is_closed(neovim)
    await editor.open_diff(review(make_file(workspace, "a.py"), "again\n", 2))
    await neovim.type("2gt\\ar")
    await eventually_async(lambda: DiffRejected("review-2") in heard.decisions, what="the rejection")
