"""Agents of both frameworks whose process ends after each of their events in turn: nothing is lost or done twice."""

# LangGraph's own types are partly unknown.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from isthmus.a2a.frameworks import host
from isthmus.agent.hosted import AgentPort
from isthmus.agent.session.session import Session
from isthmus.client import PromptMessage, TaskSnapshot
from isthmus.development_tool import ToolCallConfirmation, ToolCallStatus
from isthmus.engine import Engine
from isthmus.events import AgentEvent, TaskState, ToolCallUpdate
from support.engines import events
from support.hosted_frameworks import conversation_with
from support.turns import SECONDS, all_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

Made: TypeAlias = Callable[[list[str], Path], AbstractAsyncContextManager[AgentPort]]
"""Makes an agent that notes which tools ran; the path is for a store of its own."""
GoesOn: TypeAlias = Callable[[Engine, str], Coroutine[Any, Any, None]]


@dataclass
class Ending:
    """An agent whose process ends once, right after the engine has taken its event of this number."""

    inner: AgentPort
    after: int
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    seen: int = 0

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        async for event in self.inner.run(session):
            yield event
            self.seen += 1
            if self.seen == self.after and not self.ended.is_set():
                self.ended.set()
                await asyncio.Event().wait()


def kept(made: "Callable[[list[str], AsyncSqliteSaver | None], AgentPort]") -> Made:
    """Return an agent that keeps its state in the journal."""

    @asynccontextmanager
    async def entered(ran: list[str], _: Path) -> AsyncGenerator[AgentPort]:
        yield made(ran, None)

    return entered


def in_sqlite(made: "Callable[[list[str], AsyncSqliteSaver | None], AgentPort]") -> Made:
    """Return a graph that keeps its state in a file of its own."""

    @asynccontextmanager
    async def entered(ran: list[str], path: Path) -> AsyncGenerator[AgentPort]:
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            yield made(ran, saver)

    return entered


