"""RemoteAgent against our own server over a real socket: the same events as the agent itself, also over bad lines."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import cast

import httpx2
import pytest

from isthmus.a2a.client.connection import Connection, ConnectionLostError, RemoteError
from isthmus.a2a.client.remote_agent import Patience, RemoteAgent
from isthmus.a2a.extension import URI, IncompatibleExtensionError
from isthmus.client import (
    Delivery,
    InvalidRequest,
    PromptMessage,
    TaskNotCancelable,
    TaskNotFound,
    TaskNotResumable,
    Turn,
)
from isthmus.development_tool import (
    AgentThought,
    ErrorDetails,
    ModifiedFileDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.errors import IsthmusError
from isthmus.events import (
    ConfirmationAccepted,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from support.a2a_serving import TOKEN, RawClient, serving
from support.cutting_proxy import cutting_proxy
from support.memory_agent import Ask, MemoryAgent, Progress, Step, Wait, write_file_call
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

QUICK = Patience(attempts=4, first_wait=0.01, longest_wait=0.05)


@pytest.fixture
async def agent() -> MemoryAgent:
    return MemoryAgent()


@pytest.fixture
async def server(agent: MemoryAgent) -> AsyncIterator[RawClient]:
    async with serving(agent) as client:
        yield client


SPOKEN = (("0.3", "JSONRPC"), ("1.0", "JSONRPC"), ("1.0", "HTTP+JSON"))
"""Every version and binding that the client speaks."""


@pytest.fixture(params=SPOKEN, ids=" ".join)
def spoken(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


@pytest.fixture
async def remote(server: RawClient, spoken: tuple[str, str]) -> AsyncIterator[RemoteAgent]:
    protocol, binding = spoken
    remote = await RemoteAgent.connect(server.url, TOKEN, patience=QUICK, protocol=protocol, binding=binding)
    assert remote.protocol == protocol
    yield remote
    await remote.aclose()


def message(text: str, workspace: Path | None = None, task_id: str | None = None) -> PromptMessage:
    settings = {"workspace_path": str(workspace)} if workspace is not None else None
    return PromptMessage(text, message_id="m", task_id=task_id, settings=settings)


async def read(turn: Turn) -> Sequence[Delivery]:
    """Every delivery of a turn, within a deadline."""
    async with asyncio.timeout(20):
        return [delivery async for delivery in turn.deliveries]


ALLOW = ToolCallConfirmation("call-1", "proceed_once", ModifiedFileDetails("mine\n"))


async def test_a_turn_is_as_the_agent_itself_has_it(remote: RemoteAgent, agent: MemoryAgent, workspace: Path) -> None:
    turn = await remote.prompt(message("edit", workspace))
    assert turn.is_new
    assert turn.snapshot.state is TaskState.SUBMITTED
    assert (turn.snapshot.workspace, turn.snapshot.title, turn.snapshot.model) == (str(workspace), "edit", "scripted")
    events = await read(turn)
    own = await read(await agent.follow(turn.task_id, turn.snapshot.seq))
    assert [(item.seq, item.event) for item in events] == [(item.seq, item.event) for item in own]
    assert [item.at for item in events] == pytest.approx([item.at for item in own], abs=0.001)

    turn = await remote.answer(turn.task_id, [ALLOW], answered_by="terminal", context_id=turn.context_id)
    assert not turn.is_new
    assert [item.seq for item in await read(turn)] == [8, 9, 10, 11, 12]
    replay = await read(await remote.follow(turn.task_id, 5))
    own = await read(await agent.follow(turn.task_id, 5))
    assert [(item.seq, item.event) for item in replay] == [(item.seq, item.event) for item in own]
    assert replay[0].event == ConfirmationAccepted(ALLOW, "terminal")


async def test_a_snapshot_is_as_the_agent_itself_has_it(
    remote: RemoteAgent, agent: MemoryAgent, workspace: Path
) -> None:
    for text in ("hello", "edit"):
        turn = await remote.prompt(message(text, workspace))
        await read(turn)
        ours, theirs = await remote.get(turn.task_id), await agent.get(turn.task_id)
        assert ours.updated_at == pytest.approx(theirs.updated_at, abs=0.001)
        assert (ours.state, ours.pending, ours.history) == (theirs.state, theirs.pending, theirs.history)
        assert (ours.seq, ours.title, ours.workspace) == (theirs.seq, theirs.title, theirs.workspace)
        assert (await remote.get(turn.task_id, 1)).history == theirs.history[-1:]
        assert (await remote.get(turn.task_id, 0)).history == ()
    assert [item.title for item in await remote.tasks()] == ["edit", "hello"]
    assert [item.title for item in await remote.tasks(1)] == ["edit"]


async def test_every_event_that_is_sent_comes_back_as_it_was(workspace: Path, spoken: tuple[str, str]) -> None:
    call = ToolCall("c", ToolCallStatus.EXECUTING, "run_shell_command", {"command": "ls", "n": 2**60})
    live = ToolCall("c", ToolCallStatus.EXECUTING, "run_shell_command", {}, live_content="a\nb")
    failed = ToolCall("c", ToolCallStatus.FAILED, "run_shell_command", {}, error=ErrorDetails("no", "x", 2))
    done = ToolCall("d", ToolCallStatus.SUCCEEDED, "t", {}, "why", output=ToolOutput(structured_data={"a": [1, 2.5]}))
    script: Sequence[Step] = (
        Thought(AgentThought("subject", "description")),
        ToolCallUpdate(call),
        Progress(ToolCallUpdate(live)),
        ToolCallUpdate(failed),
        ToolCallUpdate(done),
        RetryNotice(1, 3, 0.5, "overloaded"),
        TextContent("t", "a\u2028b\x85\r\n😀"),
        StateChange(TaskState.FAILED, "it broke", "turn_limit"),
    )
    async with serving(MemoryAgent(lambda _: (*script[:-1], Wait(asyncio.Event())))) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN, protocol=spoken[0], binding=spoken[1])
        turn = await remote.prompt(message("go", workspace))
        async with asyncio.timeout(10):
            seen = [(await anext(turn.deliveries)) for _ in range(len(script))]
        await remote.cancel(turn.task_id)
        assert (await read(turn))[-1].event == StateChange(TaskState.CANCELED)
        await remote.aclose()
    assert seen[0].event == StateChange(TaskState.WORKING)
    expected = [step.event if isinstance(step, Progress) else step for step in script[:-1]]
    assert [item.event for item in seen[1:]] == expected
    assert [item.seq is None for item in seen[1:]] == [isinstance(step, Progress) for step in script[:-1]]


async def test_why_a_task_failed_comes_along(workspace: Path) -> None:
    async with serving(MemoryAgent(lambda _: (RuntimeError("the model is gone"),))) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN)
        turn = await remote.prompt(message("go", workspace))
        assert (await read(turn))[-1].event == StateChange(TaskState.FAILED, "the model is gone", "scripted")
        snapshot = await remote.get(turn.task_id)
        assert (snapshot.error, snapshot.reason) == ("the model is gone", "scripted")
        await remote.aclose()


async def test_refusals_are_the_errors_of_the_port(remote: RemoteAgent, workspace: Path) -> None:
    for refused in (remote.get("x"), remote.cancel("x"), remote.follow("x"), remote.answer("x", [], answered_by="me")):
        with pytest.raises(TaskNotFound, match="'x'"):
            await refused
    with pytest.raises(InvalidRequest, match="workspace_path"):
        await remote.prompt(message("hello"))
    turn = await remote.prompt(message("edit", workspace))
    await read(turn)
    with pytest.raises(InvalidRequest, match="proceed_once, cancel"):
        await remote.answer(turn.task_id, [ToolCallConfirmation("call-1", "maybe")], answered_by="me")
    await remote.cancel(turn.task_id)
    with pytest.raises(TaskNotCancelable):
        await remote.cancel(turn.task_id)
    with pytest.raises(TaskNotResumable):
        await remote.prompt(message("more", task_id=turn.task_id))


async def test_a_large_file_goes_through_whole(workspace: Path) -> None:
    content = "ä" * 3_000_000
    call = ToolCall("c", ToolCallStatus.SUCCEEDED, "t", {}, output=ToolOutput(text=content))
    async with serving(MemoryAgent(lambda _: (ToolCallUpdate(call),))) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN)
        events = await read(await remote.prompt(message("go", workspace)))
        await remote.aclose()
    assert events[1].event == ToolCallUpdate(call)


async def test_a_broken_stream_is_taken_up_again_without_loss_or_repetition(
    workspace: Path, spoken: tuple[str, str]
) -> None:
    texts = [TextContent("t", f"{index} ") for index in range(200)]
    gates = [asyncio.Event() for _ in range(4)]
    steps: list[Step] = []
    for index, gate in enumerate(gates):
        steps += [*texts[index * 50 : index * 50 + 50], Wait(gate)]
    async with serving(MemoryAgent(lambda _: steps)) as server, cutting_proxy(server.url) as proxy:
        protocol, binding = spoken
        remote = await RemoteAgent.connect(proxy.url, TOKEN, patience=QUICK, protocol=protocol, binding=binding)
        turn = await remote.prompt(message("go", workspace))
        seen: list[Delivery] = []
        async with asyncio.timeout(20):
            async for delivery in turn.deliveries:
                seen.append(delivery)
                if len(seen) % 50 == 1 and gates:
                    proxy.cut()
                    gates.pop(0).set()
        await remote.aclose()
    assert [item.event for item in seen if isinstance(item.event, TextContent)] == texts
    assert seen[-1].event == StateChange(TaskState.COMPLETED)
    assert [item.seq for item in seen] == list(range(2, len(seen) + 2))
    assert proxy.connections >= 4


async def test_a_stream_cut_at_any_byte_is_taken_up_again(
    agent: MemoryAgent, server: RawClient, workspace: Path
) -> None:
    async with cutting_proxy(server.url) as proxy:
        remote = await RemoteAgent.connect(proxy.url, TOKEN, patience=QUICK)
        turn = await remote.prompt(message("edit", workspace))
        expected = [(item.seq, item.event) for item in await read(turn)]
        for cut_after in range(2000, 3600, 97):
            proxy.cut()
            proxy.cut_after = cut_after
            seen = await read(await remote.follow(turn.task_id, turn.snapshot.seq))
            assert [(item.seq, item.event) for item in seen] == expected
        proxy.cut_after = None
        await remote.aclose()
    assert agent.followers == 0


async def test_a_stream_that_cannot_be_taken_up_ends_with_a_clear_error(workspace: Path) -> None:
    async with serving(MemoryAgent(lambda _: (Wait(asyncio.Event()),))) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN, patience=QUICK)
        turn = await remote.prompt(message("go", workspace))
        assert (await anext(turn.deliveries)).event == StateChange(TaskState.WORKING)
        server.server.stop()
        with pytest.raises(ConnectionLostError, match=f"task {turn.task_id} .* in 4 attempts; the task goes on there"):
            await read(turn)
        await remote.aclose()


async def test_leaving_a_turn_early_leaves_the_task_working(workspace: Path) -> None:
    gate = asyncio.Event()
    agent = MemoryAgent(lambda _: (Wait(gate), TextContent("t", "done")))
    async with serving(agent) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN)
        turn = await remote.prompt(message("go", workspace))
        await anext(turn.deliveries)
        await cast("AsyncGenerator[Delivery, None]", turn.deliveries).aclose()
        await eventually_async(lambda: agent.followers == 0)
        gate.set()
        assert (await read(await remote.follow(turn.task_id, 2)))[-1].event == StateChange(TaskState.COMPLETED)
        await remote.aclose()


async def test_following_a_task_at_rest_ends_at_once(remote: RemoteAgent, workspace: Path) -> None:
    turn = await remote.prompt(message("edit", workspace))
    await read(turn)
    follow = await remote.follow(turn.task_id)
    assert follow.snapshot.state is TaskState.INPUT_REQUIRED
    assert [call.tool_call_id for call in follow.snapshot.pending] == ["call-1"]
    assert await read(follow) == []


async def test_several_answers_go_in_one_message(workspace: Path) -> None:
    calls = (write_file_call("one"), write_file_call("two"))
    async with serving(MemoryAgent(lambda _: (Ask(calls),))) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN)
        turn = await remote.prompt(message("edit", workspace))
        await read(turn)
        answers = [ToolCallConfirmation(name, "proceed_once") for name in ("one", "two")]
        events = await read(await remote.answer(turn.task_id, answers, answered_by="me"))
        assert events[-1].event == StateChange(TaskState.COMPLETED)
        await remote.aclose()


async def test_a_server_that_is_not_there_is_said_so() -> None:
    with pytest.raises(ConnectionLostError, match=r"nothing answers at http://127\.0\.0\.1:9/"):
        await RemoteAgent.connect("http://127.0.0.1:9/")
    for url in ("", "localhost:80", "ftp://x/", "http://"):
        with pytest.raises(RemoteError, match="expected http"):
            await RemoteAgent.connect(url)


async def test_a_token_that_is_missing_or_wrong_is_said_so(server: RawClient) -> None:
    for token, text in ((None, "needs a token"), ("wrong", "refuses the token")):
        remote = await RemoteAgent.connect(server.url, token)
        with pytest.raises(RemoteError, match=f"{text} .*ISTHMUS_A2A_TOKEN"):
            await remote.tasks()
        with pytest.raises(RemoteError, match=text):
            await remote.prompt(message("hello"))
        await remote.aclose()


def answering(status: int, body: object, content_type: str = "application/json") -> httpx2.MockTransport:
    """A server that answers everything alike."""
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
        (403, b"", "does not serve A2A to us"),
        (302, b"", "does not serve A2A to us"),
        (503, b"", "cannot serve now"),
    ],
)
async def test_what_is_no_a2a_server_is_said_so(status: int, body: object, text: str) -> None:
    with pytest.raises(RemoteError, match=text):
        await Connection.open("http://agent.example/", transport=answering(status, body))


async def test_a_server_of_another_version_of_the_extension_is_named() -> None:
    card = {"url": "http://a/", "capabilities": {"extensions": [{"uri": URI.replace("v0", "v2")}]}}
    with pytest.raises(IncompatibleExtensionError, match=r"version 2 .* version 0,"):
        await Connection.open("http://agent.example/", transport=answering(200, card))


async def test_the_token_goes_to_no_other_origin_than_the_one_named() -> None:
    card = {"url": "http://evil.example:8080/rpc?x=1", "capabilities": {"streaming": True}}
    connection = await Connection.open("http://agent.example/", "secret", transport=answering(200, card))
    assert connection.url == "http://agent.example/rpc?x=1"
    await connection.aclose()


def junk(rpc: object, content_type: str = "application/json") -> httpx2.MockTransport:
    """A server with a good card that answers every request with this."""
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
        ({"result": 5}, "something else than"),
        ({"result": {}}, "something else than"),
        ({"result": {"kind": "task", "id": "x", "contextId": "c"}}, "something else than"),
        ({"error": {"code": -32603, "message": "broken"}}, "the server answers: broken"),
        ({"error": {}}, "the server answers: no message"),
    ],
)
async def test_answers_that_do_not_fit_are_clear_errors(rpc: object, text: str) -> None:
    remote = RemoteAgent(await Connection.open("http://agent.example/", transport=junk(rpc)), QUICK)
    for call in (remote.get("x"), remote.cancel("x"), remote.tasks()):
        with pytest.raises(IsthmusError, match=text):
            await call
    await remote.aclose()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "without an item"),
        (b"data: <html>\n\n", "is not an A2A server"),
        (b'data: {"result": 5}\n\n', "does not fit its protocol"),
        (b'data: {"result": {"kind": "status-update", "status": {}}}\n\n', "does not fit its protocol"),
        (b'data: {"error": {"code": -32602, "message": "no workspace_path"}}\n\n', "no workspace_path"),
    ],
)
async def test_streams_that_do_not_fit_are_clear_errors(body: bytes, text: str) -> None:
    transport = junk(body, "text/event-stream")
    remote = RemoteAgent(await Connection.open("http://agent.example/", transport=transport), QUICK)
    with pytest.raises(IsthmusError, match=text):
        await remote.prompt(message("hello"))
    await remote.aclose()


async def test_a_stream_that_is_answered_without_one_is_a_clear_error() -> None:
    transport = junk({"result": {"kind": "task"}})
    remote = RemoteAgent(await Connection.open("http://agent.example/", transport=transport), QUICK)
    with pytest.raises(RemoteError, match="answers message/stream without an event stream"):
        await remote.prompt(message("hello"))
    await remote.aclose()


async def test_a_stream_may_begin_without_the_task() -> None:
    status = {"state": "completed", "message": {"messageId": "m", "parts": [{"kind": "text", "text": "Hi"}]}}
    item = {"kind": "status-update", "taskId": "t", "contextId": "c", "status": status, "final": True}
    body = b"data: " + json.dumps({"result": item}).encode() + b"\n\n"
    transport = junk(body, "text/event-stream")
    remote = RemoteAgent(await Connection.open("http://agent.example/", transport=transport), QUICK)
    turn = await remote.prompt(message("hello"))
    assert (turn.task_id, turn.context_id) == ("t", "c")
    assert [item.event for item in await read(turn)] == [TextContent("m", "Hi"), StateChange(TaskState.COMPLETED)]
    await remote.aclose()


async def test_a_token_in_the_url_is_refused_with_advice() -> None:
    for url in ("http://secret@127.0.0.1:9/", "http://me:secret@127.0.0.1:9/"):
        with pytest.raises(RemoteError, match="--token-file") as caught:
            await Connection.open(url)
        assert "secret" not in str(caught.value)


async def test_the_card_is_asked_for_without_the_token_first() -> None:
    seen: list[str | None] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers.get("authorization"))
        if "authorization" not in request.headers:
            return httpx2.Response(401)
        return httpx2.Response(200, json={"url": "http://agent.example/", "capabilities": {}})

    connection = await Connection.open("http://agent.example/", "secret", transport=httpx2.MockTransport(respond))
    assert seen == [None, "Bearer secret"]
    await connection.aclose()
    with pytest.raises(RemoteError, match="needs a token"):
        await Connection.open("http://agent.example/", transport=httpx2.MockTransport(respond))


async def test_without_a_token_the_card_may_lead_elsewhere_but_never_to_nowhere() -> None:
    for stated, used in (
        ("https://rpc.example/a2a", "https://rpc.example/a2a"),
        ("http://0.0.0.0:9999/a2a", "http://agent.example/a2a"),
        ("http://localhost:41242/", "http://agent.example/"),
        ("http://agent.example:8080/a2a", "http://agent.example/a2a"),
    ):
        card: dict[str, object] = {"url": stated, "capabilities": dict[str, object]()}
        connection = await Connection.open("http://agent.example/", transport=answering(200, card))
        assert connection.url == used
        await connection.aclose()


async def test_a_server_that_repeats_the_token_is_not_repeated() -> None:
    error = {"error": {"code": -32603, "message": "your token is s3cret"}}
    remote = RemoteAgent(await Connection.open("http://agent.example/", "s3cret", transport=junk(error)), QUICK)
    with pytest.raises(IsthmusError, match=r"your token is \[token\]"):
        await remote.get("x")
    await remote.aclose()
