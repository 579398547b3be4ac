"""A companion in this process, over a real socket, and agents that attach to it: the MCP SDK client, and bare HTTP."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import mcp
from mcp.client import ClientExtension, NotificationBinding
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation, NotificationParams
from pydantic import ConfigDict

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.discovery.protocols import IDE_PROTOCOLS
from isthmus.ide.editor import Editor
from isthmus.ide.ide_protocol import IdeProtocol
from isthmus.ide.options import CompanionLimits, CompanionOptions
from isthmus.ide.running.host import CompanionHost, Ready
from support.editor_deadlines import PATIENT_LIMITS
from support.plain_http import plain_client
from support.waiting import eventually_async

REAL_CLIENT = "streamable-http-client"
"""``clientInfo.name`` of the real Gemini CLI."""
_METHODS = ("ide/contextUpdate", "ide/diffAccepted", "ide/diffRejected")


@dataclass(slots=True)
class RunningCompanion:
    """A companion that listens. `end` stops it as a signal does."""

    editor: HeadlessEditor
    host: CompanionHost
    ready: Ready
    task: "asyncio.Task[None]"

    @property
    def url(self) -> str:
        """The URL that agents attach to."""
        return f"http://127.0.0.1:{self.ready.port}/mcp"

    @property
    def discovered(self) -> dict[str, Any]:
        """The content of the discovery file."""
        return json.loads(Path(self.ready.discovery_file).read_text(encoding="utf-8"))

    @property
    def token(self) -> str:
        """The agents' token."""
        return self.discovered["authToken"]

    async def end(self) -> None:
        """Stop, and wait until it has ended."""
        self.host.stop()
        await asyncio.wait_for(self.task, 30)


@asynccontextmanager
async def running_companion(
    workspace: Path,
    *,
    fresh: bool = False,
    allow_agent_accept: bool = False,
    limits: CompanionLimits = PATIENT_LIMITS,
) -> AsyncGenerator[RunningCompanion]:
    """Run a companion with the headless editor on `workspace`."""
    editor = HeadlessEditor((str(workspace),))
    options = CompanionOptions(fresh=fresh, allow_agent_accept=allow_agent_accept)
    async with running_host(editor, options, limits) as (host, ready, task):
        yield RunningCompanion(editor, host, ready, task)