def of_pydantic(ran: list[str], saver: AsyncSqliteSaver | None) -> AgentPort:
    """Return an agent with a call that runs, one that asks, and an answer with the results of both."""

    async def reply(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
        results = [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]
        if results:
            yield "; ".join(results)
            return
        for number, name in enumerate(("look", "change"), start=1):
            yield {number: DeltaToolCall(name=name, json_args="{}", tool_call_id=name)}

    agent = Agent(FunctionModel(stream_function=reply))

    @agent.tool_plain
    def look() -> str:  # pyright: ignore[reportUnusedFunction]
        ran.append("look")
        return "looked"

    @agent.tool_plain(requires_approval=True)
    def change() -> str:  # pyright: ignore[reportUnusedFunction]
        ran.append("change")
        return "changed"

    return host(agent)


def of_langgraph(ran: list[str], saver: AsyncSqliteSaver | None) -> AgentPort:
    """Return a graph with the same calls, of which one asks inside of itself."""

    @tool
    def look() -> str:
        """Look."""
        ran.append("look")
        return "looked"

    def review(state: MessagesState) -> Mapping[str, Any]:
        action = {"name": "change", "args": {}, "description": "Change it?"}
        config = {"action_name": "change", "allowed_decisions": ["approve", "reject"]}
        interrupt({"action_requests": [action], "review_configs": [config]})
        return {}

    @tool
    def change() -> str:
        """Change."""
        ran.append("change")
        return "changed"

    def model(state: MessagesState) -> Mapping[str, Any]:
        results = [str(message.content) for message in state["messages"] if isinstance(message, ToolMessage)]
        assert len([message for message in state["messages"] if isinstance(message, HumanMessage)]) == 1
        called = [{"name": name, "args": {}, "id": name} for name in ("look", "change")]
        return {"messages": [AIMessage("; ".join(results)) if results else AIMessage("", tool_calls=called)]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("review", review)
    graph.add_node("tools", ToolNode([look, change]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "review", "__end__": "__end__"})
    graph.add_edge("review", "tools")
    graph.add_edge("tools", "model")
    return host(graph.compile(checkpointer=saver))


async def comes_to_rest(engine: Engine, task_id: str) -> TaskState:
    """Wait until the task has ended or waits for the user."""

    async def state() -> TaskState | None:
        found = (await engine.get(task_id)).state
        return found if found.ends_stream else None

    found = await eventually_async(state, SECONDS, what="the task is at rest")
    assert found is not None
    return found


async def goes_on(engine: Engine, task_id: str) -> None:
    """Allow what is asked, until the task has ended."""
    while (await comes_to_rest(engine, task_id)) is TaskState.INPUT_REQUIRED:
        pending = (await engine.get(task_id)).pending
        given = [ToolCallConfirmation(call.tool_call_id, "proceed_once") for call in pending]
        await engine.answer(task_id, given, answered_by="test")


def of_langgraph_in_words(ran: list[str], saver: AsyncSqliteSaver | None) -> AgentPort:
    """Return a graph that asks two questions in words, one after the other in one node."""

    def ask(state: MessagesState) -> Mapping[str, Any]:
        return {"messages": [AIMessage(f"{interrupt('Your name?')} of {interrupt('Your town?')}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    return host(graph.compile(checkpointer=saver))


async def answers_in_words(engine: Engine, task_id: str) -> None:
    """Answer the questions in words, until the task has ended."""
    while (await comes_to_rest(engine, task_id)) is TaskState.INPUT_REQUIRED:
        answer = {"Your name?": "Ann", "Your town?": "Rome"}[(await engine.get(task_id)).history[-1].text]
        await engine.prompt(PromptMessage(answer, task_id=task_id))


async def ends_after(agent: Ending, folder: Path, goes_on: GoesOn) -> tuple[TaskSnapshot, list[AgentEvent]] | None:
    """Let the process end after that event, and another one go on; return the task. None: it had fewer events."""
    folder.mkdir()
    async with conversation_with(agent, folder) as user:
        turn = await user.engine.prompt(PromptMessage("go"))
        working = asyncio.ensure_future(goes_on(user.engine, turn.task_id))
        ended = asyncio.ensure_future(agent.ended.wait())
        async with asyncio.timeout(SECONDS):
            await asyncio.wait([working, ended], return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        ended.cancel()
        failure, _ = await asyncio.gather(working, ended, return_exceptions=True)
        assert not isinstance(failure, Exception), failure
    if not agent.ended.is_set():
        return None
    async with conversation_with(agent, folder, user):
        await goes_on(user.engine, turn.task_id)
        seen = events(await all_of(await user.engine.follow(turn.task_id, 0)))
        return await user.engine.get(turn.task_id), seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "made", [kept(of_pydantic), kept(of_langgraph), in_sqlite(of_langgraph)], ids=["pydantic-ai", "langgraph", "sqlite"]
)
async def test_calls_are_made_once_wherever_a_process_ends(tmp_path: Path, made: Made) -> None:
    after = 0
    for after in itertools.count(1):
        ran = list[str]()
        async with made(ran, tmp_path / f"{after}.sqlite") as agent:
            found = await ends_after(Ending(agent, after), tmp_path / str(after), goes_on)
        if found is None:
            break
        task, seen = found
        about = f"after event {after}: {ran}, {task.history[-1].text}"
        assert task.state is TaskState.COMPLETED, about
        calls = {event.tool_call.tool_call_id: event.tool_call for event in seen if isinstance(event, ToolCallUpdate)}
        assert sorted(calls) == ["change", "look"], about
        for name, result in (("look", "looked"), ("change", "changed")):
            assert ran.count(name) <= 1, about
            if calls[name].status is ToolCallStatus.SUCCEEDED:
                assert ran.count(name) == 1, about
                assert result in task.history[-1].text, about
            else:
                assert "was interrupted" in task.history[-1].text, about
        assert [message.text for message in task.history].count("go") == 1, about
    assert after > 8


@pytest.mark.slow
@pytest.mark.parametrize(
    "made", [kept(of_langgraph_in_words), in_sqlite(of_langgraph_in_words)], ids=["langgraph", "sqlite"]
)
async def test_answers_in_words_are_used_once_wherever_a_process_ends(tmp_path: Path, made: Made) -> None:
    after = 0
    for after in itertools.count(1):
        async with made([], tmp_path / f"{after}.sqlite") as agent:
            found = await ends_after(Ending(agent, after), tmp_path / str(after), answers_in_words)
        if found is None:
            break
        task, _ = found
        about = f"after event {after}: {[message.text for message in task.history]}"
        assert task.state is TaskState.COMPLETED, about
        assert task.history[-1].text == "Ann of Rome", about
        assert [message.text for message in task.history if message.role == "user"] == ["go", "Ann", "Rome"], about
    assert after > 4
