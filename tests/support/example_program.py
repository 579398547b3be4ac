"""A program of examples/agents/ as a process of its own, serving its agent."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from isthmus.a2a import RemoteAgent
from support.loaded_program import LoadedProgram, shared_program
from support.remote_agents import remote_agent
from support.streamed_program import StreamedProgram, streamed_program

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "agents"
READY = "A2A server ready at "
_HOSTING = ("isthmus.a2a.serving.listening", "isthmus.a2a.serving.application", "isthmus.journal.sqlite")
_MODULES = {
    "langchain": ("langchain.agents", "isthmus.a2a.frameworks.langgraph_host", *_HOSTING),
    "langgraph": ("langgraph.graph", "openai", "isthmus.a2a.frameworks.langgraph_host", *_HOSTING),
    "pydantic": ("pydantic_ai.models.function", "isthmus.a2a.frameworks.pydantic_ai_host", *_HOSTING),
}
"""Modules that an agent of a framework needs, and that import most of the others."""


def loaded_for(agent: str, python: str = sys.executable, path: str = "") -> LoadedProgram:
    """Return the process whose copies serve an agent: its name begins with its framework, if it has one."""
    modules = next((found for framework, found in _MODULES.items() if agent.startswith(framework)), None)
    return shared_program() if modules is None else shared_program(python, *modules, path=path)


@dataclass(frozen=True, slots=True)
class ExampleProgram:
    """An example that has reported that it is ready."""

    process: StreamedProgram
    url: str
    token: str

    def client(self) -> AbstractAsyncContextManager[RemoteAgent]:
        """Return a client of it."""
        return remote_agent(self.url, self.token)

    async def kill(self) -> None:
        """Kill the process, as ``kill -9`` does."""
        self.process.kill()
        await asyncio.wait_for(self.process.wait(), 60)


@asynccontextmanager
async def example_program(
    name: str, folder: Path, workspace: Path, environment: Mapping[str, str] | None = None
) -> AsyncGenerator[ExampleProgram]:
    """Run ``examples/agents/NAME.py`` in ``workspace`` with its data in ``folder``; it is killed afterwards."""
    log_path = folder / f"{name}.log"
    with log_path.open("ab") as log:
        running = streamed_program(
            folder=workspace,
            errors=log.fileno(),
            environment={**os.environ, "XDG_DATA_HOME": str(folder), **(environment or {})},
            program=str(EXAMPLES / f"{name}.py"),
            loaded=loaded_for(name),
            has_input=False,
        )
        async with running as process:
            line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().rstrip("\n")
            log_text = log_path.read_text(encoding="utf-8")
            assert line.startswith(READY), f"{line!r}; {log_text}"
            (token,) = (folder / "isthmus" / "agents").glob("*/serve-token")
            yield ExampleProgram(process, line.removeprefix(READY), token.read_text(encoding="utf-8").strip())
