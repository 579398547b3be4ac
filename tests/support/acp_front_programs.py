"""``isthmus acp --connect`` in either version of the protocol, and its server at a port of its own, to be killed."""

from asyncio import Future
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from support.acp_wire import AcpProgram, acp_program
from support.ports import free_port
from support.serve_program import ServeProgram, serve_program

HELLO: Mapping[int, Mapping[str, Any]] = {
    1: {"protocolVersion": 1, "clientCapabilities": {}},
    2: {"protocolVersion": 2, "info": {"name": "test", "version": "1"}, "capabilities": {}},
}


class Programs:
    """A server at one port, which can be started again, and clients of it."""

    def __init__(self, folder: Path, workspace: Path, stack: AsyncExitStack) -> None:
        self._folder = folder
        self.workspace = workspace
        self._stack = stack
        self._port = str(free_port())
        self.url = f"http://127.0.0.1:{self._port}/"

    async def server(self) -> ServeProgram:
        """Start the server, again if it was killed."""
        return await self._stack.enter_async_context(serve_program(self._folder, self.workspace, "--port", self._port))

    async def client(self, version: int = 1) -> AcpProgram:
        """Start a client of a version."""
        token_file = str(self._folder / "token")
        more = () if version == 1 else ("--draft-v2",)
        program = acp_program(self.workspace, "--connect", self.url, "--token-file", token_file, *more)
        client = await self._stack.enter_async_context(program)
        assert (await client.request("initialize", **HELLO[version]))["result"]["protocolVersion"] == version
        return client

    async def begun(self, client: AcpProgram) -> tuple[str, Future[dict[str, Any]]]:
        """Begin a session with a prompt that leads to a question; return its id and the prompt's response to come."""
        opened = await client.request("session/new", cwd=str(self.workspace), mcpServers=[])
        session_id = opened["result"]["sessionId"]
        prompt = [{"type": "text", "text": "greet me"}]
        return session_id, client.begin("session/prompt", sessionId=session_id, prompt=prompt)

    async def asked(self, client: AcpProgram) -> tuple[str, Future[dict[str, Any]]]:
        """Do the same, and return when the question is asked."""
        begun = await self.begun(client)
        await client.question()
        return begun

    async def load(self, client: AcpProgram, session_id: str, version: int = 1) -> dict[str, Any]:
        """Load a session, with its past."""
        about: dict[str, Any] = {"sessionId": session_id, "cwd": str(self.workspace), "mcpServers": []}
        if version == 1:
            return await client.request("session/load", **about)
        return await client.request("session/resume", **about, replayFrom={"type": "start"})
