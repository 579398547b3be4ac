"""Our A2A server and engine on a real journal, with an agent of negligible cost.

``isthmus_a2a`` keeps tasks in an SQLite file, ``isthmus_a2a URL`` in that PostgreSQL database.

A prompt ``stream N`` is answered with N thoughts, ``ask`` with a question, and ``hold`` never; any other prompt is
repeated in one text, as the peers do.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from bench.load import TOKEN
from bench.programs import probe
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.server.application import application
from isthmus.a2a.server.listen import A2AServer, bind
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import AgentThought
from isthmus.engine import Engine, EngineOptions
from isthmus.events import StateChange, TaskState, TextContent, Thought
from isthmus.journal.opening import open_journal
from isthmus.models.port.base import Text
from support.agents import AskingAgent, reply


class BenchAgent:
    """An agent that behaves as the prompt asks."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        """Emit a text, and complete the task."""
        session = turn.session
        prompt = "".join(part.text for part in session.messages[-1].parts if isinstance(part, Text))
        if session.calls or prompt.startswith("ask"):
            return await AskingAgent().advance(turn)
        await turn.emit(StateChange(TaskState.WORKING))
        if prompt == "hold":
            await asyncio.Event().wait()
        if not prompt.startswith("stream "):
            await turn.emit(TextContent("m", prompt), reply("m", Text(prompt)))
            return StateChange(TaskState.COMPLETED)
        for number in range(int(prompt.split()[1])):
            await turn.emit(Thought(AgentThought(f"Step {number}", "Looking at the next file of the workspace.")))
        return StateChange(TaskState.COMPLETED)


async def _serve(folder: Path, url: str) -> None:
    journal = await open_journal(folder / "journal.sqlite", url)
    engine = Engine(BenchAgent(), journal, EngineOptions(model_name=lambda: "bench"))
    await engine.start()
    server = A2AServer(application(engine, ServerOptions(TOKEN)), bind("127.0.0.1", 0))
    probe.start(server.url)
    await server.run_until_stopped()
    await engine.aclose()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as data:
        sys.exit(asyncio.run(_serve(Path(data), sys.argv[1] if len(sys.argv) > 1 else "")))
