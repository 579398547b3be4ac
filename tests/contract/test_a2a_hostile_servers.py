"""RemoteAgent against servers that break the protocol: it ends with a clear error, or with the whole task."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import pytest

from isthmus.a2a.client.connection import AgentConnection, ConnectionLostError, RemoteError
from isthmus.a2a.client.remote_agent import RemoteAgent, StreamRetryPolicy
from isthmus.client import PromptMessage, Turn
from isthmus.events import StateChange, TaskState
from isthmus.task_view import TaskView
from support.turns import view_of

pytestmark = pytest.mark.anyio

QUICK = StreamRetryPolicy(attempts=4, first_wait=0.001, longest_wait=0.005, first_poll_seconds=0.001)
URL = "http://agent.example/"

Respond = Callable[[str, int], bytes | dict[str, Any]]
"""Function that returns the n-th response (from 0) of a method: bytes of an event stream, or a JSON-RPC response."""


@dataclass
class OddServer:
    """A plain server of A2A 0.3 whose responses the test writes; ``asked`` are the methods in order."""

    respond: Respond
    asked: list[str] = field(default_factory=list[str])

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            card = {"name": "Odd", "url": URL, "protocolVersion": "0.3.0", "capabilities": {"streaming": True}}
            return httpx2.Response(200, json=card)
        method = json.loads(request.content)["method"]
        answer = self.respond(method, self.asked.count(method))
        self.asked.append(method)
        if isinstance(answer, bytes):
            return httpx2.Response(200, content=answer, headers={"Content-Type": "Text/Event-Stream; charset=utf-8"})
        return httpx2.Response(200, json=answer)

    async def connect(self) -> RemoteAgent:
        """Return a client of it."""
        return RemoteAgent(await AgentConnection.open(URL, transport=httpx2.MockTransport(self)), QUICK)


def message(text: str, message_id: str) -> dict[str, Any]:
    return {"kind": "message", "role": "agent", "messageId": message_id, "parts": [{"kind": "text", "text": text}]}


def task(state: str, *said: str) -> dict[str, Any]:
    history = [message(text, f"m{index}") for index, text in enumerate(said)]
    return {"kind": "task", "id": "t", "contextId": "c", "status": {"state": state}, "history": history}


def status(state: str, text: str, message_id: str, *, final: bool = False) -> dict[str, Any]:
    news = {"state": state, "message": message(text, message_id)}
    return {"kind": "status-update", "taskId": "t", "contextId": "c", "status": news, "final": final}


def events(*results: dict[str, Any], ids: Sequence[int] = ()) -> bytes:
    numbered = [f"id: {number}\n" for number in ids] or [""] * len(results)
    frames = (
        f"{number}data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': result})}\n\n"
        for number, result in zip(numbered, results, strict=True)
    )
    return "".join(frames).encode()


def texts(view: TaskView) -> list[str]:
    return [item.text for item in view.messages.values()]


async def test_ids_that_begin_anew_in_every_stream_of_a_plain_server_lose_nothing() -> None:
    def respond(method: str, count: int) -> bytes:
        if method == "message/stream":
            return events(task("working"), status("working", "one ", "m0"), ids=(1, 2))
        return events(task("working", "one "), status("completed", "two", "m1", final=True), ids=(1, 2))

    server = OddServer(respond)
    remote = await server.connect()
    view = await view_of(await remote.prompt(PromptMessage("hello")))
    assert (view.state, texts(view), view.has_missed) == (TaskState.COMPLETED, ["one ", "two"], True)
    await remote.aclose()


async def test_streams_that_end_again_and_again_without_news_give_way_to_looking() -> None:
    def respond(method: str, count: int) -> bytes | dict[str, Any]:
        if method != "tasks/get":
            return events(task("working", "one "))
        return {"result": task("working", "one ") if count < 3 else task("completed", "one ", "two")}

    server = OddServer(respond)
    remote = await server.connect()
    view = await view_of(await remote.prompt(PromptMessage("hello")))
    assert (view.state, texts(view)) == (TaskState.COMPLETED, ["one ", "two"])
    assert server.asked.count("tasks/resubscribe") <= QUICK.attempts + 1
    await remote.aclose()


@pytest.mark.parametrize("is_in_stream", [True, False])
async def test_a_server_that_takes_no_stream_up_again_is_asked_for_the_task(is_in_stream: bool) -> None:
    refusal = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}

    def respond(method: str, count: int) -> bytes | dict[str, Any]:
        match method:
            case "message/stream":
                return events(task("working"), status("working", "one ", "m0"))
            case "tasks/resubscribe":
                return f"data: {json.dumps(refusal)}\n\n".encode() if is_in_stream else refusal
            case _:
                return {"result": task("completed", "one ", "two")}

    server = OddServer(respond)
    remote = await server.connect()
    view = await view_of(await remote.prompt(PromptMessage("hello")))
    assert (view.state, texts(view)) == (TaskState.COMPLETED, ["one ", "two"])
    assert server.asked == ["message/stream", "tasks/resubscribe", "tasks/get"]
    assert [item.event for item in await collected(await remote.follow("t", 0))] == [
        StateChange(TaskState.COMPLETED, None, "missed-events")
    ]
    await remote.aclose()


async def collected(turn: Turn) -> list[Any]:
    return [delivery async for delivery in turn.deliveries]


async def test_an_answer_to_a_question_whose_stream_ends_empty_is_taken_up_again() -> None:
    def respond(method: str, count: int) -> bytes | dict[str, Any]:
        match method:
            case "message/stream" if count == 0:
                return events(task("working"), status("input-required", "Who?", "m0", final=True))
            case "message/stream":
                return b": cut\n\n"
            case "tasks/resubscribe":
                return events(task("working", "Who?"), status("completed", "Hello Ada", "m1", final=True))
            case _:
                return {"result": task("input-required", "Who?")}

    server = OddServer(respond)
    remote = await server.connect()
    turn = await remote.prompt(PromptMessage("hello"))
    assert (await view_of(turn)).state is TaskState.INPUT_REQUIRED
    view = await view_of(await remote.prompt(PromptMessage("Ada", task_id="t")))
    assert (view.state, texts(view)) == (TaskState.COMPLETED, ["Hello Ada"])
    await remote.aclose()


async def test_a_look_at_the_task_that_fails_is_tried_again() -> None:
    looks: list[str] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST" and json.loads(request.content)["method"] == "tasks/get":
            looks.append("look")
            if len(looks) < 3:
                return httpx2.Response(503)
        return server(request)

    def respond(method: str, count: int) -> bytes | dict[str, Any]:
        match method:
            case "message/stream":
                return events(task("working"))
            case "tasks/resubscribe":
                return {"error": {"code": -32004, "message": "it has ended"}}
            case _:
                return {"result": task("completed", "done")}

    server = OddServer(respond)
    remote = RemoteAgent(await AgentConnection.open(URL, transport=httpx2.MockTransport(handle)), QUICK)
    view = await view_of(await remote.prompt(PromptMessage("hello")))
    assert (view.state, texts(view), len(looks)) == (TaskState.COMPLETED, ["done"], 3)
    await remote.aclose()


async def test_event_streams_are_read_in_every_form_that_the_standard_allows() -> None:
    pretty = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "result": status("completed", "Hi\u2028you", "m", final=True)}, indent=1
    )
    lines = "\r\n".join(f"data: {line}" for line in pretty.split("\n"))
    first = json.dumps({"result": task("working")})
    body = f"\ufeff: hello\r\nretry: 3000\r\nevent: message\r\ndata:{first}\r\n\r\n:\r\n\r\nid\r\n{lines}\r\n\r\n"
    server = OddServer(lambda method, count: body.encode())
    remote = await server.connect()
    view = await view_of(await remote.prompt(PromptMessage("hello")))
    assert (view.state, texts(view)) == (TaskState.COMPLETED, ["Hi\u2028you"])
    await remote.aclose()


async def test_a_redirect_is_not_followed_and_its_place_is_named() -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(307, headers={"Location": "https://agent.example/"})

    with pytest.raises(RemoteError, match=r"redirects to https://agent\.example/ \(HTTP 307\)"):
        await AgentConnection.open(URL, "s3cret", transport=httpx2.MockTransport(handle))


async def test_what_does_not_fit_never_shows_the_token_that_the_server_repeats() -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return OddServer(lambda method, count: b"")(request)
        return httpx2.Response(200, json={"result": {**task("s3cret"), "status": {"state": "s3cret"}}})

    remote = RemoteAgent(await AgentConnection.open(URL, "s3cret", transport=httpx2.MockTransport(handle)), QUICK)
    with pytest.raises(RemoteError, match="expected a Task") as caught:
        await remote.get("t")
    chain: BaseException | None = caught.value
    while chain is not None:
        assert "s3cret" not in str(chain)
        chain = chain.__cause__
    await remote.aclose()


async def test_a_body_that_never_ends_is_left_at_the_deadline() -> None:
    async def drops() -> AsyncGenerator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.001)  # delay: the server sends one byte after the other

    def handle(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return OddServer(lambda method, count: b"")(request)
        return httpx2.Response(200, content=drops())

    remote = RemoteAgent(await AgentConnection.open(URL, deadline=0.2, transport=httpx2.MockTransport(handle)), QUICK)
    with pytest.raises(ConnectionLostError, match="did not finish its answer in time"):
        await remote.get("t")
    await remote.aclose()


async def test_a_stream_of_1_0_that_stays_open_at_a_question_is_left_when_the_task_rests() -> None:
    status = {"state": "TASK_STATE_INPUT_REQUIRED"}
    asked: list[str] = []

    async def stream() -> AsyncGenerator[bytes]:
        yield events({"statusUpdate": {"taskId": "t", "contextId": "c", "status": status}})
        await asyncio.Event().wait()

    def handle(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            offered = [{"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
            card = {"name": "Odd", "supportedInterfaces": offered, "capabilities": {"streaming": True}}
            return httpx2.Response(200, json=card)
        asked.append(json.loads(request.content)["method"])
        if asked[-1] == "GetTask":
            return httpx2.Response(200, json={"result": {"id": "t", "contextId": "c", "status": status}})
        return httpx2.Response(200, content=stream(), headers={"Content-Type": "text/event-stream"})

    connection = await AgentConnection.open(URL, transport=httpx2.MockTransport(handle))
    remote = RemoteAgent(connection, replace(QUICK, rest_seconds=3600))
    view = await view_of(await remote.prompt(PromptMessage("hello")))
    assert (view.state, asked) == (TaskState.INPUT_REQUIRED, ["SendStreamingMessage", "GetTask"])
    await remote.aclose()
