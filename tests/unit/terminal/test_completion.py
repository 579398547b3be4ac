"""Requests of the terminal to an agent when a user presses Tab."""

import asyncio
from collections.abc import Sequence

import pytest

from isthmus.client import CommandScope, InvalidRequest
from isthmus.slash_commands.tree import Completion
from isthmus.terminal.command_list import CommandList
from support.memory_agent import MemoryAgent

pytestmark = pytest.mark.anyio


class Completing(MemoryAgent):
    """An agent that answers, refuses, or does not answer, as the line says."""

    async def complete(self, scope: CommandScope, line: str) -> Sequence[Completion]:
        if line == "refuse":
            raise InvalidRequest("no")
        if line == "hang":
            await asyncio.Event().wait()
        return [Completion(f"{line}!", str(scope.context_id))]


async def test_the_agent_is_asked_for_the_session_that_is_open() -> None:
    commands = CommandList(Completing(lambda _: ()))
    commands.load(CommandScope(context_id="c"))
    assert await commands.ask("/x y") == [Completion("/x y!", "c")]
    await commands.aclose()


async def test_an_agent_that_refuses_hangs_or_cannot_completes_nothing() -> None:
    commands = CommandList(Completing(lambda _: ()), ask_seconds=0.05)
    async with asyncio.timeout(60):
        assert not await commands.ask("refuse")
        assert not await commands.ask("hang")
    assert not await CommandList(MemoryAgent(lambda _: ())).ask("x")
