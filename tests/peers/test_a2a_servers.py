"""RemoteAgent against an independent A2A server without the extension: the official Python SDK's, version 0.3."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, Part, TextPart
from a2a.types import TaskState as SdkState
from a2a.utils import new_task

from isthmus.a2a.client.remote_agent import RemoteAgent, StreamRetryPolicy
from isthmus.a2a.server.listen import bind, url_of
from isthmus.client import InvalidRequest, PromptMessage, TaskNotFound
from isthmus.events import AgentEvent, ArtifactPart, ArtifactUpdate, StateChange, TaskState, TextContent
from support.turns import events_of

pytestmark = pytest.mark.anyio


def text(words: str) -> list[Part]:
    """Return the parts of a message."""
    return [Part(root=TextPart(text=words))]


class Greeter(AgentExecutor):
    """An agent that asks for a name, then greets in a status message and an artifact."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = context.current_task or new_task(context.message)
        if context.current_task is None:
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        said = context.get_user_input()
        await updater.update_status(SdkState.working, updater.new_agent_message(text("Let me see. ")))
        if said == "hello":
            question = updater.new_agent_message(text("Who are you?"))
            await updater.update_status(SdkState.input_required, question, final=True)
        elif said == "fail":
            await updater.failed(updater.new_agent_message(text("I cannot.")))
        else:
            await updater.add_artifact(text(f"Hello {said}"), artifact_id="greeting", append=False)
            await updater.add_artifact(text("!"), artifact_id="greeting", append=True, last_chunk=True)
            await updater.complete(updater.new_agent_message(text("There you are.")))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.current_task is not None
        await TaskUpdater(event_queue, context.current_task.id, context.current_task.context_id).cancel()


@pytest.fixture
async def remote() -> AsyncGenerator[RemoteAgent]:
    listener = bind("127.0.0.1", 0)
    card = AgentCard(
        name="Greeter",
        description="Greets",
        version="1",
        url=url_of(listener),
        skills=[],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
    )
    handler = DefaultRequestHandler(agent_executor=Greeter(), task_store=InMemoryTaskStore())
    app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=2))
    running = asyncio.create_task(server.serve([listener]))
    agent = await RemoteAgent.connect(url_of(listener), retry_policy=StreamRetryPolicy(2, 0.01))
    try:
        yield agent
    finally:
        await agent.aclose()
        server.should_exit = True
        await asyncio.wait_for(running, 30)


def words(events: list[AgentEvent]) -> list[str]:
    """Return the texts among events."""
    return [event.text for event in events if isinstance(event, TextContent)]


async def test_texts_artifacts_and_states_become_events(remote: RemoteAgent) -> None:
    assert not remote.profile.activation.active
    events = await events_of(await remote.prompt(PromptMessage("Ada")))
    assert words(events) == ["Let me see. ", "There you are."]
    assert [event for event in events if isinstance(event, ArtifactUpdate)] == [
        ArtifactUpdate("greeting", (ArtifactPart(text="Hello Ada"),)),
        ArtifactUpdate("greeting", (ArtifactPart(text="!"),), append=True),
    ]
    assert [event for event in events if isinstance(event, StateChange)] == [
        StateChange(TaskState.WORKING),
        StateChange(TaskState.COMPLETED),
    ]


async def test_a_question_is_answered_by_continuing_the_task(remote: RemoteAgent) -> None:
    turn = await remote.prompt(PromptMessage("hello"))
    events = await events_of(turn)
    assert words(events)[-1] == "Who are you?"
    assert events[-1] == StateChange(TaskState.INPUT_REQUIRED)
    assert (await remote.get(turn.task_id)).state is TaskState.INPUT_REQUIRED
    events = await events_of(await remote.prompt(PromptMessage("Ada", task_id=turn.task_id)))
    assert events[-1] == StateChange(TaskState.COMPLETED)
    assert (await remote.get(turn.task_id)).history[-1].text == "There you are."


async def test_a_failure_says_why(remote: RemoteAgent) -> None:
    events = await events_of(await remote.prompt(PromptMessage("fail")))
    assert events[-1] == StateChange(TaskState.FAILED, "I cannot.")


async def test_what_the_server_does_not_have_is_a_clear_error(remote: RemoteAgent) -> None:
    with pytest.raises(TaskNotFound):
        await remote.get("unknown")
    with pytest.raises(InvalidRequest, match="cannot list its tasks"):
        await remote.tasks()
    turn = await remote.prompt(PromptMessage("hello"))
    await events_of(turn)
    assert (await remote.cancel(turn.task_id)).state is TaskState.CANCELED