@asynccontextmanager
async def running_host(
    editor: Editor,
    options: CompanionOptions,
    limits: CompanionLimits = PATIENT_LIMITS,
    protocols: Sequence[IdeProtocol] = IDE_PROTOCOLS,
) -> "AsyncGenerator[tuple[CompanionHost, Ready, asyncio.Task[None]]]":
    """Run a companion with any editor; it is stopped at the end."""
    host = CompanionHost(editor, options, limits, protocols)
    ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(host.run(ready.set_result))
    await asyncio.wait({task, ready}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        yield host, ready.result(), task
    finally:
        host.stop()
        await asyncio.wait_for(task, 30)


class _Params(NotificationParams):
    model_config = ConfigDict(extra="allow")


@dataclass(slots=True)
class Agent:
    """An agent CLI as the MCP SDK makes it; `received` holds the notifications in the order they came."""

    client: mcp.Client
    received: list[tuple[str, dict[str, Any]]] = field(default_factory=list[tuple[str, dict[str, Any]]])

    async def open_diff(self, path: Path, new_content: str) -> mcp.types.CallToolResult:
        """Call openDiff as the companion protocol defines it."""
        return await self.client.call_tool("openDiff", {"filePath": str(path), "newContent": new_content})

    async def close_diff(self, path: Path, **more: object) -> mcp.types.CallToolResult:
        """Call closeDiff as the companion protocol defines it; `more` has arguments that real clients add."""
        return await self.client.call_tool("closeDiff", {"filePath": str(path), **more})

    def named(self, method: str) -> list[dict[str, Any]]:
        """Return the params of the notifications of one method."""
        return [params for name, params in self.received if name == method]

    async def notified(self, method: str, count: int = 1) -> dict[str, Any]:
        """Wait for the notification number `count` of a method, and return it."""
        await eventually_async(lambda: len(self.named(method)) >= count, what=f"{count} x {method}")
        return self.named(method)[count - 1]

    async def sees(self, **file: object) -> dict[str, Any]:
        """Wait until the newest context has an active file with these members, and return the context."""

        def newest() -> dict[str, Any] | None:
            contexts = self.named("ide/contextUpdate")
            files: list[dict[str, Any]] = contexts[-1]["workspaceState"]["openFiles"] if contexts else []
            return contexts[-1] if files and file.items() <= files[0].items() else None

        found = await eventually_async(newest, what=f"a context with {file}")
        assert found is not None
        return found


@asynccontextmanager
async def attached_agent(url: str, token: str, name: str = "an agent of the document") -> AsyncGenerator[Agent]:
    """Attach the MCP SDK's client; its notification stream is open."""
    received: list[tuple[str, dict[str, Any]]] = []

    def binding(method: str) -> NotificationBinding[_Params]:
        async def note(params: _Params) -> None:
            received.append((method, params.model_dump(by_alias=True, exclude={"meta"})))

        return NotificationBinding(method=method, params_type=_Params, handler=note)

    class Ide(ClientExtension):
        identifier = "org.example/ide"

        def notifications(self) -> list[NotificationBinding[_Params]]:
            return [binding(method) for method in _METHODS]

    headers = {"authorization": f"Bearer {token}"}
    async with plain_client(headers=headers) as http:
        transport = streamable_http_client(url, http_client=http)
        info = Implementation(name=name, version="1")
        async with mcp.Client(transport, mode="legacy", client_info=info, extensions=[Ide()]) as client:
            agent = Agent(client, received)
            await agent.notified("ide/contextUpdate")
            yield agent


@dataclass(slots=True)
class BareAgent:
    """An agent that sends HTTP by hand, for what a library would hide."""

    http: httpx2.AsyncClient
    session: dict[str, str] = field(default_factory=dict[str, str])

    async def post(self, message: object, **headers: str) -> httpx2.Response:
        """POST one message as JSON, or raw bytes."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.http.post(
            "/mcp",
            content=body,
            headers={
                "content-type": "application/json",
                **self.session,
                **{k.replace("_", "-"): v for k, v in headers.items()},
            },
        )

    async def request(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
        """Send one request and return the whole response object."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        return (await self.post(message, **headers)).json()

    async def initialize(self, version: str = "2025-06-18", name: str = REAL_CLIENT) -> dict[str, Any]:
        """Initialize as the real CLI does and keep the session id."""
        response = await self.post(
            {
                "method": "initialize",
                "params": {
                    "protocolVersion": version,
                    "capabilities": {},
                    "clientInfo": {"name": name, "version": "0.61.0"},
                },
                "jsonrpc": "2.0",
                "id": 0,
            }
        )
        self.session = {"mcp-session-id": response.headers["mcp-session-id"]}
        accepted = await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert accepted.status_code == 202
        return response.json()

    @asynccontextmanager
    async def stream(self, last_event_id: str | None = None) -> AsyncGenerator["EventStream"]:
        """Open the notification stream."""
        headers = {"accept": "text/event-stream", **self.session}
        if last_event_id is not None:
            headers["last-event-id"] = last_event_id
        async with self.http.stream("GET", "/mcp", headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield EventStream(response)


class EventStream:
    """The events of one stream, one at a time."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> tuple[str, dict[str, Any]]:
        """Return the next event: its id and its message. Raises StopAsyncIteration if the stream ends properly."""
        return await _within(self._next())

    async def until(self, method: str) -> tuple[str, dict[str, Any]]:
        """Return the next event of a method."""
        while True:
            event = await self.next()
            if event[1]["method"] == method:
                return event

    async def ended(self) -> None:
        """Read to the end; raises an error if the stream breaks off."""

        async def read() -> None:
            async for _ in self._lines:
                pass

        await _within(read())

    async def _next(self) -> tuple[str, dict[str, Any]]:
        event_id = ""
        async for line in self._lines:
            if line.startswith("id: "):
                event_id = line[4:]
            elif line.startswith("data: "):
                return event_id, json.loads(line[6:])
        raise StopAsyncIteration


async def _within(waiting: "Awaitable[Any]", seconds: float = 30) -> Any:
    async with asyncio.timeout(seconds):
        return await waiting


@asynccontextmanager
async def bare_agent(companion: RunningCompanion, token: str | None = None) -> AsyncGenerator[BareAgent]:
    """Yield a bare HTTP client with the companion's token, or with another one."""
    headers = {"authorization": f"Bearer {companion.token if token is None else token}"}
    base = f"http://127.0.0.1:{companion.ready.port}"
    async with plain_client(base_url=base, headers=headers) as http:
        yield BareAgent(http)
