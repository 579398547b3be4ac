"""RemoteAgent against plain agents on the official SDK of A2A 1.0, over both bindings, with streams and without."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from isthmus.a2a.client.discovery import ClientDialect
from isthmus.a2a.client.remote_agent import RemoteAgent, StreamRetryPolicy
from isthmus.client import CommandMessage, CommandScope, PromptMessage, TaskNotFound
from isthmus.development_tool import CommandExecutionStatus
from isthmus.events import TaskState
from isthmus.task_view import TaskView
from support.cutting_proxy import cutting_proxy
from support.isolation import isolate
from support.programs import PYTHON_PEERS, python_peer
from support.turns import view_of

pytestmark = pytest.mark.anyio

KINDS = (("JSONRPC", True), ("HTTP+JSON", True), ("JSONRPC", False))


@asynccontextmanager
async def plain_agent(binding: str, *flags: str) -> AsyncGenerator[str]:
    """Start the agent and yield its URL."""
    command = (str(python_peer()), str(PYTHON_PEERS / "serve_a2a_1.py"), binding, *flags)
    process = await asyncio.create_subprocess_exec(
        *command, cwd=Path.home(), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
    finally:
        process.kill()
        await process.wait()


@pytest.fixture(scope="module", params=KINDS, ids=["jsonrpc", "rest", "without streams"])
async def url(request: pytest.FixtureRequest) -> AsyncGenerator[str]:
    """Start an agent of each kind, for all its tests, and yield its URL."""
    binding, streaming = request.param
    async with AsyncExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            stack.enter_context(isolate(patch))
            agent = plain_agent(binding, *([] if streaming else ["--no-streaming"]))
            url = await stack.enter_async_context(agent)
        yield url


@pytest.fixture
async def remote(url: str) -> AsyncGenerator[RemoteAgent]:
    agent = await RemoteAgent.connect(url)
    assert (agent.protocol, agent.dialect, agent.name) == ("1.0", ClientDialect.PLAIN, "Greeter")
    yield agent
    await agent.aclose()


def texts(view: TaskView) -> list[str]:
    """Return the agent's texts, each once."""
    return [message.text for message in view.messages.values()]


async def test_texts_and_artifacts_are_told_once(remote: RemoteAgent) -> None:
    turn = await remote.prompt(PromptMessage("Ada"))
    view = await view_of(turn)
    assert (view.state, texts(view)) == (TaskState.COMPLETED, ["Let me see. ", "There you are."])
    assert [artifact.text for artifact in view.artifacts.values()] == ["Hello Ada!"]
    assert view.final_text == "Hello Ada!\n\nThere you are."
    snapshot = await remote.get(turn.task_id)
    assert [message.text for message in snapshot.history][-2:] == ["Hello Ada!", "There you are."]


async def test_a_message_alone_is_an_answer(remote: RemoteAgent) -> None:
    view = await view_of(await remote.prompt(PromptMessage("message")))
    assert (view.state, view.final_text) == (TaskState.COMPLETED, "Just words.")


async def test_a_question_in_words_is_answered_by_the_next_message(remote: RemoteAgent) -> None:
    turn = await remote.prompt(PromptMessage("hello"))
    view = await view_of(turn)
    assert (view.state, texts(view)[-1]) == (TaskState.INPUT_REQUIRED, "Who are you?")
    view = await view_of(await remote.prompt(PromptMessage("Ada", task_id=turn.task_id)))
    assert (view.state, texts(view)) == (TaskState.COMPLETED, ["Let me see. ", "There you are."])


async def test_failures_cancels_and_what_is_not_there(remote: RemoteAgent) -> None:
    view = await view_of(await remote.prompt(PromptMessage("fail")))
    assert (view.state, view.error) == (TaskState.FAILED, "I cannot.")
    with pytest.raises(TaskNotFound):
        await remote.get("unknown")
    turn = await remote.prompt(PromptMessage("hello"))
    await view_of(turn)
    assert (await remote.cancel(turn.task_id)).state is TaskState.CANCELED
    assert await remote.commands(CommandScope()) == ()
    execution = await remote.execute(CommandMessage(("help",)))
    assert (execution.status, execution.turn) == (CommandExecutionStatus.FAILED_TO_START, None)


@pytest.mark.parametrize("url", KINDS[:2], indirect=True, scope="module", ids=["jsonrpc", "rest"])
async def test_after_a_broken_connection_nothing_is_told_twice_and_the_gap_is_said(remote: RemoteAgent) -> None:
    async with cutting_proxy(remote.url) as proxy:
        agent = await RemoteAgent.connect(proxy.url, retry_policy=StreamRetryPolicy(6, 0.05), protocol="1.0")
        turn = await agent.prompt(PromptMessage("wait"))
        view = TaskView.of_snapshot(turn.snapshot)
        async with asyncio.timeout(30):
            async for delivery in turn.deliveries:
                view.apply(delivery)
                if texts(view) == ["Let me see. "] and not view.has_missed:
                    proxy.cut()
                if view.has_missed and not view.state.is_terminal:
                    await remote.cancel(turn.task_id)
        await agent.aclose()
    assert view.state is TaskState.CANCELED
    assert view.has_missed
    assert texts(view) == ["Let me see. "]
