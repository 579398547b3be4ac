"""A slash command that two processes of one database execute for the same message is one task."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import CommandMessage, CommandScope, PromptMessage
from isthmus.development_tool import AgentSettings, CommandExecutionStatus, SlashCommand
from isthmus.events import StateChange, TaskState
from support.engines import engine_on
from support.journals import JournalPlace
from support.turns import all_of

pytestmark = pytest.mark.anyio


class Counting:
    """An agent that counts its turns."""

    def __init__(self) -> None:
        self.turns = 0

    async def advance(self, turn: AgentTurn) -> StateChange:
        self.turns += 1
        return StateChange(TaskState.COMPLETED)

    async def commands(self, workspace: Path, settings: AgentSettings | None, user: str = "") -> Sequence[SlashCommand]:
        return (SlashCommand("hello", "Says hello."), SlashCommand("bye", "Says goodbye."))


async def test_two_processes_execute_a_message_once(journal_place: JournalPlace, tmp_path: Path) -> None:
    agent = Counting()
    async with (
        engine_on(tmp_path, agent, journal=await journal_place.open()) as one,
        engine_on(tmp_path, agent, journal=await journal_place.open()) as other,
    ):
        session = (await one.prompt(PromptMessage("hi"))).context_id
        scope = CommandScope(context_id=session)
        message = CommandMessage(("hello",), "you", scope, "message-1")
        executions = await asyncio.gather(*(engine.execute(message) for engine in (one, other, one)))
        turns = [execution.turn for execution in executions if execution.turn is not None]
        assert len({turn.task_id for turn in turns}) == 1
        first, *others = [await all_of(turn) for turn in turns]
        assert [[one.event for one in other] for other in others] == [[one.event for one in first]] * 2
        assert {execution.status for execution in executions} == {CommandExecutionStatus.STARTED}
        assert agent.turns == 2  # the prompt and the command


async def test_other_commands_and_prompts_with_the_same_id_are_tasks_of_their_own(
    journal_place: JournalPlace, tmp_path: Path
) -> None:
    agent = Counting()
    async with engine_on(tmp_path, agent, journal=await journal_place.open()) as engine:
        scope = CommandScope(context_id=(await engine.prompt(PromptMessage("/hello you", message_id="m"))).context_id)
        begun = [
            await engine.execute(CommandMessage(path, args, scope, message_id))
            for path, args, message_id in (
                (("hello",), "you", "m"), (("hello",), "me", "m"), (("bye",), "you", "m"), (("hello",), "you", ""),
                (("hello",), "you", ""),
            )
        ]  # fmt: skip
        tasks = {execution.turn.task_id for execution in begun if execution.turn is not None}
        assert len(tasks) == len(begun)
