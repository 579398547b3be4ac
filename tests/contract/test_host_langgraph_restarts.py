"""Graphs of LangGraph behind ``host()``: what outlives the process, and what is not done twice."""

# LangGraph's own types are partly unknown.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

import asyncio
import base64
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from isthmus.a2a.frameworks import host
from isthmus.agent.hosted import AgentPort
from isthmus.agent.session.session import Session
from isthmus.client import PromptMessage
from isthmus.development_tool import ToolCallStatus
from isthmus.events import AgentEvent, MessagePart, TaskState
from support.hosted_frameworks import (
    PNG,
    Conversation,
    begins,
    conversation_with,
    ends,
    record_bytes,
    text_in,
)
from support.langgraph_graphs import agent_graph, calls, one_node, replies
from support.turns import SECONDS

pytestmark = pytest.mark.anyio

PENDING, EXECUTING = ToolCallStatus.PENDING, ToolCallStatus.EXECUTING
SUCCEEDED, FAILED, CANCELLED = ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED, ToolCallStatus.CANCELLED
PICTURE = MessagePart(raw=PNG, media_type="image/png", filename="dot.png")


async def test_a_later_task_continues_the_state_and_a_picture_is_stored_once(tmp_path: Path) -> None:
    model = replies(AIMessage("One"), AIMessage("Two"), AIMessage("Three"))
    graph = one_node(model.node)
    large = MessagePart(raw=base64.b64encode(bytes(300_000)).decode(), media_type="image/png")
    async with conversation_with(host(graph), tmp_path) as user:
        first = await user.says("look", files=[large])
    async with conversation_with(host(graph), tmp_path, user):
        second = await user.says("and now?")
        third = await user.says("again", same_task=True)
    assert [str(message.text) for message in model.requests[-1]] == ["look", "One", "and now?", "Two", "again"]
    assert 400_000 < record_bytes(first) < 700_000
    assert record_bytes(second) < 40_000
    assert record_bytes(third) < 40_000


@pytest.mark.parametrize("kept_by", ["none", "memory", "sqlite"])
async def test_the_state_outlives_the_process_with_any_checkpointer(
    tmp_path: Path, kept_by: Literal["none", "memory", "sqlite"]
) -> None:
    def ask(state: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(f"{state['messages'][0].content} {interrupt('Your name?')}")]}

    async def says(text: str, before: Conversation | None) -> tuple[Conversation, str]:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "graph.sqlite")) as saver:
            keeper: Any = {"none": None, "memory": InMemorySaver(), "sqlite": saver}[kept_by]
            graph = one_node(ask).compile(checkpointer=keeper)
            async with conversation_with(host(graph), tmp_path, before) as user:
                return user, text_in(await user.says(text, same_task=before is not None))

    user, _ = await says("hello", None)
    _, text = await says("Ann", user)
    assert text == "hello Ann"


async def test_a_later_task_continues_the_state_in_a_checkpointer_of_the_authors(tmp_path: Path) -> None:
    model = replies(AIMessage("One"), AIMessage("Two"))
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "graph.sqlite")) as saver:
        agent = host(one_node(model.node).compile(checkpointer=saver))
        async with conversation_with(agent, tmp_path) as user:
            first = await user.says("first")
            await user.says("second")
    assert [str(message.text) for message in model.requests[-1]] == ["first", "One", "second"]
    assert record_bytes(first) < 1_000


async def test_a_conversation_goes_on_without_the_messages_of_a_deleted_task(tmp_path: Path) -> None:
    model = replies(AIMessage("One"), AIMessage("Two"), AIMessage("Three"))
    graph = one_node(model.node)
    async with conversation_with(host(graph), tmp_path) as user:
        await user.says("first")
        first = user.task_id
        await user.says("second")
        assert await user.engine.runner.retention.delete([first])
        seen = await user.says("third")
    assert text_in(seen) == "Three"
    assert [str(message.text) for message in model.requests[-1]] == ["second", "Two", "third"]


