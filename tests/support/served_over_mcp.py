"""The program ``isthmus mcp serve`` with the official Python client of MCP."""

import inspect
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from support.isthmus_program import ISTHMUS


@asynccontextmanager
async def served(
    folder: Path,
    script: str,
    *options: str,
    asked: Callable[[types.ElicitRequestParams], Any] | None = None,
) -> AsyncGenerator[ClientSession]:
    """Start the program with a scripted model, and yield a connected client; ``asked`` answers for its user, or waits.

    Without the option ``--ide`` it uses no editor.
    """
    command = [*ISTHMUS, "mcp", "serve", "--no-ide", "-m", script, *options]
    server = StdioServerParameters(command=command[0], args=command[1:], cwd=folder, env=dict(os.environ))

    async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert asked is not None
        assert context is not None
        answered = asked(params)
        return await answered if inspect.isawaitable(answered) else answered

    async with (
        stdio_client(server) as (reading, writing),
        ClientSession(reading, writing, elicitation_callback=None if asked is None else answer) as session,
    ):
        await session.initialize()
        yield session
