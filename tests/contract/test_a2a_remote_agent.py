"""RemoteAgent against the A2A server over a real socket: the same events as the agent's, also over bad connections."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from isthmus.a2a.client.connection import ConnectionLostError, RemoteError
from isthmus.a2a.client.remote_agent import RemoteAgent, StreamRetryPolicy
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.server.application import application
from isthmus.a2a.server.listen import A2AServer, Certificate, bind
from isthmus.client import (
    Delivery,
    InvalidRequest,
    PromptMessage,
    TaskNotCancelable,
    TaskNotFound,
    TaskNotResumable,
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
from isthmus.events import (
    ConfirmationAccepted,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from support.a2a_serving import TOKEN, RawClient, serving
from support.certificates import make_certificate
from support.cutting_proxy import cutting_proxy
from support.memory_agent import Ask, MemoryAgent, Progress, Step, Wait, write_file_call
from support.turns import SECONDS, all_of
from support.waiting import eventually_async
from support.wire_server import Answer, WireServer

pytestmark = pytest.mark.anyio

QUICK = StreamRetryPolicy(attempts=4, first_wait=0.01, longest_wait=0.05)


@pytest.fixture
async def agent() -> MemoryAgent:
    return MemoryAgent()


@pytest.fixture
async def server(agent: MemoryAgent) -> AsyncIterator[RawClient]:
    async with serving(agent) as client:
        yield client


SPOKEN = (("0.3", "JSONRPC"), ("1.0", "JSONRPC"), ("1.0", "HTTP+JSON"))
"""Every version and binding that the client supports."""


@pytest.fixture(params=SPOKEN, ids=" ".join)
def spoken(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


@pytest.fixture
async def remote(server: RawClient, spoken: tuple[str, str]) -> AsyncIterator[RemoteAgent]:
    protocol, binding = spoken
    remote = await RemoteAgent.connect(server.url, TOKEN, retry_policy=QUICK, protocol=protocol, binding=binding)
    assert remote.protocol == protocol
    yield remote
    await remote.aclose()


def message(text: str, workspace: Path | None = None, task_id: str | None = None) -> PromptMessage:
    settings = {"workspace_path": str(workspace)} if workspace is not None else None
    return PromptMessage(text, message_id="m", task_id=task_id, settings=settings)


ALLOW = ToolCallConfirmation("call-1", "proceed_once", ModifiedFileDetails("mine\n"))


async def test_a_turn_is_as_the_agent_itself_has_it(remote: RemoteAgent, agent: MemoryAgent, workspace: Path) -> None:
    turn = await remote.prompt(message("edit", workspace))
    assert turn.is_new
    assert turn.snapshot.state is TaskState.SUBMITTED
    assert (turn.snapshot.workspace, turn.snapshot.title, turn.snapshot.model) == (str(workspace), "edit", "scripted")
    events = await all_of(turn)
    own = await all_of(await agent.follow(turn.task_id, turn.snapshot.seq))
    assert [(item.seq, item.event) for item in events] == [(item.seq, item.event) for item in own]
    assert [item.at for item in events] == pytest.approx([item.at for item in own], abs=0.001)

    turn = await remote.answer(turn.task_id, [ALLOW], answered_by="terminal", context_id=turn.context_id)
    assert not turn.is_new
    assert [item.seq for item in await all_of(turn)] == [8, 9, 10, 11, 12]
    replay = await all_of(await remote.follow(turn.task_id, 5))
    own = await all_of(await agent.follow(turn.task_id, 5))
    assert [(item.seq, item.event) for item in replay] == [(item.seq, item.event) for item in own]
    assert replay[0].event == ConfirmationAccepted(ALLOW, "terminal")


async def test_a_snapshot_is_as_the_agent_itself_has_it(
    remote: RemoteAgent, agent: MemoryAgent, workspace: Path
) -> None:
    for text in ("hello", "edit"):
        turn = await remote.prompt(message(text, workspace))
        await all_of(turn)
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
        async with asyncio.timeout(SECONDS):
            seen = [(await anext(turn.deliveries)) for _ in range(len(script))]
        await remote.cancel(turn.task_id)
        assert (await all_of(turn))[-1].event == StateChange(TaskState.CANCELED)
        await remote.aclose()
    assert seen[0].event == StateChange(TaskState.WORKING)
    expected = [step.event if isinstance(step, Progress) else step for step in script[:-1]]
    assert [item.event for item in seen[1:]] == expected
    assert [item.seq is None for item in seen[1:]] == [isinstance(step, Progress) for step in script[:-1]]


async def test_why_a_task_failed_comes_along(workspace: Path) -> None:
    async with serving(MemoryAgent(lambda _: (RuntimeError("the model is gone"),))) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN)
        turn = await remote.prompt(message("go", workspace))
        assert (await all_of(turn))[-1].event == StateChange(TaskState.FAILED, "the model is gone", "scripted")
        snapshot = await remote.get(turn.task_id)
        assert (snapshot.error, snapshot.reason) == ("the model is gone", "scripted")
        await remote.aclose()


async def test_refusals_are_the_errors_of_the_port(remote: RemoteAgent, workspace: Path) -> None:
    for refused in (remote.get("x"), remote.cancel("x"), remote.follow("x"), remote.answer("x", [], answered_by="me")):
        with pytest.raises(TaskNotFound, match="no task x"):
            await refused
    with pytest.raises(InvalidRequest, match="workspace_path"):
        await remote.prompt(message("hello"))
    turn = await remote.prompt(message("edit", workspace))
    await all_of(turn)
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
        events = await all_of(await remote.prompt(message("go", workspace)))
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
        remote = await RemoteAgent.connect(proxy.url, TOKEN, retry_policy=QUICK, protocol=protocol, binding=binding)
        turn = await remote.prompt(message("go", workspace))
        seen: list[Delivery] = []
        async with asyncio.timeout(SECONDS):
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


@pytest.mark.slow
async def test_a_stream_cut_at_any_byte_is_taken_up_again(
    agent: MemoryAgent, server: RawClient, workspace: Path
) -> None:
    async with cutting_proxy(server.url) as proxy:
        remote = await RemoteAgent.connect(proxy.url, TOKEN, retry_policy=QUICK)
        turn = await remote.prompt(message("edit", workspace))
        expected = [(item.seq, item.event) for item in await all_of(turn)]
        for cut_after in range(2400, 3600, 97):
            proxy.cut()
            proxy.cut_after = cut_after
            seen = await all_of(await remote.follow(turn.task_id, turn.snapshot.seq))
            assert [(item.seq, item.event) for item in seen] == expected
        proxy.cut_after = None
        await remote.aclose()
    await eventually_async(lambda: agent.followers == 0)


async def test_a_stream_that_cannot_be_taken_up_ends_with_a_clear_error(workspace: Path) -> None:
    async with serving(MemoryAgent(lambda _: (Wait(asyncio.Event()),))) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN, retry_policy=QUICK)
        turn = await remote.prompt(message("go", workspace))
        assert (await anext(turn.deliveries)).event == StateChange(TaskState.WORKING)
        server.server.stop()
        with pytest.raises(
            ConnectionLostError, match=f"task {turn.task_id} .* in 4 attempts; the task continues there"
        ):
            await all_of(turn)
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
        assert (await all_of(await remote.follow(turn.task_id, 2)))[-1].event == StateChange(TaskState.COMPLETED)
        await remote.aclose()


async def test_who_follows_from_the_beginning_sees_all_that_the_user_said(
    remote: RemoteAgent, server: RawClient, spoken: tuple[str, str], workspace: Path
) -> None:
    turn = await remote.prompt(message("first", workspace))
    await all_of(turn)
    again = PromptMessage("second", "m2", turn.task_id, turn.context_id)
    await all_of(await remote.prompt(again))
    version, binding = spoken
    other = await RemoteAgent.connect(server.url, TOKEN, protocol=version, binding=binding)
    events = [delivery.event for delivery in await all_of(await other.follow(turn.task_id, 0))]
    said = [event.text for event in events if isinstance(event, Prompt)]
    assert said == ["first", "second"]
    at = [index for index, event in enumerate(events) if isinstance(event, Prompt)]
    assert any(isinstance(event, TextContent) for event in events[at[0] : at[1]])
    await other.aclose()


async def test_following_a_task_at_rest_ends_at_once(remote: RemoteAgent, workspace: Path) -> None:
    turn = await remote.prompt(message("edit", workspace))
    await all_of(turn)
    follow = await remote.follow(turn.task_id)
    assert follow.snapshot.state is TaskState.INPUT_REQUIRED
    assert [call.tool_call_id for call in follow.snapshot.pending] == ["call-1"]
    assert await all_of(follow) == []


async def test_several_answers_go_in_one_message(workspace: Path) -> None:
    calls = (write_file_call("one"), write_file_call("two"))
    async with serving(MemoryAgent(lambda _: (Ask(calls),))) as server:
        remote = await RemoteAgent.connect(server.url, TOKEN)
        turn = await remote.prompt(message("edit", workspace))
        await all_of(turn)
        answers = [ToolCallConfirmation(name, "proceed_once") for name in ("one", "two")]
        events = await all_of(await remote.answer(turn.task_id, answers, answered_by="me"))
        assert events[-1].event == StateChange(TaskState.COMPLETED)
        await remote.aclose()


async def test_a_token_that_is_missing_or_wrong_is_said_so(server: RawClient) -> None:
    for token, text in ((None, "needs a token"), ("wrong", "refuses the token")):
        remote = await RemoteAgent.connect(server.url, token)
        with pytest.raises(RemoteError, match=f"{text} .*ISTHMUS_A2A_TOKEN"):
            await remote.tasks()
        with pytest.raises(RemoteError, match=text):
            await remote.prompt(message("hello"))
        await remote.aclose()


async def test_a_card_over_plain_http_may_lead_to_a_server_with_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = make_certificate(tmp_path, addresses=("127.0.0.2",))
    monkeypatch.setenv("SSL_CERT_FILE", str(files.certificate))
    app = application(MemoryAgent(), ServerOptions(TOKEN, hosts=("127.0.0.2",)))
    server = A2AServer(app, bind("127.0.0.2", 0), certificate=Certificate(files.certificate, files.key))
    running = asyncio.create_task(server.run_until_stopped())
    card = {"name": "A", "url": server.url, "protocolVersion": "0.3.0", "capabilities": {"streaming": True}}
    with WireServer(lambda _: Answer.json(card)) as cards:
        remote = await RemoteAgent.connect(cards.base_url)
        # It is reached, and its certificate is accepted; the token goes only to the server that was named.
        with pytest.raises(RemoteError, match="needs a token"):
            await remote.get("x")
        await remote.aclose()
    server.stop()
    await asyncio.wait_for(running, 30)