async def test_a_tool_that_was_running_when_the_process_ended_is_not_run_again(tmp_path: Path) -> None:
    started, runs = asyncio.Event(), list[str]()

    @tool
    async def work(name: str) -> str:
        """Work."""
        runs.append(name)
        if name == "slow":
            started.set()
            await asyncio.Event().wait()
        return f"{name} done"

    model = replies(calls(("work", {"name": "fast"}, "c1"), ("work", {"name": "slow"}, "c2")), AIMessage("I go on"))
    graph = agent_graph(model, [work])
    async with conversation_with(host(graph), tmp_path) as user:
        await begins(user, started)
    async with conversation_with(host(graph), tmp_path, user):
        assert await ends(user) is TaskState.COMPLETED
    assert sorted(runs) == ["fast", "slow"]
    first, second = model.requests[-1][-2:]
    assert first.content == "fast done"
    assert "interrupted" in str(second.content)
    assert len(model.requests) == 2


async def test_one_message_never_answers_two_interrupts(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def ask(state: MessagesState) -> Mapping[str, Any]:
        first = interrupt("Your name?")
        if not started.is_set():
            started.set()
            await asyncio.Event().wait()  # the process ends after the answer was taken
        return {"messages": [AIMessage(f"{first} of {interrupt('Your town?')}")]}

    graph = one_node(ask)
    async with conversation_with(host(graph), tmp_path) as user:
        await user.says("hello")
        turn = await user.engine.prompt(PromptMessage("Ann", task_id=user.task_id))
        assert turn.task_id == user.task_id
        async with asyncio.timeout(SECONDS):
            await started.wait()
    async with conversation_with(host(graph), tmp_path, user):
        assert await ends(user) is TaskState.INPUT_REQUIRED
        history = (await user.engine.get(user.task_id)).history
        assert history[-1].text == "Your town?"
        assert text_in(await user.says("Rome", same_task=True)) == "Ann of Rome"


@dataclass
class Stopping:
    """An agent whose process stops right after the graph's second interrupt was stored, before it is asked."""

    inner: AgentPort
    stopped: asyncio.Event
    interrupts: int = 0

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        async for event in self.inner.run(session):
            yield event
            self.interrupts += "'channel': '__interrupt__'" in str(event)
            if self.interrupts == 2 and not self.stopped.is_set():
                self.stopped.set()
                await asyncio.Event().wait()


async def test_an_answer_is_not_taken_for_an_interrupt_that_was_not_asked_yet(tmp_path: Path) -> None:
    def ask(state: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(f"{interrupt('Your name?')} of {interrupt('Your town?')}")]}

    stopping = Stopping(host(one_node(ask)), asyncio.Event())
    async with conversation_with(stopping, tmp_path) as user:
        await user.says("hello")
        await user.engine.prompt(PromptMessage("Ann", task_id=user.task_id))
        async with asyncio.timeout(SECONDS):
            await stopping.stopped.wait()
    async with conversation_with(stopping, tmp_path, user):
        assert await ends(user) is TaskState.INPUT_REQUIRED
        assert (await user.engine.get(user.task_id)).history[-1].text == "Your town?"
        assert text_in(await user.says("Rome", same_task=True)) == "Ann of Rome"


async def test_a_node_that_has_ended_is_not_run_again(tmp_path: Path) -> None:
    started, ran = asyncio.Event(), list[str]()

    def first(state: MessagesState) -> Mapping[str, Any]:
        ran.append("first")
        return {}

    async def second(state: MessagesState) -> Mapping[str, Any]:
        ran.append("second")
        if not started.is_set():
            started.set()
            await asyncio.Event().wait()
        return {"messages": [AIMessage("done")]}

    graph = StateGraph(MessagesState)
    graph.add_node("first", first)
    graph.add_node("second", second)
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    async with conversation_with(host(graph), tmp_path) as user:
        await begins(user, started)
    async with conversation_with(host(graph), tmp_path, user):
        assert await ends(user) is TaskState.COMPLETED
    assert ran == ["first", "second", "second"]
