import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import OFFLINE, CommandMessage, PromptMessage
from isthmus.development_tool import AgentSettings, SlashCommand
from isthmus.engine.runs.segment import MESSAGE_CHARACTERS
from isthmus.events import AgentEvent, AgentMessage, RetryNotice, StateChange, TaskState, TextContent
from isthmus.models.port.base import Text, text_of
from support.agents import EchoAgent, reply
from support.engines import engine_on, events
from support.turns import all_of

pytestmark = pytest.mark.anyio

WORKING, COMPLETED = StateChange(TaskState.WORKING), StateChange(TaskState.COMPLETED)


@dataclass
class Saying:
    """An agent that sends these events, and then waits forever unless it ends."""

    said: Sequence[AgentEvent]
    conversation: tuple[str, ...] = ()
    ends: bool = True

    async def advance(self, turn: AgentTurn) -> StateChange:
        self.conversation = tuple(text_of(message) for message in turn.session.messages)
        for event in self.said:
            if isinstance(event, StateChange) and event.state.ends_stream:
                return event
            await turn.emit(event)
        if not self.ends:
            await asyncio.Event().wait()
        return COMPLETED

    async def commands(self, workspace: Path, settings: AgentSettings | None, user: str = "") -> Sequence[SlashCommand]:
        return (SlashCommand("hello", "Says hello."),)


def streamed(message_id: str, *words: str) -> list[AgentEvent]:
    return [TextContent(message_id, word) for word in words]


def recorded(seen: Sequence[AgentEvent]) -> list[AgentMessage]:
    return [event for event in seen if isinstance(event, AgentMessage)]


async def test_streamed_text_without_a_reply_is_kept_whole_at_the_end_and_in_the_history(tmp_path: Path) -> None:
    agent = Saying([WORKING, *streamed("m1", "hel", "lo"), *streamed("m2", "wor", "ld"), COMPLETED])
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("hi", message_id="p"))
        seen = events(await all_of(turn))
        whole = [AgentMessage("m1", "hello", True), AgentMessage("m2", "world", True)]
        assert recorded(seen) == whole
        assert seen.index(whole[0]) < seen.index(TextContent("m2", "world"))
        assert seen[-2:] == [whole[1], COMPLETED]
        history = (await engine.get(turn.task_id)).history
        assert [(item.message_id, item.role, item.text) for item in history] == [
            ("p", "user", "hi"),
            ("m1", "agent", "hello"),
            ("m2", "agent", "world"),
        ]
        await all_of(await engine.prompt(PromptMessage("again", context_id=turn.context_id)))
        assert agent.conversation == ("hi", "hello", "world", "again")


async def test_text_that_a_reply_or_a_message_of_the_same_id_holds_is_not_kept_twice(tmp_path: Path) -> None:
    said = [
        *streamed("m1", "hello"),
        reply("m1", Text("hello")),
        *streamed("m2", "you"),
        AgentMessage("m2", "you", True),
    ]
    async with engine_on(tmp_path, Saying([WORKING, *said, COMPLETED])) as engine:
        turn = await engine.prompt(PromptMessage("hi"))
        assert recorded(events(await all_of(turn))) == [AgentMessage("m2", "you", True)]
        assert [item.text for item in (await engine.get(turn.task_id)).history] == ["hi", "hello", "you"]


async def test_a_text_that_another_one_replaces_is_not_in_the_history(tmp_path: Path) -> None:
    replacing = TextContent("m2", "hello", replaces="m1")
    agent = Saying([WORKING, *streamed("m1", "he"), RetryNotice(2, 5, 0.0, "cut"), replacing, COMPLETED])
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("hi"))
        seen = events(await all_of(turn))
        assert [event for event in seen if isinstance(event, TextContent)] == [TextContent("m1", "he"), replacing]
        assert recorded(seen) == [AgentMessage("m2", "hello", True)]
        assert [message.text for message in (await engine.get(turn.task_id)).history] == ["hi", "hello"]


