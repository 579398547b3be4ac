"""Serves the agent as an MCP server on two streams: ``isthmus mcp serve``.

The tools for tasks are in :mod:`isthmus.programs.mcp.tasks`, those for the user's editor in
:mod:`isthmus.programs.mcp.editor_tools`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from isthmus import __version__
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import JsonError, decode_any_text
from isthmus.engine import Engine
from isthmus.errors import IsthmusError
from isthmus.ide.mcp.mcp_peer import CallTool, CallToolResult, CancelCall, McpPeer, Reply
from isthmus.programs.mcp.editor_tools import EDITOR_TOOLS, EditorTools
from isthmus.programs.mcp.progress import BEAT_SECONDS, ClientProgress
from isthmus.programs.mcp.questions import ClientQuestions
from isthmus.programs.mcp.tasks import TASK_TOOLS, ClientCall, TaskTools
from isthmus.rpc import messages as rpc
from isthmus.rpc.json_lines import LineFraming


@dataclass(slots=True)
class _Running:
    """A call and what runs it."""

    call: ClientCall
    work: asyncio.Task[None]


class AgentMcpServer:
    """The server side of one connection. ``write`` sends bytes; ``settings`` hold for each task's session.

    Without ``editor_tools`` it has only the tools for tasks. ``beat_seconds`` is as in
    :class:`~isthmus.programs.mcp.progress.ClientProgress`.
    """

    def __init__(
        self,
        engine: Engine,
        settings: JsonObject,
        write: Callable[[bytes], Awaitable[None]],
        editor_tools: EditorTools | None = None,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        self._editor_tools = editor_tools
        self._write = write
        self._beat_seconds = beat_seconds
        self._framing = LineFraming()
        # Listed even without an editor, which may come later: many clients read the list only once.
        tools = TASK_TOOLS if editor_tools is None else (*TASK_TOOLS, *EDITOR_TOOLS)
        self._peer = McpPeer("isthmus", __version__, tools)
        self._questions = ClientQuestions(self.send)
        self._tasks = TaskTools(engine, settings, self._questions)
        self._running: dict[rpc.RequestId, _Running] = {}

    async def serve(self, chunks: AsyncIterator[bytes]) -> None:
        """Serve until the input ends; then end the calls. Tasks that were started go on."""
        try:
            async for data in chunks:
                for line in self._framing.feed(data):
                    if isinstance(line, bytes):
                        await self._receive(line)
                    else:
                        await self.send(rpc.error_response(None, line.code, line.text))
        finally:
            running = list(self._running.values())
            for one in running:
                if not one.work.cancelling():  # the client has cancelled the others, which must not be broken off
                    one.call.is_abandoned = True
                    one.work.cancel()
            await asyncio.gather(*(one.work for one in running), return_exceptions=True)

    async def send(self, message: JsonObject) -> None:
        """Send a message to the client."""
        await self._write(self._framing.frame(message))

    async def _receive(self, line: bytes) -> None:
        if self._took_response(line):
            return
        match self._peer.receive(line):
            case Reply(message):
                await self.send(message)
            case CallTool() as call:
                if self._peer.client is not None:
                    self._tasks.client_name = self._peer.client.title
                made = ClientCall(ClientProgress(self.send, call.progress_token, self._beat_seconds))
                self._running[call.request_id] = _Running(made, asyncio.create_task(self._run(call, made)))
            case CancelCall(request_id) if request_id in self._running:
                self._running[request_id].work.cancel()
            case _:
                pass

    def _took_response(self, line: bytes) -> bool:
        """Take a response to an elicitation, and see in initialize whether the client has them."""
        try:
            value: object = decode_any_text(line)
        except JsonError:
            return False
        if not isinstance(value, dict):
            return False
        message = cast("dict[str, Any]", value)
        if message.get("method") == "initialize" and self._peer.client is None:
            self._questions.initialized(message.get("params"))
        return self._questions.took(message)

    async def _run(self, call: CallTool, made: ClientCall) -> None:
        try:
            if self._editor_tools is None or call.name in {tool.name for tool in TASK_TOOLS}:
                result = await self._tasks.call(call.name, call.arguments, made)
            else:
                result = await self._editor_tools.call(call.name, call.arguments, made.progress.say)
        except IsthmusError as error:
            result = CallToolResult.error(str(error))
        finally:
            self._running.pop(call.request_id, None)
        if (message := self._peer.finish(call.request_id, result)) is not None:
            with contextlib.suppress(OSError):
                await self.send(message)
