"""Prompts of Claude Code that `companion exec` started: each begins a turn of what it writes, which has it as title."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.isthmus_program import companion_program
from support.permission_cli import StrictPermissionCli, strict_permission_cli
from support.waiting import eventually_async
from support.written_changes import User, watching_agent

pytestmark = pytest.mark.anyio


async def _tell(cli: StrictPermissionCli, **message: object) -> None:
    await cli.tell(tell=message)
    told = await cli.event("told")
    assert (told["told"], told["output"]) == (0, "")  # what it prints would be part of the prompt


async def _turns(user: User) -> list[dict[str, Any]]:
    return (await user.ask("written"))["turns"]


@pytest.mark.parametrize("options", [(), ("--no-permissions",)])
async def test_a_prompt_begins_a_turn_and_its_end_ends_it(workspace: Path, options: tuple[str, ...]) -> None:
    starting = companion_program(workspace)
    companion = await asyncio.to_thread(starting.__enter__)
    try:
        user = User(companion)
        async with watching_agent(companion), strict_permission_cli(workspace, *options) as cli:
            await _tell(cli, hook_event_name="UserPromptSubmit", prompt="\n  Make it   faster\nand say why")

            async def is_titled() -> bool:
                return [turn["title"] for turn in await _turns(user)] == ["Make it faster"]

            await eventually_async(is_titled, what="a turn with the prompt as title")
            (workspace / "a.py").write_text("one\n", encoding="utf-8")
            (turn,) = await _turns(user)
            assert (turn["agents"], turn["working"], turn["added"]) == (["Claude Code"], True, 1)
            await _tell(cli, hook_event_name="Stop", stop_hook_active=False)

            async def has_ended() -> bool:
                return [turn["working"] for turn in await _turns(user)] == [False]

            await eventually_async(has_ended, what="the end of the turn")
            (workspace / "b.py").write_text("two\n", encoding="utf-8")

            async def has_another() -> bool:
                return sorted(turn["title"] for turn in await _turns(user)) == ["", "Make it faster"]

            await eventually_async(has_another, what="another turn for what is written after the end")
            await _tell(cli, hook_event_name="UserPromptSubmit", prompt=7)  # not of a version that is known
    finally:
        await asyncio.to_thread(starting.__exit__, None, None, None)
