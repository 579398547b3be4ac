"""A strict client: Claude Code (2.1.197) as observed at its IDE connection, without the model and the terminal.

It sends what the real CLI sends, in its order, and accepts only what the real CLI accepts: anything else
fails the test here. It finds the companion as the real one does, and removes lock files that it considers stale.
"""

import asyncio
import contextlib
import itertools
import json
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Subprotocol

from support.waiting import eventually_async

AUTHORIZATION = "X-Claude-Code-Ide-Authorization"
USER_AGENT = "claude-code/2.1.197 (cli)"
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
RECONNECT_SECONDS = (0.0, 1.0, 2.0, 4.0, 8.0)
ANSWER_SECONDS = 30.0
CLIENT_INFO = {
    "name": "claude-code",
    "title": "Claude Code",
    "version": "2.1.197",
    "description": "Anthropic's agentic coding tool",
    "websiteUrl": "https://claude.com/claude-code",
}


class CallError(Exception):
    """A JSON-RPC error came for a call, or the connection closed (code -32000)."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(f"{code}: {message}")


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock file that the CLI may use."""

    port: int
    folders: tuple[str, ...]
    token: str | None
    name: str

    def holds(self, folder: Path) -> bool:
        """Return whether the CLI, started in `folder`, takes this as the IDE of that folder."""
        return any(folder.is_relative_to(Path(workspace)) for workspace in self.folders)


def locks(environment: Mapping[str, str] = os.environ) -> tuple[Lock, ...]:
    """Return the announced IDEs; remove stale files first, as the real CLI does when it starts."""
    homes = [Path(environment["HOME"]) / ".claude"]
    if environment.get("CLAUDE_CONFIG_DIR"):
        homes.insert(0, Path(environment["CLAUDE_CONFIG_DIR"]))
    found: list[Lock] = []
    for path in [path for home in homes for path in sorted((home / "ide").glob("*.lock"))]:
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            os.kill(value["pid"], 0)
        except FileNotFoundError:  # its IDE ended meanwhile
            continue
        except (ValueError, KeyError, TypeError, ProcessLookupError):
            path.unlink(missing_ok=True)
            continue
        assert value["transport"] == "ws"
        found.append(Lock(int(path.stem), tuple(value["workspaceFolders"]), value.get("authToken"), value["ideName"]))
    return tuple(found)


def choose(folder: Path, environment: Mapping[str, str] = os.environ) -> Lock | None:
    """Return the IDE that `claude --ide` connects to: the port of the environment, else the only one that fits."""
    announced = locks(environment)
    named = environment.get("CLAUDE_CODE_SSE_PORT")
    if named:
        return next((lock for lock in announced if lock.port == int(named)), Lock(int(named), (), None, "IDE"))
    fitting = [lock for lock in announced if lock.holds(folder)]
    return fitting[0] if len(fitting) == 1 else None


@dataclass(frozen=True, slots=True)
class Edit:
    """The result of an edit: `outcome` is written, rejected or declined (in the terminal), `text` the written text."""

    outcome: str
    text: str = ""
    is_modified: bool = False


