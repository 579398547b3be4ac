"""A minimal server of a2a-sdk 1.x that serves A2A 0.3 by its adapter; its tasks have the same events as ours.

``sdk_a2a_1`` keeps tasks in memory, ``sdk_a2a_1 FILE`` in that SQLite database, ``sdk_a2a_1 URL`` in that PostgreSQL
database as one of several processes (``a2a.server.cluster``), all with the SDK's defaults. It runs in the virtual
environment of ``bench/peers.txt``, not in the checkout's, because the two versions of the SDK exclude each other.
Therefore pyright does not check it, and no other module may import it.
"""

import asyncio
import socket
import sys
from typing import Any

import uvicorn
from a2a.helpers import new_data_part, new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.cluster import DatabaseTaskEventStream, VersionedDatabaseTaskStore
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import DatabaseTaskStore, InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TaskState
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette

from bench.programs import probe
from isthmus.a2a.protocol.extension import URI


class Executor(AgentExecutor):
    """Executor that answers ``stream N`` with N thoughts, ``words N SECONDS`` with a word at a time, ``hold`` never.

    It repeats any other prompt.
    """

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answer with a text, and complete the task."""
        assert context.message is not None
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        prompt = context.get_user_input()
        if prompt == "hold":
            await asyncio.Event().wait()
        if prompt.startswith("words "):
            _, count, seconds = prompt.split()
            for number in range(int(count)):
                await asyncio.sleep(float(seconds))
                await self._say(updater, new_text_part(f"word{number} "), "TEXT_CONTENT")
        elif prompt.startswith("stream "):
            for number in range(int(prompt.split()[1])):
                thought = {"subject": f"Step {number}", "description": "Looking at the next file of the workspace."}
                await self._say(updater, new_data_part(thought), "THOUGHT")
        else:
            await self._say(updater, new_text_part(prompt), "TEXT_CONTENT")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Raise NotImplementedError: no benchmark cancels."""
        raise NotImplementedError

    async def _say(self, updater: TaskUpdater, part: Part, kind: str) -> None:
        message = updater.new_agent_message([part])
        metadata = {URI: {"kind": kind, "model": "bench"}}
        await updater.update_status(TaskState.TASK_STATE_WORKING, message, metadata=metadata)


async def _stores(database: str | None) -> dict[str, Any]:
    """Return the options of the handler that say where tasks are kept."""
    if database is None:
        return {"task_store": InMemoryTaskStore()}
    if not database.startswith("postgresql://"):
        store = DatabaseTaskStore(create_async_engine(f"sqlite+aiosqlite:///{database}"))
        await store.initialize()
        return {"task_store": store}
    engine = create_async_engine(database.replace("postgresql://", "postgresql+asyncpg://"))
    versioned, stream = VersionedDatabaseTaskStore(engine), DatabaseTaskEventStream(engine)
    await versioned.initialize()
    await stream.initialize()
    return {"task_store": versioned, "event_stream": stream}


def _listener() -> socket.socket:
    # With an explicit protocol asyncio sets TCP_NODELAY on accepted connections, as it does for our server.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


async def _serve(database: str | None) -> None:
    listener = _listener()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="peer",
        description="peer",
        version="1",
        supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="0.3")],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="echo", description="echo", tags=["echo"])],
    )
    handler = DefaultRequestHandler(agent_executor=Executor(), agent_card=card, **await _stores(database))
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True)]
    application = Starlette(routes=routes)
    server = uvicorn.Server(uvicorn.Config(application, log_level="error", access_log=False, lifespan="off"))
    probe.start(url)
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1] if len(sys.argv) > 1 else None))
