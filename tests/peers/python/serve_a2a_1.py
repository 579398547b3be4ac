"""A plain agent on a2a-sdk 1.x: ``serve_a2a_1 BINDING [--no-streaming]`` prints its URL (JSONRPC or HTTP+JSON).

It asks "hello" who it is, answers "message" with a Message alone, refuses "fail", waits at "wait", and greets everybody
else in an artifact. It runs in the environment of ``bench/peers.txt``, where pyright does not look.
"""

import asyncio
import socket
import sys

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TaskState
from starlette.applications import Starlette


class Greeter(AgentExecutor):
    """An agent that asks, replies or fails by the text of the message."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Reply to the message."""
        said = context.get_user_input()
        if said == "message":
            await event_queue.enqueue_event(new_text_message("Just words.", context_id=context.context_id))
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.update_status(
            TaskState.TASK_STATE_WORKING, updater.new_agent_message([new_text_part("Let me see. ")])
        )
        if said == "hello":
            await updater.requires_input(updater.new_agent_message([new_text_part("Who are you?")]))
        elif said == "fail":
            await updater.failed(updater.new_agent_message([new_text_part("I cannot.")]))
        elif said == "wait":
            await asyncio.Event().wait()  # until it is cancelled
        else:
            await updater.add_artifact([new_text_part(f"Hello {said}")], artifact_id="greeting", append=False)
            await updater.add_artifact([Part(text="!")], artifact_id="greeting", append=True, last_chunk=True)
            await updater.complete(updater.new_agent_message([new_text_part("There you are.")]))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancel the task."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def _serve(binding: str, streaming: bool) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    card = AgentCard(
        name="Greeter",
        description="Greets",
        version="1",
        supported_interfaces=[AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="greet", name="greet", description="greet", tags=["greet"])],
    )
    handler = DefaultRequestHandler(agent_executor=Greeter(), task_store=InMemoryTaskStore(), agent_card=card)
    spoken = create_jsonrpc_routes(handler, "/") if binding == "JSONRPC" else create_rest_routes(handler)
    application = Starlette(routes=[*create_agent_card_routes(card), *spoken])
    server = uvicorn.Server(uvicorn.Config(application, log_level="error", access_log=False, lifespan="off"))
    print(url, flush=True)
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], "--no-streaming" not in sys.argv))