@dataclass(slots=True)
class ClaudeCli:
    """One CLI; :func:`claude_cli` makes it."""

    lock: Lock
    received: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The notifications, in the order they came."""
    connections: int = 0
    close_code: int | None = None
    gave_up: bool = False
    diagnostics: str = "[]"
    """Result of getDiagnostics at the beginning of the turn."""
    _connection: ClientConnection | None = None
    _ids: "itertools.count[int]" = field(default_factory=itertools.count)
    _pending: dict[int, "asyncio.Future[dict[str, Any]]"] = field(default_factory=dict[int, Any])
    _reader: "asyncio.Task[None] | None" = None
    _turns: int = 0
    _tabs: "itertools.count[int]" = field(default_factory=lambda: itertools.count(0xAAA000))
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    initialized: dict[str, Any] = field(default_factory=dict[str, Any])

    # The connection.

    async def connect(self) -> None:
        """Connect and initialize; raises the error of a refused handshake."""
        headers = {AUTHORIZATION: self.lock.token} if self.lock.token is not None else {}
        self._connection = await connect(
            f"ws://127.0.0.1:{self.lock.port}",
            additional_headers=headers,
            user_agent_header=USER_AGENT,
            subprotocols=[Subprotocol("mcp")],
            compression="deflate",
            proxy=None,
            ping_interval=None,
            max_size=None,
            open_timeout=30,
        )
        assert self._connection.subprotocol in ("mcp", None)
        assert not self._connection.protocol.extensions, "compression was accepted"
        self.connections += 1
        self._ids = itertools.count()
        self._reader = asyncio.create_task(self._read(self._connection))
        capabilities: dict[str, Any] = {"roots": {}, "elicitation": {}}
        params = {"protocolVersion": VERSIONS[-1], "capabilities": capabilities, "clientInfo": CLIENT_INFO}
        self.initialized = await self.request("initialize", params)
        assert self.initialized["protocolVersion"] in VERSIONS
        assert isinstance(self.initialized["capabilities"], dict)
        assert isinstance(self.initialized["serverInfo"]["name"], str)
        await self.notify("notifications/initialized")
        await self.notify("ide_connected", {"pid": os.getpid()})
        self.tools = (await self.request("tools/list"))["tools"]
        for tool in self.tools:
            assert isinstance(tool["name"], str)
            assert tool["inputSchema"]["type"] == "object"
            assert isinstance(tool["inputSchema"].get("properties", {}), dict)
        for listed in ("prompts", "resources"):
            if listed in self.initialized["capabilities"]:
                assert isinstance((await self.request(f"{listed}/list"))[listed], list)

    async def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its result. Raises CallError for an error, and if the connection closes."""
        request_id = next(self._ids)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = answer
        message = {"method": method, **({} if params is None else {"params": params}), "jsonrpc": "2.0"}
        await self._send({**message, "id": request_id})
        return await answer

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        await self._send({"method": method, **({} if params is None else {"params": params}), "jsonrpc": "2.0"})

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._connection is not None
        try:
            await self._connection.send(json.dumps(message, ensure_ascii=False))
        except ConnectionClosed as error:
            raise CallError(-32000, "Connection closed") from error

    async def _read(self, connection: ClientConnection) -> None:
        try:
            async for data in connection:
                assert isinstance(data, str), "a binary frame came"
                self._take(json.loads(data))
        except ConnectionClosed:
            pass
        finally:
            self.close_code = connection.close_code
            for answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(CallError(-32000, "Connection closed"))
                    answer.exception()  # a cancelled waiter must not get the error
            self._pending.clear()

    def _take(self, message: dict[str, Any]) -> None:
        assert message["jsonrpc"] == "2.0", message
        if "method" in message:
            assert "id" not in message, f"the server asked something: {message}"
            self.received.append(message)
            return
        answer = self._pending.pop(message["id"])
        if answer.done():
            return
        if "error" in message:
            answer.set_exception(CallError(message["error"]["code"], message["error"]["message"]))
        else:
            assert isinstance(message["result"], dict), message
            answer.set_result(cast("dict[str, Any]", message["result"]))

    async def close(self) -> None:
        """Disconnect, as on /exit."""
        if self._connection is not None:
            await self._connection.close()
        if self._reader is not None:
            await self._reader

    def drop(self) -> None:
        """Disconnect without a close frame, as a killed process does."""
        assert self._connection is not None
        self._connection.transport.abort()

    async def lost(self) -> int | None:
        """Wait until the connection is lost; return its close code."""
        assert self._reader is not None
        await asyncio.wait_for(asyncio.shield(self._reader), ANSWER_SECONDS)
        return self.close_code

    async def reconnect(self, sleep: Callable[[float], Any] = asyncio.sleep) -> bool:
        """Reconnect as the CLI does: five attempts with the token it has; return whether one worked."""
        for seconds in RECONNECT_SECONDS:
            await sleep(seconds)
            with contextlib.suppress(OSError, InvalidHandshake, CallError):
                await self.connect()
                return True
        self.gave_up = True
        return False

    # Notifications received.

    def told(self, method: str) -> list[dict[str, Any]]:
        """Return the params of the received notifications of a method."""
        return [message["params"] for message in self.received if message["method"] == method]

    async def selects(self, **members: object) -> dict[str, Any]:
        """Wait until the newest selection has these members, and return it."""

        def newest() -> dict[str, Any] | None:
            selections = self.told("selection_changed")
            return selections[-1] if selections and members.items() <= selections[-1].items() else None

        found = await eventually_async(newest, what=f"a selection with {members}")
        assert found is not None
        return found

    async def mentioned(self, count: int = 1) -> dict[str, Any]:
        """Wait for the mention number `count` and return it."""
        await eventually_async(lambda: len(self.told("at_mentioned")) >= count, what=f"{count} mentions")
        return self.told("at_mentioned")[count - 1]

    # Actions.

    async def call(self, name: str, arguments: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Call a tool and return its content. Raises CallError also for a result that is an error (code 0)."""
        params = {"name": name, "arguments": arguments or {}, "_meta": {"progressToken": 1}}
        result = await self.request("tools/call", params)
        content: list[dict[str, Any]] = result["content"]
        for item in content:
            assert item["type"] in ("text", "image"), item
            assert isinstance(item["text" if item["type"] == "text" else "data"], str)
        if result.get("isError"):
            raise CallError(0, content[0]["text"])
        return content

    async def text(self, name: str, arguments: dict[str, Any] | None = None) -> str:
        """Call a tool that answers with one text, and return it; a call that takes too long fails the test."""
        (item,) = await asyncio.wait_for(self.call(name, arguments), ANSWER_SECONDS)
        return cast(str, item["text"])

    async def begin_turn(self) -> int:
        """Do what the CLI does at each prompt of the user; return how many diffs were closed."""
        closed, self.diagnostics = await asyncio.gather(
            self.text("closeAllDiffTabs"), self.text("getDiagnostics") if self._turns else asyncio.sleep(0, "[]")
        )
        self._turns += 1
        prefix, count, suffix = closed.partition("_")[0], closed.split("_")[1], closed.split("_", 2)[2]
        assert (prefix, suffix) == ("CLOSED", "DIFF_TABS")
        return int(count)

    async def edit(self, file: Path, proposed: str, terminal: "asyncio.Future[bool] | None" = None) -> Edit:
        """Propose an edit in the IDE and in the terminal at once; the first answer counts, then write the result.

        `terminal` is the user's answer there. Without it nobody answers there.
        """
        answer: asyncio.Future[bool] = terminal or asyncio.get_running_loop().create_future()
        tab = f"\u273b [Claude Code] {file.name} ({next(self._tabs):06x}) \u29c9"
        arguments = {
            "old_file_path": str(file),
            "new_file_path": str(file),
            "new_file_contents": proposed,
            "tab_name": tab,
        }
        shown = asyncio.create_task(self.call("openDiff", arguments))
        try:
            decided = await self._decision(shown, answer, proposed)
            with contextlib.suppress(CallError):
                await asyncio.gather(*(self.text("close_tab", {"tab_name": tab}) for _ in range(2)))
            if decided.outcome == "written":
                file.write_bytes(decided.text.encode())
                with contextlib.suppress(CallError):
                    await self.text("getDiagnostics", {"uri": file.as_uri()})
            await asyncio.wait({shown}, timeout=ANSWER_SECONDS)
            assert shown.done(), "openDiff was never answered, though its tab was closed"
            return decided
        finally:
            shown.cancel()
            await asyncio.gather(shown, return_exceptions=True)

    async def _decision(
        self, shown: "asyncio.Task[list[dict[str, Any]]]", terminal: "asyncio.Future[bool]", proposed: str
    ) -> Edit:
        await asyncio.wait({shown, terminal}, return_when=asyncio.FIRST_COMPLETED)
        if not terminal.done():
            with contextlib.suppress(CallError):
                if (decided := _answered_in_the_ide(await shown, proposed)) is not None:
                    return decided
        # The question in the terminal stays.
        return Edit("written", proposed) if await terminal else Edit("declined")


def _answered_in_the_ide(content: list[dict[str, Any]], proposed: str) -> Edit | None:
    """Return how the CLI understands the answer to openDiff; None: not an answer, the terminal goes on asking."""
    texts = [item.get("text") for item in content]
    match texts:
        case ["FILE_SAVED", str(text)]:
            return Edit("written", text, text != proposed)
        case ["DIFF_REJECTED", *_]:
            return Edit("rejected")
        case ["TAB_CLOSED", *_]:
            return Edit("written", proposed)
        case _:
            return None


@asynccontextmanager
async def claude_cli(folder: Path, environment: Mapping[str, str] = os.environ) -> AsyncGenerator[ClaudeCli]:
    """Yield a CLI that was started in `folder` with --ide and is connected."""
    lock = choose(folder, environment)
    assert lock is not None, f"no IDE for {folder} among {locks(environment)}"
    cli = ClaudeCli(lock)
    try:
        await cli.connect()
        yield cli
    finally:
        await cli.close()