async def test_a_text_that_the_network_cut_is_replaced_after_the_wait(tmp_path: Path) -> None:
    away = [RetryNotice(2, 5, 600.0, "cut", is_offline=True), StateChange(TaskState.WORKING, reason=OFFLINE)]
    back = [RetryNotice(2, 5, 0.0, "back"), WORKING, TextContent("m2", "hello", replaces="m1")]
    async with engine_on(tmp_path, Saying([WORKING, *streamed("m1", "he"), *away, *back, COMPLETED])) as engine:
        turn = await engine.prompt(PromptMessage("hi"))
        seen = events(await all_of(turn))
        assert recorded(seen) == [AgentMessage("m2", "hello", True)]
        assert [message.text for message in (await engine.get(turn.task_id)).history] == ["hi", "hello"]


async def test_a_text_may_start_again_under_its_own_id(tmp_path: Path) -> None:
    agent = Saying([WORKING, *streamed("m", "he"), TextContent("m", "hello", "m"), TextContent("m", "!"), COMPLETED])
    async with engine_on(tmp_path, agent) as engine:
        seen = events(await all_of(await engine.prompt(PromptMessage("hi"))))
        texts = [event for event in seen if isinstance(event, TextContent)]
        assert texts == [TextContent("m", "he"), TextContent("m", "hello!", "m")]
        assert recorded(seen) == [AgentMessage("m", "hello!", True)]


async def test_text_is_kept_before_the_message_that_comes_after_it(tmp_path: Path) -> None:
    said = [*streamed("m1", "first"), AgentMessage("m2", "second"), *streamed("m3", " \n"), reply("m4", Text("third"))]
    async with engine_on(tmp_path, Saying([WORKING, *said, COMPLETED])) as engine:
        turn = await engine.prompt(PromptMessage("hi"))
        await all_of(turn)
        assert [item.text for item in (await engine.get(turn.task_id)).history] == ["hi", "first", "second", "third"]


async def test_what_was_said_before_a_cancellation_or_a_failure_is_kept(tmp_path: Path) -> None:
    agent = Saying([WORKING, *streamed("m1", "half a sen")], ends=False)
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("hi"))
        async for delivery in turn.deliveries:
            if isinstance(delivery.event, TextContent):
                break
        await engine.cancel(turn.task_id)
        assert [item.text for item in (await engine.get(turn.task_id)).history] == ["hi", "half a sen"]

    class Broken(EchoAgent):
        async def advance(self, turn: AgentTurn) -> StateChange:
            async def keep(event: AgentEvent) -> None:
                if isinstance(event, TextContent):
                    await turn.keep(event)
                    raise ZeroDivisionError

            return await super().advance(AgentTurn(turn.session, keep))

    async with engine_on(tmp_path, Broken()) as engine:
        turn = await engine.prompt(PromptMessage("hi"))
        await all_of(turn)
        assert [item.text for item in (await engine.get(turn.task_id)).history] == ["hi", "hi "]


async def test_text_without_end_is_kept_in_pieces(tmp_path: Path) -> None:
    chunk = "x" * (MESSAGE_CHARACTERS // 4)
    async with engine_on(tmp_path, Saying([WORKING, *streamed("m1", *[chunk] * 9), COMPLETED])) as engine:
        seen = events(await all_of(await engine.prompt(PromptMessage("hi"))))
        assert [len(message.text) for message in recorded(seen)] == [len(chunk) * 4, len(chunk) * 4, len(chunk)]


async def test_a_slash_command_and_what_it_said_are_in_its_history(tmp_path: Path) -> None:
    agent = Saying([WORKING, *streamed("m1", "Hello ", "you"), COMPLETED])
    async with engine_on(tmp_path, agent) as engine:
        execution = await engine.execute(CommandMessage(("hello",), "me"))
        assert execution.turn is not None
        await all_of(execution.turn)
        history = (await engine.get(execution.turn.task_id)).history
        assert [(item.role, item.text) for item in history] == [("user", "/hello me"), ("agent", "Hello you")]
