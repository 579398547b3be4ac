"""A program of examples/agents/ as a process of its own, serving its agent."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from isthmus.a2a import RemoteAgent
from support.remote_agents import remote_agent

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "agents"
READY = "A2A server ready at "


@dataclass(frozen=True, slots=True)
class ExampleProgram:
    """An example that has reported that it is ready."""

    process: asyncio.subprocess.Process
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
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(EXAMPLES / f"{name}.py")),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            cwd=workspace,
            env={**os.environ, "XDG_DATA_HOME": str(folder), **(environment or {})},
        )
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().rstrip("\n")
        log_text = log_path.read_text(encoding="utf-8")
        assert line.startswith(READY), f"{line!r}; {log_text}"
        (token,) = (folder / "isthmus" / "agents").glob("*/serve-token")
        yield ExampleProgram(process, line.removeprefix(READY), token.read_text(encoding="utf-8").strip())
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
