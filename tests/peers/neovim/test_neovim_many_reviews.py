"""Several reviews at once in Neovim: their order, how fast they can be decided, and all of an agent by one command."""

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.editors.neovim.editor import NeovimEditor, attach
from isthmus.ide.editor import DiffAccepted, DiffRejected
from isthmus.ide.reviews.review import DiffReview
from support.editing import make_file, review
from support.editor_deadlines import PATIENT_NEOVIM
from support.neovim import PLUGIN, Heard, RunningNeovim, hearing, running_neovim, view_is_closed
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

NAMES = ("f.py", "b.py", "e.py", "a.py", "d.py", "c.py")
_TAB_FILES = """
return vim.tbl_map(function(tab)
  local buffer = vim.api.nvim_win_get_buf(vim.api.nvim_tabpage_get_win(tab))
  return vim.fn.fnamemodify(vim.b[buffer].isthmus_path or "", ":t")
end, vim.api.nvim_list_tabpages())
"""
_FRONT = "return vim.fn.fnamemodify(vim.b.isthmus_path or '', ':t')"
_CLOCK = "_G.clock = (vim.uv or vim.loop).hrtime(); (vim.uv or vim.loop).hrtime = function() return _G.clock end"
DECIDED_SECONDS = 3.0
"""Maximum time for six reviews by keys, where the second of pause after each of five others alone is five."""


def _asked(workspace: Path, number: int, name: str, owner: str = "client", title: str = "Claude Code") -> DiffReview:
    asked = review(make_file(workspace, name), "proposed\n", number)
    return replace(asked, owner=owner, title=title, opened=float(number))


@pytest.fixture
async def neovim(workspace: Path) -> AsyncGenerator[RunningNeovim]:
    """Start Neovim as a user has it, with reviews after their pause, and the plugin's keys."""
    async with running_neovim(workspace, reviews=()) as running:
        await running.command(f"set runtimepath^={PLUGIN}")
        await running.lua("require('isthmus').setup({ keys = '\\\\a' })")
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


async def _all_open(neovim: RunningNeovim, editor: NeovimEditor, workspace: Path) -> None:
    """Open six reviews in an order that is that of neither their names nor their ids."""
    for number, name in enumerate(NAMES, 1):
        await editor.open_diff(_asked(workspace, number, name))


async def _front(neovim: RunningNeovim, name: str) -> None:
    async def is_there() -> bool:
        return await neovim.lua(_FRONT) == name

    await eventually_async(is_there, what=f"{name} is in front")


