"""Questions that a companion asks in a real Neovim, and the commands with which the user answers and decides."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.neovim.editor import NeovimEditor, attach
from isthmus.ide.editor import DiffAccepted, DiffRejected, EditorGoneError, FileMentioned
from support.editing import make_file, review
from support.editor_deadlines import PATIENT_NEOVIM
from support.neovim import Heard, RunningNeovim, connected, view_is_closed
from support.programs import require
from support.pty_program import pty_program
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_WINDOWS = "return #vim.api.nvim_list_wins()"


async def _asked(neovim: RunningNeovim, editor: NeovimEditor) -> "asyncio.Task[bool]":
    asking = asyncio.create_task(editor.confirm("Claude Code wants to run code", "print(1)\nprint(2)"))

    async def is_shown() -> bool:
        return await neovim.lua(_WINDOWS) == 2

    await eventually_async(is_shown, what="the question's window")
    return asking


@pytest.mark.parametrize(
    ("keys", "answer"),
    [("y", True), ("n", False), ("<Esc>", False), ("q", False), (":quit<CR>", False), (":bwipeout!<CR>", False)],
)
async def test_a_key_answers_and_closing_the_window_is_a_no(
    neovim: RunningNeovim, editor: NeovimEditor, keys: str, answer: bool
) -> None:
    asking = await _asked(neovim, editor)
    assert await neovim.lines() == [
        "Claude Code wants to run code", "", "print(1)", "print(2)", "",
        "y yes   n no   (or :IsthmusAllow, :IsthmusRefuse)",
    ]  # fmt: skip
    await neovim.type(keys)
    assert await asyncio.wait_for(asking, 30) is answer
    assert await neovim.lua(_WINDOWS) == 1


@pytest.mark.parametrize(
    "text",
    ["\n".join(f"step {number}" for number in range(60)), "x" * 4000, "\n" * 1500 + "evil()"],
    ids=["many-lines", "one-long-line", "hidden-below"],
)
@pytest.mark.parametrize("by", ["y", "IsthmusAllow"])
async def test_a_yes_counts_once_all_of_the_question_was_on_the_screen(
    neovim: RunningNeovim, editor: NeovimEditor, text: str, by: str
) -> None:
    asking = asyncio.create_task(editor.confirm("May I?", text))
    await eventually_async(lambda: _has_windows(neovim, 2), what="the question's window")
    shown = await neovim.lines()
    if "\n" in text:
        assert shown[2 : 2 + len(text.split("\n"))] == text.split("\n")
    else:
        assert "".join(line.removeprefix("\u21b3 ") for line in shown[2:-2]) == text
    assert not asking.done()
    for _ in range(5):  # a held key goes no further than one page
        await _say_yes(neovim, by)
    assert not asking.done()
    assert await neovim.lua("return vim.fn.line('w0') > 1")
    await neovim.type("G")
    await neovim.lua("vim.cmd.redraw()")
    await _say_yes(neovim, by)
    assert not asking.done()  # the middle was not shown

    async def is_answered() -> bool:
        await _say_yes(neovim, by)
        return asking.done()

    await neovim.lua("vim.uv = vim.uv or vim.loop; vim.uv.hrtime_was = vim.uv.hrtime")
    await neovim.lua("local n = 0; vim.uv.hrtime = function() n = n + 1e9; return vim.uv.hrtime_was() + n end")
    await eventually_async(is_answered, what="the answer at the end")
    assert await asking is True


@pytest.mark.parametrize("text", ["print(1)", "a wide line " * 12], ids=["small", "wrapped"])
async def test_a_question_that_is_shown_whole_is_answered_at_once(
    neovim: RunningNeovim, editor: NeovimEditor, text: str
) -> None:
    asking = asyncio.create_task(editor.confirm("May I?", text))
    await eventually_async(lambda: _has_windows(neovim, 2), what="the question's window")
    await neovim.type("y")
    assert await asyncio.wait_for(asking, 30) is True


async def _has_windows(neovim: RunningNeovim, count: int) -> bool:
    return await neovim.lua(_WINDOWS) == count


async def _say_yes(neovim: RunningNeovim, by: str) -> None:
    await (neovim.type("y") if by == "y" else neovim.enter(by))


@pytest.mark.parametrize(("command", "answer"), [("IsthmusAllow", True), ("IsthmusRefuse", False)])
async def test_a_user_who_is_typing_goes_on_typing_and_answers_by_command(
    neovim: RunningNeovim, editor: NeovimEditor, command: str, answer: bool
) -> None:
    await neovim.connection.request("nvim_input", "i", timeout=30)
    asking = await _asked(neovim, editor)
    await neovim.type("yn")
    assert await neovim.lines() == ["yn"]
    assert not asking.done()
    await neovim.type("<Esc>")
    await neovim.enter(command)
    assert await asyncio.wait_for(asking, 30) is answer


async def test_a_question_that_is_answered_elsewhere_is_closed(neovim: RunningNeovim, editor: NeovimEditor) -> None:
    asking = await _asked(neovim, editor)
    asking.cancel()
    await asyncio.wait([asking])

    async def is_closed() -> bool:
        return await neovim.lua(_WINDOWS) == 1

    await eventually_async(is_closed, what="the question is closed")


async def test_the_oldest_of_two_questions_is_answered_first(neovim: RunningNeovim, editor: NeovimEditor) -> None:
    first = await _asked(neovim, editor)
    second = asyncio.create_task(editor.confirm("And another", "?"))

    async def both_are_shown() -> bool:
        return await neovim.lua(_WINDOWS) == 3

    await eventually_async(both_are_shown, what="both questions")
    await neovim.enter("IsthmusAllow")
    assert await asyncio.wait_for(first, 30) is True
    assert not second.done()
    await neovim.enter("IsthmusRefuse")
    assert await asyncio.wait_for(second, 30) is False


async def test_quitting_leaves_nobody_waiting_for_an_answer(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard
) -> None:
    asking = await _asked(neovim, editor)
    await neovim.quit()
    with pytest.raises(EditorGoneError):
        await asyncio.wait_for(asking, 30)


async def test_a_companion_that_leaves_takes_its_questions_and_commands_away(
    neovim: RunningNeovim, editor: NeovimEditor
) -> None:
    asking = await _asked(neovim, editor)
    await editor.aclose()
    with pytest.raises(EditorGoneError):
        await asyncio.wait_for(asking, 30)
    assert await neovim.lua(_WINDOWS) == 1
    assert await neovim.lua("return vim.fn.exists(':IsthmusDiffAccept')") == 0


async def test_the_command_accepts_the_review_of_its_window(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    one, two = make_file(workspace, "one.py"), make_file(workspace, "two.py")
    await editor.open_diff(review(one, "first\n", 1))
    await editor.open_diff(review(two, "second\n", 2))
    await neovim.enter("IsthmusDiffAccept")
    await eventually_async(lambda: heard.decisions == [DiffAccepted("review-1", "first\n")], what="the decision")
    await neovim.enter("tabfirst", "IsthmusDiffReject")  # the only one that waits, from another window
    await eventually_async(lambda: heard.decisions[1:] == [DiffRejected("review-2")], what="the other decision")
    await view_is_closed(neovim)


async def test_with_two_reviews_the_command_decides_none_from_elsewhere(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(make_file(workspace, "one.py"), "first\n", 1))
    await editor.open_diff(review(make_file(workspace, "two.py"), "second\n", 2))
    await neovim.enter("tabfirst", "IsthmusDiffAccept")
    assert "go to the proposed edit" in await neovim.lua("return vim.fn.execute('messages')")
    assert heard.decisions == []


async def test_without_a_review_the_command_says_that_none_waits(neovim: RunningNeovim, editor: NeovimEditor) -> None:
    await neovim.enter("IsthmusDiffReject")
    assert "no proposed edit waits" in await neovim.lua("return vim.fn.execute('messages')")


async def test_a_mention_reaches_every_companion_that_is_attached(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    other = await attach(neovim.address, PATIENT_NEOVIM)
    try:
        also = Heard(other)
        await neovim.command(f"edit {path}", "2,3IsthmusMention")
        for listener in (heard, also):
            await eventually_async(lambda here=listener: FileMentioned(path, 1, 2) in here.events, what="the mention")
        also.task.cancel()
    finally:
        await other.aclose()
    await neovim.command("IsthmusMention")
    await eventually_async(lambda: FileMentioned(path) in heard.events, what="a mention of the whole file")


async def test_terminals_get_variables_and_lose_them_again(neovim: RunningNeovim, editor: NeovimEditor) -> None:
    await editor.set_terminal_environment({"ISTHMUS_TEST": "a value"})
    assert await neovim.lua("return vim.fn.system('printf %s \"$ISTHMUS_TEST\"')") == "a value"
    await editor.set_terminal_environment({"ISTHMUS_TEST": None})
    assert await neovim.lua("return vim.fn.system('printf %s \"${ISTHMUS_TEST-unset}\"')") == "unset"


async def test_the_text_of_a_buffer_has_what_is_not_saved_and_its_own_line_ends(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = make_file(workspace, "a.txt", b"\xef\xbb\xbfone\r\ntwo")
    assert await editor.text(path) is None
    await neovim.command(f"edit {path}")
    assert await editor.text(path) == "\ufeffone\r\ntwo"
    await neovim.set_lines("changed")
    assert await editor.text(path) == "\ufeffchanged"


@pytest.mark.parametrize("name", ["a" * 70 + "/end of the name", "漢" * 60 + "/the end"], ids=["long", "wide"])
async def test_a_message_longer_than_the_screen_is_told_whole_and_makes_no_prompt(workspace: Path, name: str) -> None:
    address = str(workspace / "socket")
    command = [require("nvim"), "--clean", "-n", "--listen", address]
    environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    with pty_program(command, folder=workspace, environment=environment, columns=80, rows=24) as terminal:
        user = await connected(address)
        editor = await attach(address, PATIENT_NEOVIM)
        await editor.show_message(f"what you typed into the review of a.py is kept in {name}")
        await eventually_async(lambda: terminal.screen_with("end"), what="the end of the message")
        mode: dict[str, Any] = await user.request("nvim_get_mode", timeout=30)
        assert mode == {"mode": "n", "blocking": False}
        said: dict[str, str] = await user.request("nvim_exec2", "messages", {"output": True}, timeout=30)
        assert name.replace(" ", "") in "".join(said["output"].split())
        await user.aclose()
        await editor.aclose()
