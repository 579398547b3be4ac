"""A client of ACP that shows every message, and the front before it in this process; no byte leaves memory.

Each message of the front is checked against the official schema.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from isthmus.acp.connection import AcpConnection
from isthmus.acp.front.place import FrontPlace
from isthmus.acp.front.server import FrontOptions, FrontServer
from isthmus.acp.front.wire_v1 import FrontWireV1
from isthmus.acp.v2.wire import FrontWireV2
from isthmus.client import AgentClient
from isthmus.fronts.task_stream import FrontTimeouts
from isthmus.programs.acp.place import LocalPlace
from support import acp_schema
from support.waiting import eventually_async

OPTIONS = FrontOptions("1.0", timeouts=FrontTimeouts(retry_seconds=0.01, return_seconds=0.02))
BOTH_VERSIONS = replace(OPTIONS, wires=(FrontWireV1(), FrontWireV2()))
ALLOW = {"outcome": {"outcome": "selected", "optionId": "proceed_once"}}
REJECT = {"outcome": {"outcome": "selected", "optionId": "cancel"}}
FROM_START = {"replayFrom": {"type": "start"}}
"""Member of a request of version 2 that loads a session."""
CANCELLED = {"outcome": {"outcome": "cancelled"}}


class RefusedError(Exception):
    """The front answered with an error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.code: int = error["code"]
        super().__init__(error["message"])