async def test_reviews_are_shown_and_follow_in_the_order_in_which_they_were_asked(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await neovim.lua("vim.g.isthmus_review = { pause = 0, reading = 0 }")
    await _all_open(neovim, editor, workspace)
    assert await neovim.lua(_TAB_FILES) == ["", *NAMES]
    assert "5 more" in await neovim.lua("return vim.wo.winbar")
    for number, name in enumerate(NAMES):
        await _front(neovim, name)
        await neovim.enter("w")
        await eventually_async(lambda count=number: len(heard.decisions) > count, what=f"{name} is decided")
    assert heard.decisions == [DiffAccepted(f"review-{number}", "proposed\n") for number in range(1, 7)]
    await view_is_closed(neovim)


async def test_a_review_that_comes_later_does_not_take_the_place_of_the_one_that_is_read(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await neovim.lua(_CLOCK)
    for number, name in enumerate(("b.py", "a.py"), 1):
        await neovim.lua("_G.clock = _G.clock + 5e9")
        await editor.open_diff(_asked(workspace, number, name))
        await _front(neovim, "b.py")
    assert not await neovim.has_message("review of a.py waits")
    assert "1 more" in await neovim.lua("return vim.wo.winbar")
    assert await editor.close_diff("review-1") == "proposed\n"
    await _front(neovim, "a.py")
    assert "more" not in await neovim.lua("return vim.wo.winbar")


async def test_the_first_that_was_asked_is_in_front_though_its_file_takes_longer_to_read(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    large = _asked(workspace, 1, "large.txt")
    (workspace / "large.txt").write_bytes(b"0123456789abcde\n" * 500_000)
    await asyncio.gather(editor.open_diff(large), editor.open_diff(_asked(workspace, 2, "small.txt")))
    await _front(neovim, "large.txt")
    assert "1 more" in await neovim.lua("return vim.wo.winbar")


async def test_six_reviews_are_decided_by_keys_without_a_pause_between_them(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await _all_open(neovim, editor, workspace)

    async def takes_keys() -> bool:
        return await neovim.lua("return vim.b.isthmus_takes_keys == true")

    await eventually_async(takes_keys, what="the first review takes keys")
    began = time.perf_counter()
    for number, name in enumerate(NAMES):
        await _front(neovim, name)

        async def is_decided(count: int = number) -> bool:
            if len(heard.decisions) <= count:
                await neovim.type("\\aa")
            return len(heard.decisions) > count

        await eventually_async(is_decided, what=f"{name} is decided")
    took = time.perf_counter() - began
    assert heard.decisions == [DiffAccepted(f"review-{number}", "proposed\n") for number in range(1, 7)]
    assert took < DECIDED_SECONDS, f"six reviews took {took:.1f} s"


async def test_a_repeated_key_or_one_that_came_before_does_not_accept_the_next(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await neovim.lua(_CLOCK)
    await neovim.lua("_G.clock = _G.clock + 5e9")
    for number, name in enumerate(("b.py", "a.py"), 1):
        await editor.open_diff(_asked(workspace, number, name))
    await neovim.lua("_G.clock = _G.clock + 5e9")
    await neovim.type("\\aa\\aa")  # the second one was typed before the next review was drawn
    await _front(neovim, "a.py")
    await neovim.lua("_G.clock = _G.clock + 0.1e9")
    await neovim.type("\\aa")
    assert heard.decisions == [DiffAccepted("review-1", "proposed\n")]
    await neovim.lua("_G.clock = _G.clock + 0.2e9")
    await neovim.type(":w<CR>")
    assert heard.decisions == [DiffAccepted("review-1", "proposed\n")]
    await neovim.type("\\aa")
    await eventually_async(lambda: len(heard.decisions) == 2, what="the other decision")


@pytest.mark.parametrize("accepting", [True, False])
async def test_all_reviews_of_an_agent_are_decided_by_one_command(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, accepting: bool
) -> None:
    await neovim.lua("vim.g.isthmus_review = { pause = 0, reading = 0 }")
    for number, name in enumerate(NAMES, 1):
        owner, title = ("other", "Gemini CLI") if name in ("b.py", "d.py") else ("client", "Claude Code")
        await editor.open_diff(_asked(workspace, number, name, owner, title))
    await _front(neovim, "f.py")
    await neovim.command("tabfirst")
    command = "IsthmusDiffAcceptAll" if accepting else "IsthmusDiffRejectAll"
    await neovim.enter(command)
    said = "several agents wait; go to a review of one, or name it: Claude Code, Gemini CLI"
    await eventually_async(lambda: neovim.has_message(said), what="the agents are named")
    assert heard.decisions == []
    await neovim.enter("2tabnext", command)
    await eventually_async(lambda: len(heard.decisions) == 4, what="four decisions")
    expected = [1, 3, 4, 6]
    if accepting:
        assert heard.decisions == [DiffAccepted(f"review-{number}", "proposed\n") for number in expected]
    else:
        assert heard.decisions == [DiffRejected(f"review-{number}") for number in expected]
    verb = "accepted" if accepting else "rejected"
    await eventually_async(lambda: neovim.has_message(f"{verb} 4 edit(s) of Claude Code"), what="the message")
    await _front(neovim, "b.py")
    await neovim.enter(f"{command} gemini cli")
    await eventually_async(lambda: len(heard.decisions) == 6, what="all decisions")
    await view_is_closed(neovim)
    await neovim.enter(command)
    assert await neovim.has_message("no proposed edit waits for you")


async def test_what_came_after_the_command_began_and_what_a_program_asks_is_not_decided(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await neovim.lua(_CLOCK)
    await neovim.lua("_G.clock = _G.clock + 5e9")
    await editor.open_diff(_asked(workspace, 1, "a.py"))
    await neovim.lua("_G.clock = _G.clock + 5e9")
    await neovim.connection.request("nvim_input", ":IsthmusDiffAcceptAll", timeout=30)
    await neovim.lua("_G.clock = _G.clock + 1e9")
    await editor.open_diff(_asked(workspace, 2, "b.py"))
    await neovim.type("<CR>")
    await eventually_async(lambda: heard.decisions, what="the decision")
    assert heard.decisions == [DiffAccepted("review-1", "proposed\n")]
    await eventually_async(lambda: neovim.has_message("1 that came meanwhile still wait"), what="the message")
    await neovim.command("IsthmusDiffAcceptAll")
    assert await neovim.has_message("nothing is decided: that did not come from a key")
    assert len(heard.decisions) == 1
