"""RemoteAgent with servers of other protocols, or invalid responses: clear errors, and no token to other servers."""

import json

import httpx2
import pytest

from isthmus.a2a.client.connection import AgentConnection, ConnectionLostError, RemoteError
from isthmus.a2a.client.remote_agent import RemoteAgent, StreamRetryPolicy
from isthmus.a2a.protocol.extension import URI, IncompatibleExtensionError
from isthmus.client import (
    PromptMessage,
)
from isthmus.errors import IsthmusError
from isthmus.events import (
    StateChange,
    TaskState,
    TextContent,
)
from support.turns import all_of

pytestmark = pytest.mark.anyio


QUICK = StreamRetryPolicy(attempts=4, first_wait=0.01, longest_wait=0.05)


async def test_a_server_that_is_not_there_is_said_so() -> None:
    with pytest.raises(ConnectionLostError, match=r"nothing answers at http://127\.0\.0\.1:9/"):
        await RemoteAgent.connect("http://127.0.0.1:9/")
    for url in ("", "localhost:80", "ftp://x/", "http://"):
        with pytest.raises(RemoteError, match="expected http"):
            await RemoteAgent.connect(url)


def answering(status: int, body: object, content_type: str = "application/json") -> httpx2.MockTransport:
    """Return a server that sends the same response to every request."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.MockTransport(
        lambda _: httpx2.Response(status, content=content, headers={"Content-Type": content_type})
    )


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (404, b"", "is not an A2A server: it has no agent card"),
        (200, b"<html>", "is not an A2A server"),
        (200, {"name": "x"}, "is not an A2A server"),
        (200, [1], "is not an A2A server"),
        (403, b"", "refuses A2A requests"),
        (302, b"", "redirects are not followed"),
        (503, b"", "cannot serve now"),
    ],
)
async def test_what_is_no_a2a_server_is_said_so(status: int, body: object, text: str) -> None:
    with pytest.raises(RemoteError, match=text):
        await AgentConnection.open("http://agent.example/", transport=answering(status, body))


async def test_a_server_of_another_version_of_the_extension_is_named() -> None:
    card = {"url": "http://a/", "capabilities": {"extensions": [{"uri": URI.replace("v0", "v2")}]}}
    with pytest.raises(IncompatibleExtensionError, match=r"version 2 .* version 0,"):
        await AgentConnection.open("http://agent.example/", transport=answering(200, card))


async def test_the_token_goes_to_no_other_origin_than_the_one_named() -> None:
    card = {"url": "http://evil.example:8080/rpc?x=1", "capabilities": {"streaming": True}}
    connection = await AgentConnection.open("http://agent.example/", "secret", transport=answering(200, card))
    assert connection.url == "http://agent.example/rpc?x=1"
    await connection.aclose()


def junk(rpc: object, content_type: str = "application/json") -> httpx2.MockTransport:
    """Return a server with a valid card that sends this response to every request."""
    card = {"url": "http://agent.example/", "capabilities": {"extensions": [{"uri": URI}]}}
    body = rpc if isinstance(rpc, bytes) else json.dumps(rpc).encode()

    def respond(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json=card)
        return httpx2.Response(200, content=body, headers={"Content-Type": content_type})

    return httpx2.MockTransport(respond)


@pytest.mark.parametrize(
    ("rpc", "text"),
    [
        (b"<html>", "is not an A2A server"),
        ([], "is not an A2A server"),
        ({"jsonrpc": "2.0", "id": 1}, "neither result nor error"),
        ({"result": 5}, "expected a (Task|list of tasks)"),
        ({"result": {}}, "expected a (Task|list of tasks)"),
        ({"result": {"kind": "task", "id": "x", "contextId": "c"}}, "expected a (Task|list of tasks)"),
        ({"error": {"code": -32603, "message": "broken"}}, "the server answered: broken"),
        ({"error": {}}, "the server answered: no message"),
    ],
)
async def test_answers_that_do_not_fit_are_clear_errors(rpc: object, text: str) -> None:
    remote = RemoteAgent(await AgentConnection.open("http://agent.example/", transport=junk(rpc)), QUICK)
    for call in (remote.get("x"), remote.cancel("x"), remote.tasks()):
        with pytest.raises(IsthmusError, match=text):
            await call
    await remote.aclose()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "without an item"),
        (b"data: <html>\n\n", "is not an A2A server"),
        (b'data: {"result": 5}\n\n', "sent an invalid event"),
        (b'data: {"result": {"kind": "status-update", "status": {}}}\n\n', "sent an invalid event"),
        (b'data: {"error": {"code": -32602, "message": "no workspace_path"}}\n\n', "no workspace_path"),
    ],
)
async def test_streams_that_do_not_fit_are_clear_errors(body: bytes, text: str) -> None:
    transport = junk(body, "text/event-stream")
    remote = RemoteAgent(await AgentConnection.open("http://agent.example/", transport=transport), QUICK)
    with pytest.raises(IsthmusError, match=text):
        await remote.prompt(PromptMessage("hello", message_id="m"))
    await remote.aclose()


async def test_a_stream_that_is_answered_without_one_is_a_clear_error() -> None:
    transport = junk({"result": {"kind": "task"}})
    remote = RemoteAgent(await AgentConnection.open("http://agent.example/", transport=transport), QUICK)
    with pytest.raises(RemoteError, match=r"expected an event stream from .* for message/stream"):
        await remote.prompt(PromptMessage("hello", message_id="m"))
    await remote.aclose()


async def test_a_stream_may_begin_without_the_task() -> None:
    status = {"state": "completed", "message": {"messageId": "m", "parts": [{"kind": "text", "text": "Hi"}]}}
    item = {"kind": "status-update", "taskId": "t", "contextId": "c", "status": status, "final": True}
    body = b"data: " + json.dumps({"result": item}).encode() + b"\n\n"
    transport = junk(body, "text/event-stream")
    remote = RemoteAgent(await AgentConnection.open("http://agent.example/", transport=transport), QUICK)
    turn = await remote.prompt(PromptMessage("hello", message_id="m"))
    assert (turn.task_id, turn.context_id) == ("t", "c")
    assert [item.event for item in await all_of(turn)] == [TextContent("m", "Hi"), StateChange(TaskState.COMPLETED)]
    await remote.aclose()


async def test_a_token_in_the_url_is_refused_with_advice() -> None:
    for url in ("http://secret@127.0.0.1:9/", "http://me:secret@127.0.0.1:9/"):
        with pytest.raises(RemoteError, match="--token-file") as caught:
            await AgentConnection.open(url)
        assert "secret" not in str(caught.value)


async def test_the_card_is_asked_for_without_the_token_first() -> None:
    seen: list[str | None] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers.get("authorization"))
        if "authorization" not in request.headers:
            return httpx2.Response(401)
        return httpx2.Response(200, json={"url": "http://agent.example/", "capabilities": {}})

    connection = await AgentConnection.open("http://agent.example/", "secret", transport=httpx2.MockTransport(respond))
    assert seen == [None, "Bearer secret"]
    await connection.aclose()
    with pytest.raises(RemoteError, match="needs a token"):
        await AgentConnection.open("http://agent.example/", transport=httpx2.MockTransport(respond))


async def test_without_a_token_the_card_may_lead_elsewhere_but_never_to_nowhere() -> None:
    for stated, used in (
        ("https://rpc.example/a2a", "https://rpc.example/a2a"),
        ("http://0.0.0.0:9999/a2a", "http://agent.example/a2a"),
        ("http://localhost:41242/", "http://agent.example/"),
        ("http://agent.example:8080/a2a", "http://agent.example/a2a"),
    ):
        card: dict[str, object] = {"url": stated, "capabilities": dict[str, object]()}
        connection = await AgentConnection.open("http://agent.example/", transport=answering(200, card))
        assert connection.url == used
        await connection.aclose()


async def test_a_server_that_repeats_the_token_is_not_repeated() -> None:
    error = {"error": {"code": -32603, "message": "your token is s3cret"}}
    remote = RemoteAgent(await AgentConnection.open("http://agent.example/", "s3cret", transport=junk(error)), QUICK)
    with pytest.raises(IsthmusError, match=r"your token is \[token\]"):
        await remote.get("x")
    await remote.aclose()
