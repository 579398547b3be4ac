"""A minimal server of a2a-sdk 0.3 with its in-memory store, whose tasks have the same events as ours."""

import asyncio

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, DataPart, Message, Part, TaskState, TextPart
from a2a.utils import new_task

from bench.programs import probe
from isthmus.a2a.protocol.extension import URI
from isthmus.a2a.server.listen import bind, url_of


class Executor(AgentExecutor):
    """Executor that answers ``stream N`` with N thoughts and ``hold`` never, and repeats any other prompt."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answer with a text, and complete the task."""
        assert context.message is not None
        task = new_task(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        prompt = context.get_user_input()
        if prompt == "hold":
            await asyncio.Event().wait()
        if prompt.startswith("stream "):
            for number in range(int(prompt.split()[1])):
                thought = {"subject": f"Step {number}", "description": "Looking at the next file of the workspace."}
                await self._say(updater, Part(root=DataPart(data=thought)), "THOUGHT")
        else:
            await self._say(updater, Part(root=TextPart(text=prompt)), "TEXT_CONTENT")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Raise NotImplementedError: no benchmark cancels."""
        raise NotImplementedError

    async def _say(self, updater: TaskUpdater, part: Part, kind: str) -> None:
        message: Message = updater.new_agent_message([part])
        await updater.update_status(TaskState.working, message, metadata={URI: {"kind": kind, "model": "bench"}})


async def _serve() -> None:
    listener = bind("127.0.0.1", 0)
    url = url_of(listener)
    card = AgentCard(
        name="peer",
        description="peer",
        version="1",
        url=url,
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="echo", description="echo", tags=["echo"])],
    )
    handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore())
    application = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
    server = uvicorn.Server(uvicorn.Config(application, log_level="error", access_log=False, lifespan="off"))
    probe.start(url)
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(_serve())
