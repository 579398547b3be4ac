"""Our A2A server and engine, over a real SQLite journal, with an agent that costs nothing itself.

A prompt ``stream N`` is answered with N thoughts, ``ask`` with a question, ``hold`` never; every other one with its own
words.
"""

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

from bench.load import TOKEN
from bench.programs import probe
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.server.application import application
from isthmus.a2a.server.listen import Server, bind
from isthmus.agent.session import Session
from isthmus.development_tool import AgentThought
from isthmus.engine import Engine, EngineOptions
from isthmus.events import AgentEvent, StateChange, TaskState, Thought
from isthmus.journal.sqlite import SqliteJournal
from isthmus.models.base import Text
from support.agents import AskingAgent, EchoAgent


class BenchAgent:
    """One of four, by the words of the prompt."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """Implements the engine's Agent port."""
        prompt = "".join(part.text for part in session.messages[-1].parts if isinstance(part, Text))
        if prompt.startswith("stream "):
            events = self._stream(session, int(prompt.split()[1]))
        elif prompt == "hold":
            events = self._hold(session)
        elif session.calls or prompt.startswith("ask"):
            events = AskingAgent().run(session)
        else:
            events = EchoAgent().run(session)
        async with contextlib.aclosing(events):
            async for event in events:
                yield event

    async def _hold(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        yield session.apply(StateChange(TaskState.WORKING))
        await asyncio.Event().wait()

    async def _stream(self, session: Session, count: int) -> AsyncGenerator[AgentEvent, None]:
        yield session.apply(StateChange(TaskState.WORKING))
        for number in range(count):
            yield session.apply(Thought(AgentThought(f"Step {number}", "Looking at the next file of the workspace.")))
        yield session.apply(StateChange(TaskState.COMPLETED))


async def _serve(folder: Path) -> None:
    journal = await SqliteJournal.open(folder / "journal.sqlite")
    engine = Engine(BenchAgent(), journal, EngineOptions(model_name=lambda: "bench"))
    await engine.start()
    server = Server(application(engine, ServerOptions(TOKEN)), bind("127.0.0.1", 0))
    probe.start(server.url)
    await server.run_until_stopped()
    await engine.aclose()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as data:
        sys.exit(asyncio.run(_serve(Path(data))))
