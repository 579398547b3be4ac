"""A client sends a message again if its response was lost, where that cannot make the task work twice."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from isthmus.a2a.client.connection import AgentConnection, ConnectionLostError
from isthmus.a2a.client.remote_agent import RemoteAgent, StreamRetryPolicy
from isthmus.agent.hosted import ask, decision
from isthmus.agent.session.session import Session
from isthmus.client import PromptMessage
from isthmus.development_tool import GenericDetails, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, StateChange, TaskState, TextContent, ToolCallUpdate
from support.a2a_hosting import hosted
from support.a2a_serving import TOKEN
from support.cutting_proxy import cutting_proxy
from support.turns import events_of

pytestmark = pytest.mark.anyio

QUICK = StreamRetryPolicy(attempts=4, first_wait=0.001, longest_wait=0.005)
URL = "http://agent.example/"
EXTENSION = "https://github.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v0/spec.md"


class Counting:
    """An agent that counts its turns; it asks before it presses."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        if session.prompt == "press" and decision(session, "c") is None:
            self.done.append("asked")
            yield ask("c", "press", {}, GenericDetails("Press"))
            return
        if session.prompt == "press":
            yield ToolCallUpdate(ToolCall("c", ToolCallStatus.SUCCEEDED, "press", {}))
        self.done.append(session.prompt)
        yield TextContent("", f"did {session.prompt}")


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "binding"), [("0.3", "JSONRPC"), ("1.0", "JSONRPC"), ("1.0", "HTTP+JSON")])
async def test_a_message_whose_answer_was_lost_is_sent_again_and_works_once(
    workspace: Path, protocol: str, binding: str
) -> None:
    agent = Counting()
    async with hosted(agent, workspace) as server, cutting_proxy(server.url) as proxy:
        remote = await RemoteAgent.connect(proxy.url, TOKEN, retry_policy=QUICK, protocol=protocol, binding=binding)
        settings = {"workspace_path": str(workspace)}
        proxy.lost_replies += [b"message-1", b"message-1", b"answer-1", b"message-2"]
        turn = await remote.prompt(PromptMessage("press", "message-1", settings=settings))
        assert (await events_of(turn))[-1] == StateChange(TaskState.INPUT_REQUIRED)
        answers = [ToolCallConfirmation("c", "proceed_once")]
        answer = await remote.answer(turn.task_id, answers, answered_by="me", message_id="answer-1")
        assert (await events_of(answer))[-1] == StateChange(TaskState.COMPLETED)
        more = await remote.prompt(PromptMessage("more", "message-2", task_id=turn.task_id))
        told = await events_of(more)
        assert [item.text for item in told if isinstance(item, TextContent)] == ["did more"]
        assert told[-1] == StateChange(TaskState.COMPLETED)
        assert [task.task_id for task in await remote.tasks()] == [turn.task_id]
        await remote.aclose()
    assert proxy.lost_replies == []
    assert agent.done == ["asked", "press", "more"]


@pytest.mark.slow
async def test_an_answer_and_a_message_wait_for_a_server_that_is_away_for_a_moment(workspace: Path) -> None:
    agent = Counting()
    async with hosted(agent, workspace) as server, cutting_proxy(server.url) as proxy:
        remote = await RemoteAgent.connect(proxy.url, TOKEN, retry_policy=QUICK)
        turn = await remote.prompt(PromptMessage("press", settings={"workspace_path": str(workspace)}))
        assert (await events_of(turn))[-1] == StateChange(TaskState.INPUT_REQUIRED)
        proxy.lost_replies += [b"tasks/get", b"tasks/get"]
        answer = await remote.answer(turn.task_id, [ToolCallConfirmation("c", "proceed_once")], answered_by="me")
        assert (await events_of(answer))[-1] == StateChange(TaskState.COMPLETED)
        proxy.lost_replies += [b"tasks/get"]
        assert (await events_of(await remote.prompt(PromptMessage("more", task_id=turn.task_id))))[-1] == StateChange(
            TaskState.COMPLETED
        )
        await remote.aclose()
    assert proxy.lost_replies == []
    assert agent.done == ["asked", "press", "more"]


@dataclass
class Losing:
    """A server that answers no message: it raises ``losses``, one after the other, then it works."""

    losses: list[Exception]
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    message_ids: list[str] = field(default_factory=list[str])

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            capabilities = {"streaming": True, "extensions": [{"uri": EXTENSION, **self.parameters}]}
            card = {"name": "Odd", "url": URL, "protocolVersion": "0.3.0", "capabilities": capabilities}
            return httpx2.Response(200, json=card)
        self.message_ids.append(json.loads(request.content)["params"]["message"]["messageId"])
        if self.losses:
            raise self.losses.pop(0)
        status = {"state": "completed"}
        update = {"kind": "status-update", "taskId": "t", "contextId": "c", "status": status, "final": True}
        body = f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': update})}\n\n"
        return httpx2.Response(200, content=body.encode(), headers={"Content-Type": "text/event-stream"})

    async def connect(self, retry_policy: StreamRetryPolicy = QUICK) -> RemoteAgent:
        return RemoteAgent(await AgentConnection.open(URL, transport=httpx2.MockTransport(self)), retry_policy)


ONCE: dict[str, Any] = {"params": {"takes_messages_once": True}}


async def test_a_server_that_may_work_twice_gets_no_message_again_that_it_may_have() -> None:
    for loss in (httpx2.ReadError("cut"), httpx2.RemoteProtocolError("cut"), httpx2.ReadTimeout("late")):
        server = Losing([loss])
        remote = await server.connect()
        with pytest.raises(ConnectionLostError):
            await remote.prompt(PromptMessage("hello"))
        assert len(server.message_ids) == 1
        await remote.aclose()


async def test_a_message_that_cannot_have_left_is_sent_again_to_every_server() -> None:
    server = Losing([httpx2.ConnectError("refused"), httpx2.ConnectTimeout("late")])
    remote = await server.connect()
    turn = await remote.prompt(PromptMessage("hello"))
    assert (await events_of(turn))[-1] == StateChange(TaskState.COMPLETED)
    assert len(server.message_ids) == 3
    assert len(set(server.message_ids)) == 1
    await remote.aclose()


@pytest.mark.parametrize("first", [httpx2.ReadError("cut"), httpx2.ReadTimeout("late")])
async def test_an_error_says_that_an_earlier_sending_may_have_arrived(first: Exception) -> None:
    server = Losing([first, *(httpx2.ConnectError("refused") for _ in range(100))], ONCE)
    remote = await server.connect()
    with pytest.raises(ConnectionLostError, match=r"refused.*may have arrived before: look at the session"):
        await remote.prompt(PromptMessage("hello"))
    await remote.aclose()


async def test_an_error_says_nothing_of_arrival_where_no_connection_was_made() -> None:
    server = Losing([httpx2.ConnectError("refused") for _ in range(100)], ONCE)
    remote = await server.connect()
    with pytest.raises(ConnectionLostError, match=r"refused\); is the server running\?$"):
        await remote.prompt(PromptMessage("hello"))
    await remote.aclose()


async def test_sending_again_is_bounded_in_number_and_in_time() -> None:
    for retry_policy, times in ((QUICK, 5), (StreamRetryPolicy(attempts=4, first_wait=0.001, deadline=0), 1)):
        server = Losing([httpx2.ReadError("cut") for _ in range(100)], ONCE)
        remote = await server.connect(retry_policy)
        with pytest.raises(ConnectionLostError, match="cut"):
            await remote.prompt(PromptMessage("hello"))
        assert len(server.message_ids) == times
        await remote.aclose()
