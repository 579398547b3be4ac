"""Permission questions of Claude Code in Neovim, as a diff, several at a time, and from subagents in the background."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.editors.neovim.editor import attach
from isthmus.ide.options import CompanionLimits, CompanionOptions, PermissionLimits
from support.claude_code import PROGRAM
from support.companion import running_companion, running_host
from support.editor_deadlines import PATIENT_NEOVIM
from support.isthmus_program import user
from support.neovim import RunningNeovim, running_neovim
from support.permission_cli import KINDS, Ended, permission_cli, strict_permission_cli
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

BASH = {"tool_name": "Bash", "tool_input": {"command": "make"}}
SUBAGENT = {**BASH, "agent_id": "a1", "agent_type": "general-purpose"}
SHORT = CompanionLimits(permissions=PermissionLimits(terminal_seconds=0.3, first_seconds=1.0))


async def _questions(folder: Path) -> list[dict[str, Any]]:
    return (await user("questions", folder=folder))["questions"]


async def _question(folder: Path) -> dict[str, Any]:
    (question,) = (await user("questions", "--wait", "30", folder=folder))["questions"]
    return question


async def _windows(neovim: RunningNeovim, count: int) -> None:
    async def has_windows() -> bool:
        return await neovim.lua("return #vim.api.nvim_list_wins()") == count

    await eventually_async(has_windows, 60, what=f"{count} windows")


@pytest.mark.parametrize("kind", KINDS)
async def test_neovim_answers_the_question_and_closes_it_when_the_terminal_did(kind: str, workspace: Path) -> None:
    async with running_neovim(workspace) as neovim:
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        async with running_host(editor, CompanionOptions()), permission_cli(kind, workspace) as cli:
            await cli.asks("Bash", {"command": "echo one > one.txt"})
            await _windows(neovim, 2)
            lines = await neovim.lines()
            assert lines[0] == "Claude Code wants to run a command"
            assert "echo one > one.txt" in lines
            await neovim.type("y")
            assert await cli.ended() == Ended(True, "hook")
            await _windows(neovim, 1)
            await cli.asks("Bash", {"command": "echo two > two.txt"})
            await _windows(neovim, 2)
            await cli.answers(yes=False)
            assert await cli.ended() == Ended(False, "terminal")
            await _windows(neovim, 1)


@pytest.mark.skipif(not PROGRAM, reason="the real Claude Code: ISTHMUS_CLAUDE is its path")
@pytest.mark.parametrize("where", ["editor", "terminal"])
async def test_an_edit_that_opens_as_a_diff_is_not_asked_twice(where: str, workspace: Path) -> None:
    file = workspace / "a.py"
    file.write_text("one\ntwo\n", encoding="utf-8")
    async with running_companion(workspace) as companion, permission_cli("real", workspace) as cli:
        await cli.asks("Edit", {"file_path": str(file), "old_string": "two", "new_string": "three"})
        (review,) = await eventually_async(lambda: companion.editor.open_reviews, 60, what="the diff")
        assert await _questions(workspace) == []
        if where == "editor":
            companion.editor.accept_diff(review.id)
        else:
            await cli.answers(yes=True)
        assert await cli.ended() == Ended(True, "terminal")
        assert await _questions(workspace) == []
        assert companion.host.companion is not None
        assert companion.host.companion.asking.outcomes.all == ()
    assert file.read_text(encoding="utf-8") == "one\nthree\n"


async def test_several_questions_of_one_terminal_are_left_to_it(workspace: Path) -> None:
    async with running_companion(workspace), strict_permission_cli(workspace) as cli:
        await cli.tell(ask=BASH)
        await _question(workspace)
        await cli.tell(ask=SUBAGENT)

        async def none_waits() -> bool:
            return await _questions(workspace) == []

        await eventually_async(none_waits, 30, what="both are given back")
        await cli.answers(yes=True)
        await cli.answers(yes=True)
        assert [await cli.ended(), await cli.ended()] == [Ended(True, "terminal")] * 2
        await cli.asks("Bash", {"command": "make"})
        question = await _question(workspace)
        await user("answer", question["id"], "no", folder=workspace)
        assert (await cli.ended()).by == "hook"


async def test_a_subagent_in_the_background_is_answered_here_before_its_terminal_asks(workspace: Path) -> None:
    async with (
        running_host(HeadlessEditor((str(workspace),)), CompanionOptions(allow_agent_accept=True), SHORT),
        strict_permission_cli(workspace) as cli,
    ):
        await cli.tell(ask=SUBAGENT, background=True)
        question = await _question(workspace)
        assert "Subagent: general-purpose\n" in question["text"]
        assert "asks if there is no answer within 1 seconds" in question["text"]
        assert not cli.still_asks()
        await cli.event("asking")
        assert await _questions(workspace) == []
        await cli.answers(yes=True)
        assert await cli.ended() == Ended(True, "terminal")
        patient = asyncio.create_task(cli.ended())
        await cli.tell(ask=SUBAGENT, background=True)
        question = await _question(workspace)
        await user("answer", question["id"], "no", folder=workspace)
        assert (await patient).by == "hook"
