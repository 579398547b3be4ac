"""RemoteAgent against plain agents on the official JavaScript SDKs, of A2A 0.3 and 1.0, also over bad connections."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest

from isthmus.a2a.client.discovery import ClientDialect
from isthmus.a2a.client.remote_agent import RemoteAgent, StreamRetryPolicy
from isthmus.client import PromptMessage, TaskNotFound, TaskNotResumable
from isthmus.events import TaskState
from isthmus.task_view import TaskView
from support.cutting_proxy import cutting_proxy
from support.isolation import isolate
from support.node_agent import node_agent
from support.turns import view_of

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

KINDS = (
    ("0.3", "JSONRPC", ()),
    ("0.3", "JSONRPC", ("--no-streaming",)),
    ("1.0", "JSONRPC", ()),
    ("1.0", "HTTP+JSON", ()),
)
STREAMING = tuple(kind for kind in KINDS if not kind[2])


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: " ".join((*kind[:2], *kind[2])))
async def url(request: pytest.FixtureRequest) -> AsyncGenerator[str]:
    """Start an agent of each kind, for all its tests, and yield its URL."""
    version, binding, flags = request.param
    async with AsyncExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            stack.enter_context(isolate(patch))
            url = await stack.enter_async_context(node_agent(version, binding, *flags))
        yield url


@pytest.fixture
async def remote(url: str) -> AsyncGenerator[RemoteAgent]:
    agent = await RemoteAgent.connect(url)
    assert (agent.dialect, agent.name) == (ClientDialect.PLAIN, "Greeter")
    yield agent
    await agent.aclose()


def texts(view: TaskView) -> list[str]:
    """Return the agent's texts, each once."""
    return [message.text for message in view.messages.values()]


async def test_it_is_spoken_to_in_its_version(remote: RemoteAgent, request: pytest.FixtureRequest) -> None:
    assert remote.protocol == request.node.callspec.params["url"][0]


async def test_texts_artifacts_messages_and_failures_come_as_they_are(remote: RemoteAgent) -> None:
    turn = await remote.prompt(PromptMessage("Ada"))
    view = await view_of(turn)
    assert (view.state, texts(view)) == (TaskState.COMPLETED, ["Let me see. ", "There you are."])
    assert view.final_text == "Hello Ada!\n\nThere you are."
    view = await view_of(await remote.prompt(PromptMessage("message")))
    assert (view.state, view.final_text) == (TaskState.COMPLETED, "Just words.")
    view = await view_of(await remote.prompt(PromptMessage("fail")))
    assert (view.state, view.error) == (TaskState.FAILED, "I cannot.")
    with pytest.raises(TaskNotFound):
        await remote.get("unknown")


async def test_a_question_in_words_is_answered_and_a_task_is_cancelled(remote: RemoteAgent) -> None:
    turn = await remote.prompt(PromptMessage("hello"))
    view = await view_of(turn)
    assert (view.state, texts(view)[-1]) == (TaskState.INPUT_REQUIRED, "Who are you?")
    view = await view_of(await remote.prompt(PromptMessage("Ada", task_id=turn.task_id)))
    assert (view.state, texts(view)) == (TaskState.COMPLETED, ["Let me see. ", "There you are."])
    turn = await remote.prompt(PromptMessage("hello"))
    await view_of(turn)
    assert (await remote.cancel(turn.task_id)).state is TaskState.CANCELED
    if remote.protocol == "1.0":
        with pytest.raises(TaskNotResumable):
            await remote.prompt(PromptMessage("more", task_id=turn.task_id))
        assert turn.task_id in [task.task_id for task in await remote.tasks()]


@pytest.mark.parametrize("url", STREAMING, indirect=True, scope="module", ids=lambda kind: " ".join(kind[:2]))
async def test_nothing_is_lost_or_told_twice_wherever_the_connection_is_cut(remote: RemoteAgent) -> None:
    seed = random.randrange(2**32)  # noqa: S311 - to be repeated
    print(f"seed {seed}")
    chance = random.Random(seed)  # noqa: S311 - to be repeated
    numbers = "".join(f"{number} " for number in range(1, 61))
    retry_policy = StreamRetryPolicy(attempts=20, first_wait=0.01, longest_wait=0.05)
    async with cutting_proxy(remote.url) as proxy:
        for _ in range(4):
            agent = await RemoteAgent.connect(proxy.url, retry_policy=retry_policy)
            turn = await agent.prompt(PromptMessage("count"))
            view = TaskView.of_snapshot(turn.snapshot)
            async with asyncio.timeout(60):
                async for delivery in turn.deliveries:
                    view.apply(delivery)
                    if chance.random() < 0.1 and not view.state.is_terminal:
                        proxy.cut()
                        proxy.cuts = [chance.randrange(1, 6000)]
            assert (view.state, texts(view)) == (TaskState.COMPLETED, ["Let me see. ", "There you are."])
            assert [artifact.text for artifact in view.artifacts.values()] == [numbers]
            await agent.aclose()
            proxy.cuts = []