@dataclass(slots=True)
class FrontClient:
    """A client. ``messages`` are all that it received; ``answer`` is its answer to questions, None for none."""

    write: Callable[[bytes], Awaitable[None]]
    answer: Mapping[str, Any] | None = None
    version: int = 1
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    waiting: dict[int, tuple[str, "asyncio.Future[Any]"]] = field(
        default_factory=dict[int, "tuple[str, asyncio.Future[Any]]"]
    )
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    failure: AssertionError | None = None
    """Reason why nothing more is received: a message that does not fit the schema."""

    # --- what it received ---

    @property
    def updates(self) -> list[dict[str, Any]]:
        """All updates of sessions."""
        return [message["params"]["update"] for message in self.messages if message.get("method") == "session/update"]

    def of_kind(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the updates of some kinds."""
        return [update for update in self.updates if update["sessionUpdate"] in kinds]

    @property
    def last_status(self) -> str | None:
        """The last state of a tool call that an update told."""
        return next(
            (u["status"] for u in reversed(self.of_kind("tool_call", "tool_call_update")) if "status" in u), None
        )

    def text(self, kind: str = "agent_message_chunk") -> str:
        """Return the text of all chunks of a kind."""
        return "".join(update["content"]["text"] for update in self.of_kind(kind))

    @property
    def questions(self) -> list[dict[str, Any]]:
        """The requests of the front."""
        return [message for message in self.messages if "method" in message and "id" in message]

    @property
    def withdrawn(self) -> list[Any]:
        """The ids of requests that the front cancelled."""
        return [m["params"]["requestId"] for m in self.messages if m.get("method") == "$/cancel_request"]

    # --- what it sends ---

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        await self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def begin(self, method: str, **params: Any) -> "tuple[int, asyncio.Future[Any]]":
        """Send a request, and return its id and its future result."""
        if self.failure is not None:
            raise self.failure
        number = next(self.numbers)
        result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting[number] = (method, result)
        await self.send({"id": number, "method": method, "params": params})
        return number, result

    async def call(self, method: str, **params: Any) -> Any:
        """Return the result of a request.

        Raises:
            RefusedError: it is an error.
        """
        _, result = await self.begin(method, **params)
        return await asyncio.wait_for(result, 30)

    async def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        await self.send({"method": method, "params": params})

    async def new(self, cwd: Path) -> str:
        """Begin a session, and return its id."""
        return (await self.call("session/new", cwd=str(cwd), mcpServers=[]))["sessionId"]

    async def prompt(self, session: str, text: str) -> str:
        """Send a prompt, and return why its turn ended.

        Raises:
            RefusedError: it failed.
        """
        return (await asyncio.wait_for(await self.begin_prompt(session, text), 30))["stopReason"]

    async def begin_prompt(self, session: str, text: str) -> "asyncio.Future[Any]":
        """Send a prompt, and return the future with the ``stopReason`` of its turn, or with the error that ended it."""
        _, result = await self.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
        return result if self.version == 1 else asyncio.ensure_future(self._end_of_turn(session, result))

    async def load(self, session: str, cwd: Path) -> Any:
        """Load a session."""
        method, more = ("session/load", {}) if self.version == 1 else ("session/resume", FROM_START)
        return await self.call(method, sessionId=session, cwd=str(cwd), mcpServers=[], **more)

    async def _end_of_turn(self, session: str, accepted: "asyncio.Future[Any]") -> Any:
        """Return the end of a prompt's turn in version 2, where the response to the prompt does not have it."""
        message_id = (await accepted)["messageId"]

        def ended() -> Mapping[str, Any] | None:
            told = [message["params"] for message in self.messages if message.get("method") == "session/update"]
            updates = [params["update"] for params in told if params["sessionId"] == session]
            begun = [index for index, update in enumerate(updates) if update.get("messageId") == message_id]
            later = updates[begun[0] :] if begun else ()
            return next((update for update in later if update.get("state") == "idle"), None)

        end: Mapping[str, Any] = await eventually_async(ended, 60, what="the end of a turn") or {}
        if end["stopReason"] == "error":
            raise RefusedError(end["error"])
        return end

    async def question(self, index: int = 0) -> dict[str, Any]:
        """Return a request of the front as soon as it has come."""
        await eventually_async(lambda: len(self.questions) > index, what=f"question {index}")
        return self.questions[index]

    async def respond(self, question: Mapping[str, Any], result: object) -> None:
        """Answer a request of the front."""
        await self.send({"id": question["id"], "result": result})

    # --- what the front writes ---

    def fail(self, failure: AssertionError) -> None:
        """End all requests, since nothing more is received."""
        self.failure = failure
        for _, result in self.waiting.values():
            if not result.done():
                result.set_exception(failure)

    async def receive(self, line: bytes) -> None:
        """Take a line of the front."""
        assert line.endswith(b"\n")
        message: dict[str, Any] = json.loads(line)
        self.messages.append(message)
        number = message.get("id")
        if "method" in message:
            acp_schema.check_message(message, version=self.version)
            if "id" in message and self.answer is not None:
                await self.respond(message, self.answer)
            return
        method, result = self.waiting.pop(number, ("", None)) if isinstance(number, int) else ("", None)
        if result is None:
            return  # an error without an id, or of a request that the test wrote by itself
        try:
            acp_schema.check_message(message, method, self.version)
        except AssertionError as error:
            result.set_exception(error)
            return
        if result.cancelled():
            return
        if "error" in message:
            result.set_exception(RefusedError(message["error"]))
        else:
            result.set_result(message["result"])


_OPEN: set[int] = set()
"""Fronts that are open in this process."""


@asynccontextmanager
async def front(
    agent: AgentClient,
    *,
    answer: Mapping[str, Any] | None = None,
    options: FrontOptions = OPTIONS,
    place: FrontPlace | None = None,
    name: str = "editor",
    capabilities: Mapping[str, Any] | None = None,
    version: int = 1,
) -> AsyncGenerator[FrontClient]:
    """Serve an agent to a client that has said hello; at the end of the last front nothing of them may be left."""
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    client = FrontClient(chunks.put, answer, version)
    server = FrontServer(agent, place or LocalPlace({}), options)
    _OPEN.add(id(server))
    connection = AcpConnection(server, client.receive)
    server.attach(connection)
    reading = asyncio.create_task(connection.read(_until_empty(chunks)), name="reading of the front")
    try:
        info, able = ("clientInfo", "clientCapabilities") if version == 1 else ("info", "capabilities")
        about = {info: {"name": name, "version": "1"}, able: capabilities or {}}
        await client.call("initialize", protocolVersion=version, **about)
        yield client
    finally:
        await chunks.put(b"")
        await asyncio.wait_for(reading, 30)
        await server.aclose()
        for _, result in client.waiting.values():
            result.cancel()
        _OPEN.discard(id(server))
    if not _OPEN:
        await eventually_async(nothing_runs, 5)


def nothing_runs() -> bool:
    """Fail if a task of a front has not ended."""
    left = running_tasks()
    assert left == [], left
    return True


def running_tasks() -> list[str]:
    """Return the names of the tasks of fronts that have not ended."""
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("ACP ")]


async def _until_empty(chunks: "asyncio.Queue[bytes]") -> AsyncIterator[bytes]:
    while chunk := await chunks.get():
        yield chunk
