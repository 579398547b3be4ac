"""A text cut off by the end of the agent's process is void: the first part of its replacement says so."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.a2a import RemoteAgent
from isthmus.agent.session.session import Session
from isthmus.client import PromptMessage
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import AgentEvent, AgentMessage, TextContent, ToolCallUpdate
from isthmus.task_view import TaskView
from support.a2a_hosting import hosted
from support.a2a_serving import EXTENSION, TOKEN
from support.turns import events_of

pytestmark = pytest.mark.anyio

URI = "https://github.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v0/spec.md"
LONG = "The whole " + "x" * 2000


class Stopping:
    """An agent that sends half a text, in a process that ends there."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        yield AgentMessage("first", "Before.")
        yield TextContent("", "Half a t")
        self.has_begun.set()
        await asyncio.Event().wait()


class Ended:
    """An agent that ends during a call, after a whole text."""

    def __init__(self, has_begun: asyncio.Event) -> None:
        self._has_begun = has_begun

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        yield TextContent("", "Before.")
        yield ToolCallUpdate(ToolCall("c", ToolCallStatus.EXECUTING, "press", {}))
        self._has_begun.set()
        await asyncio.Event().wait()


class Whole:
    """An agent that sends the text again, in one or in two parts."""

    def __init__(self, *events: AgentEvent) -> None:
        self._events = events

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        for event in self._events:
            yield event


AGAIN = [
    pytest.param((TextContent("", LONG), TextContent("", " text.")), LONG + " text.", id="streamed"),
    pytest.param((AgentMessage("", "The whole text."),), "The whole text.", id="at once"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("said", "text"), AGAIN)
async def test_a_text_that_is_said_again_after_a_crash_names_the_one_it_replaces(
    workspace: Path, said: tuple[AgentEvent, ...], text: str
) -> None:
    stopping = Stopping()
    async with hosted(stopping, workspace) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN)
        turn = await remote.prompt(PromptMessage("go", settings={"workspace_path": str(workspace)}))
        await stopping.has_begun.wait()
        await remote.aclose()
    async with hosted(Whole(*said), workspace) as server:
        items = await server.stream("tasks/resubscribe", {"id": turn.task_id}, {**EXTENSION, "Last-Event-ID": "0"})
        parts = [item for item in items if item.kind == "TEXT_CONTENT"]
        ids = [item.result["status"]["message"]["messageId"] for item in parts]
        replaced = [item.result["metadata"][URI].get("replaces_message_id") for item in parts]
        assert [item.text for item in parts[:2]] == ["Before.", "Half a t"]
        assert replaced == [None, None, ids[1], *[None] * (len(parts) - 3)]
        assert len({*ids[:3]}) == 3

        headers = {**EXTENSION, "A2A-Version": "1.0", "Last-Event-ID": "0"}
        new = await server.stream("SubscribeToTask", {"id": turn.task_id}, headers)
        extended = [item.result["statusUpdate"]["metadata"][URI] for item in new if "statusUpdate" in item.result]
        assert [found["replaces_message_id"] for found in extended if "replaces_message_id" in found] == [ids[1]]

        task = await server.call("tasks/get", {"id": turn.task_id})
        assert [message["parts"][0]["text"] for message in task["history"]] == ["go", "Before.", text]

        remote = await RemoteAgent.connect(server.url, TOKEN)
        followed = await remote.follow(turn.task_id, 0)
        view = TaskView()
        async for delivery in followed.deliveries:
            view.apply(delivery)
        assert [message.text for message in view.messages.values()] == ["Before.", text]
        await remote.aclose()


@pytest.mark.slow
async def test_a_text_that_had_ended_before_a_crash_is_replaced_by_none(workspace: Path) -> None:
    has_begun = asyncio.Event()
    async with hosted(Ended(has_begun), workspace) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN)
        turn = await remote.prompt(PromptMessage("go", settings={"workspace_path": str(workspace)}))
        await has_begun.wait()
        await remote.aclose()
    async with hosted(Whole(TextContent("", "More.")), workspace) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN)
        told = await events_of(await remote.follow(turn.task_id, 0))
        await remote.aclose()
    assert [(item.text, item.replaces) for item in told if isinstance(item, TextContent)] == [
        ("Before.", None),
        ("More.", None),
    ]
