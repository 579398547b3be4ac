"""A program: drives an MCP server with the official Python SDK, ``python -m support.mcp_client_program CALLS FOLDER
PROGRAM ARGUMENT...``; it does the same as ``peers/node/drive_mcp.mjs``, with other ``options``.

Also starts either program, for tests.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from support.isthmus_program import read_line
from support.programs import NODE_PEERS, node_package, require

CLIENTS = ("python", "typescript")
"""The clients that :func:`mcp_client` can start."""
_TESTS = Path(__file__).resolve().parent.parent


class McpClient:
    """A running client, which has a server that it has started."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def said(self) -> dict[str, Any]:
        """Return what it says next; fail if nothing comes, or if it has ended."""
        return json.loads(read_line(self.process, 60) or "{}")

    def result(self) -> tuple[list[str], list[str]]:
        """Return the texts of the next result, and the lines of progress before it; fail for an error."""
        progress: list[str] = []
        while "progress" in (said := self.said()):
            progress.append(said["progress"])
        assert said.get("isError") is False, said
        return said["result"], progress

    def kill(self) -> None:
        """Kill it, as ``kill -9`` does."""
        self.process.kill()
        self.process.wait(30)


@contextmanager
def mcp_client(kind: str, calls: Sequence[dict[str, Any]], folder: str, *program: str) -> Generator[McpClient]:
    """Start a client that makes these calls of a server; kill it afterwards if it still runs."""
    arguments = [json.dumps(calls), folder, *program]
    if kind == "typescript":
        node_package("@modelcontextprotocol/sdk")
        command = [str(require("node")), str(NODE_PEERS / "drive_mcp.mjs"), *arguments]
    else:
        command = [sys.executable, "-m", "support.mcp_client_program", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(_TESTS)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environment) as process:
        try:
            yield McpClient(process)
        finally:
            process.kill()


def _say(**value: Any) -> None:
    print(json.dumps(value), flush=True)


async def _drive(calls: Sequence[dict[str, Any]], folder: str, program: str, *arguments: str) -> None:
    server = StdioServerParameters(command=program, args=list(arguments), cwd=folder, env=dict(os.environ))

    async def note(progress: float, total: float | None, message: str | None) -> None:
        _say(progress=message)

    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        for call in calls:
            try:
                seconds: float | None = call["options"].get("read_timeout_seconds")
                result = await session.call_tool(
                    call["name"], call["arguments"], read_timeout_seconds=seconds, progress_callback=note
                )
                assert isinstance(result, types.CallToolResult)
                texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
                _say(result=texts, isError=bool(result.is_error))
            except Exception as error:
                _say(error=str(error), code=getattr(error, "code", None))
            if call.get("stay"):
                await asyncio.Event().wait()
    _say(closed=True)


if __name__ == "__main__":
    asyncio.run(_drive(json.loads(sys.argv[1]), *sys.argv[2:]))
