"""One server for as long as the agent runs: connects, lists, hears of changes, connects again after a loss, closes.

A task of its own owns the session, since what the SDK opens must be closed by the task that opened it. Every wait has
a deadline. A call is never sent twice: when the server ends in the middle of one, its outcome is not known, and that
is what is said. The SDK is imported in that task, not before.
"""

import asyncio
import contextlib
import importlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from isthmus.mcp_host.config import HttpEndpoint, HttpKind, ServerConfig, StdioEndpoint
from isthmus.mcp_host.errors import ConnectFailedError, NeedsLoginError, ServerLostError
from isthmus.mcp_host.offer import Offer
from isthmus.mcp_host.secrets import Secrets
from isthmus.mcp_host.server_log import ServerLog
from isthmus.tools.servers import ServerState

if TYPE_CHECKING:
    import httpx2
    from mcp_types import CallToolResult

    from isthmus.ide.checked_transport import WhyNot
    from isthmus.mcp_host.endpoints import HttpWatch
    from isthmus.mcp_host.session import McpSession, OnProgress

_LOG = logging.getLogger("isthmus.mcp")

T = TypeVar("T")

RETRY_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""How long to wait before each attempt to connect again after a loss; then the server is given up."""
AGAIN_SECONDS = 30.0
"""How long a URL that could not be connected to is left alone before somebody's wish for its tools tries it again."""
STABLE_SECONDS = 30.0
"""A connection that held so long makes the next loss the first one again."""
CLOSE_SECONDS = 1.8


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a connection is made with. ``home`` is where logins are kept; None: there is none to use."""

    environment: Mapping[str, str]
    workspace: Path
    home: Path | None = None
    why_not: "WhyNot | None" = None


class ServerConnection:
    """A server that is kept connected. Its attributes may be read at any time."""

    def __init__(self, config: ServerConfig, surroundings: Surroundings) -> None:
        self.config = config
        self.state = ServerState.DISCONNECTED
        self.problem: str | None = None
        self.offer = Offer()
        self.log = ServerLog()
        self.challenge: str | None = None
        """What the server said of how to log in (WWW-Authenticate), when it refused."""
        self._secrets = Secrets(config)
        self._surroundings = surroundings
        self._session: McpSession | None = None
        self._watch: HttpWatch | None = None
        self._owner: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._wake = asyncio.Event()
        self._calls = 0
        self._has_listed = asyncio.Event()
        self._given_up_at = 0.0
        self._is_closing = False
        self._is_lost = False
        self._has_changed = False
        self._wants_anew = False
        self._kind: HttpKind | None = None
        self._is_modern = False

    def start(self) -> None:
        """Connect in the background, unless that was begun."""
        if self._owner is None:
            self.state = ServerState.CONNECTING
            self._owner = asyncio.create_task(self._own(), name=f"mcp {self.config.name}")

    @property
    def is_settled(self) -> bool:
        """Whether it is known how the last attempt to connect came out."""
        return self._settled.is_set()

    async def settled(self, seconds: float) -> bool:
        """Wait until that is known; False when it is not after `seconds`."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), seconds)
        return self.is_settled

    async def refresh(self) -> None:
        """Connect and list anew; returns when it is known how that came out, at the latest after its deadlines.

        While calls are running it only lists anew: they may be another session's.
        """
        self.start()
        if self._session is not None and self._calls:
            self._has_listed.clear()
            self._change()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._has_listed.wait(), self.config.connect_seconds)
            return
        self._settled.clear()
        self._wants_anew = True
        self._wake.set()
        await self.settled(self.config.connect_seconds * 2 + CLOSE_SECONDS)

    def try_again(self) -> None:
        """Connect in the background to a URL that was given up a while ago; a program waits for a refresh."""
        is_due = self._given_up_at and time.monotonic() - self._given_up_at >= AGAIN_SECONDS
        if is_due and isinstance(self.config.endpoint, HttpEndpoint) and self.state is ServerState.DISCONNECTED:
            self._given_up_at = 0.0
            self._wants_anew = True
            self._wake.set()

    async def aclose(self) -> None:
        """End the connection and whatever it started, in two seconds at the most."""
        self._is_closing = True
        self._wake.set()
        owner = self._owner
        if owner is None:
            return
        done, _ = await asyncio.wait({owner}, timeout=CLOSE_SECONDS)
        if not done:
            owner.cancel()
            await asyncio.wait({owner}, timeout=1)
        self.state = ServerState.DISCONNECTED

    async def call(self, tool: str, arguments: Mapping[str, Any], on_progress: "OnProgress") -> "CallToolResult":
        """Call a tool by the server's own name for it; see :meth:`request`."""
        return await self.request(lambda session: session.call(tool, arguments, on_progress))

    async def request(self, perform: "Callable[[McpSession], Awaitable[T]]") -> T:
        """Ask the server for something, once; without a deadline, but for connecting.

        Raises:
            ServerLostError: it cannot be reached, or ended before it answered.
            MCPError: it answered with an error.
        """
        session = await self._connected()
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

        self._calls += 1
        try:
            return await perform(session)
        except MCPError as error:
            is_gone = self._watch is not None and self._watch.status == 404  # HTTP's word for a session it has not
            is_terminated = error.code == INVALID_REQUEST and (is_gone or error.message == "Session terminated")
            if is_terminated or (error.code == CONNECTION_CLOSED and (self._is_lost or self._session is not session)):
                self._lose()
                raise ServerLostError(self._lost_text()) from error
            if error.code == CONNECTION_CLOSED and not isinstance(self.config.endpoint, StdioEndpoint):
                self._lose()
                raise ServerLostError(f"{self._lost_text()} ({self.hidden(error.message)})") from error
            if error.message == "Server returned an error response" and self._watch is not None:
                raise MCPError(error.code, f"{error.message}: HTTP {self._watch.status}") from error
            raise
        finally:
            self._calls -= 1

    async def _connected(self) -> "McpSession":
        self._wake.set()  # somebody wants it: do not wait any longer to connect again
        deadline = time.monotonic() + self.config.connect_seconds
        while self._session is None:
            seconds = deadline - time.monotonic()
            if seconds <= 0 or not await self.settled(seconds) or self.state is not ServerState.CONNECTED:
                reason = self.problem or f"no connection within {self.config.connect_seconds:g} s"
                raise ServerLostError(f"the MCP server {self.config.name!r} is not connected: {reason}")
            await asyncio.sleep(0)
        return self._session

    def _lost_text(self) -> str:
        tail = self.log.tail()
        said = f" Its last output: {tail}" if tail else ""
        return self.hidden(
            f"the MCP server {self.config.name!r} ended{self.log.exit_text} before it answered; whether the call had "
            f"an effect is not known, and it was not repeated.{said}"
        )

    def hidden(self, text: str) -> str:
        """A text for the person or the model, without what is secret in the configuration."""
        return self._secrets.hidden(text)

    def _lose(self) -> None:
        self._is_lost = True
        self._wake.set()

    def _change(self) -> None:
        self._has_changed = True
        self._wake.set()

    # --- The task that owns the session ------------------------------------------------------------------------------

    async def _own(self) -> None:
        attempts = 0
        while not self._is_closing:
            self._wants_anew = False
            began = time.monotonic()
            was_connected = await self._connect_once()
            if self._is_closing or self._wants_anew:
                attempts = 0
                continue
            if was_connected and time.monotonic() - began >= STABLE_SECONDS:
                attempts = 0
            if self.offer.is_empty or attempts >= len(RETRY_SECONDS):
                self.offer = Offer()
                self._given_up_at = time.monotonic()
                self._settled.set()
                await self._until_wanted()
                attempts = 0
                continue
            # It was there before: its tools stay, and a call waits for it to come back.
            await self._woken(RETRY_SECONDS[attempts])
            attempts += 1
        self._settled.set()

    async def _until_wanted(self) -> None:
        while not (self._is_closing or self._wants_anew):
            await self._woken(None)

    async def _woken(self, seconds: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)
        self._wake.clear()

    async def _connect_once(self) -> bool:
        """Connect and stay as long as it goes; False when it never came to a listing."""
        self.state = ServerState.CONNECTING
        self.problem = None
        was_connected = False
        try:
            was_connected = await self._try_ways()
        except NeedsLoginError as error:
            self.state, self.problem = ServerState.NEEDS_LOGIN, str(error)
            self.offer = Offer()
        except ConnectFailedError as error:
            self.state, self.problem = ServerState.DISCONNECTED, self.hidden(str(error))
        finally:
            if self.problem is not None and not self._is_closing:
                _LOG.info("MCP server %s: %s: %s", self.config.name, self.state.value, self.problem)
            self._session = None
            if self.state in (ServerState.CONNECTING, ServerState.CONNECTED):
                self.state = ServerState.DISCONNECTED
        return was_connected

    async def _try_ways(self) -> bool:
        """Try the ways to speak to the endpoint, the one that worked before first."""
        endpoint = self.config.endpoint
        kinds = (HttpKind.STREAMABLE,)
        if isinstance(endpoint, HttpEndpoint):
            kinds = (HttpKind.STREAMABLE, HttpKind.SSE) if endpoint.kind is HttpKind.PROBE else (endpoint.kind,)
            if self._kind is not None:
                kinds = (self._kind,)
        ways = [(kind, self._is_modern) for kind in kinds]
        first: ConnectFailedError | None = None
        while ways:
            kind, is_modern = ways.pop(0)
            try:
                return await self._session_of(kind, is_modern=is_modern)
            except ConnectFailedError as error:
                if error.is_about_handshake and not is_modern:
                    ways.insert(0, (kind, True))
                elif not error.may_be_other_way:
                    raise
                first = first or error
        raise first or RuntimeError("no way to connect was tried")

    async def _session_of(self, kind: HttpKind, *, is_modern: bool) -> bool:
        await asyncio.to_thread(_import)
        import anyio

        from isthmus.mcp_host.endpoints import Access, HttpWatch, streams
        from isthmus.mcp_host.failures import explain, is_about_handshake
        from isthmus.mcp_host.session import open_session

        config, surroundings = self.config, self._surroundings
        self.log = ServerLog()
        self._watch = watch = HttpWatch()
        self._is_lost = self._has_changed = False
        auth: httpx2.Auth | None = None
        if surroundings.home is not None and isinstance(config.endpoint, HttpEndpoint):
            from isthmus.mcp_host.oauth import stored_login

            auth = stored_login(config, surroundings.home)
        access = Access(surroundings.environment, auth, surroundings.why_not)
        transport = streams(config.endpoint, kind, access, config.connect_seconds, self.log, watch)
        step, has_expired, has_listed = "initialize", False, False
        loop = asyncio.get_running_loop()

        def expire() -> None:
            nonlocal has_expired
            has_expired = True
            scope.cancel()

        with anyio.CancelScope() as scope:
            # Not fail_after: a scope must be left in the order in which it was entered, and the session stays open.
            timer = loop.call_later(config.connect_seconds, expire)
            try:
                async with (
                    self._ended_at_close(scope),
                    open_session(
                        config,
                        transport,
                        surroundings.workspace,
                        is_modern=is_modern,
                        on_end=self._lose,
                        on_change=self._change,
                    ) as session,
                ):
                    timer.cancel()
                    step = "tools/list"
                    timer = loop.call_later(config.connect_seconds, expire)
                    self.offer = await session.offer()
                    timer.cancel()
                    has_listed = True
                    self._kind, self._is_modern = kind, is_modern
                    await self._stay(session)
            except Exception as error:
                if not has_listed:
                    self._refuse_if_unauthorized(watch, auth, error)
                    reason = explain(error, step, config.endpoint, self.log, watch)
                    raise ConnectFailedError(
                        reason,
                        is_about_handshake=is_about_handshake(error) and watch.status is None,
                        may_be_other_way=watch.status is not None and watch.status not in (401, 403),
                    ) from error
                self._note_loss(explain(error, "a request", config.endpoint, self.log, watch))
            finally:
                timer.cancel()
        if has_expired and not has_listed:
            self._refuse_if_unauthorized(watch, auth, None)
            late = TimeoutError(f"none came within {config.connect_seconds:g} s")
            raise ConnectFailedError(explain(late, step, config.endpoint, self.log, watch))
        if has_listed and self._is_lost and self.problem is None:
            self._note_loss(self._end_text())
        return has_listed

    @contextlib.asynccontextmanager
    async def _ended_at_close(self, scope: Any) -> AsyncGenerator[None, None]:
        """While connecting: whoever closes does not wait for the handshake."""

        async def watch() -> None:
            while self._session is None:
                if self._is_closing or self._wants_anew:
                    scope.cancel()
                    return
                await asyncio.sleep(0.05)

        watching = asyncio.create_task(watch(), name=f"mcp {self.config.name} connecting")
        try:
            yield
        finally:
            watching.cancel()

    async def _stay(self, session: "McpSession") -> None:
        """Be connected until it is lost, closed or wanted anew; list anew when the server says that it changed."""
        import anyio

        if self.offer.is_empty:
            dropped = "; ".join(self.offer.dropped)
            self.problem = "it is connected and offers nothing that can be used" + (f" ({dropped})" if dropped else "")
            self.state = ServerState.DISCONNECTED
            return
        self._session = session
        self.state = ServerState.CONNECTED
        self._settled.set()
        while not (self._is_closing or self._wants_anew or self._is_lost):
            if self._has_changed:
                self._has_changed = False
                try:
                    with anyio.fail_after(self.config.connect_seconds):
                        self.offer = await session.offer()
                except TimeoutError:
                    self.problem = "it said that its tools changed, and did not list them again in time"
                self._has_listed.set()
                continue
            await self._wake.wait()
            self._wake.clear()
        self._session = None
        if not self._is_closing:
            self._settled.clear()
            self.state = ServerState.CONNECTING

    def _note_loss(self, reason: str) -> None:
        self._session = None
        self.state, self.problem = ServerState.DISCONNECTED, self.hidden(reason)

    def _end_text(self) -> str:
        tail = self.log.tail()
        return f"the connection ended{self.log.exit_text}" + (f"; its last output: {tail}" if tail else "")

    def _refuse_if_unauthorized(self, watch: "HttpWatch", auth: object, error: BaseException | None) -> None:
        from isthmus.mcp_host.failures import causes

        login = next((inner for inner in causes(error) if isinstance(inner, NeedsLoginError)), None) if error else None
        if login is not None or watch.status == 401:
            self.challenge = watch.challenge
            was_refused = " again: its login is refused" if auth is not None else ""
            raise NeedsLoginError(f"it wants a login{was_refused}; use /mcp auth {self.config.name}") from error


def _import() -> None:
    """In a thread: the SDK takes a second, which the event loop has not."""
    importlib.import_module("isthmus.mcp_host.session")
    importlib.import_module("isthmus.mcp_host.oauth")
