"""The connection to one server, kept as long as the agent runs: connects, lists, follows changes, reconnects, closes.

A separate task owns the session, since the SDK must be closed by the task that opened it; only that task imports the
SDK. Every wait has a deadline. If the server ends during a call, the call is repeated only if the tool is harmless and
the server is trusted. Otherwise the outcome is unknown, and the error reports this.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from isthmus.mcp_host.catalogue.catalogue import Catalogue
from isthmus.mcp_host.catalogue.known_catalogue import KnownCatalogue
from isthmus.mcp_host.catalogue.listing import Listing
from isthmus.mcp_host.config.secrets import Secrets
from isthmus.mcp_host.config.server_config import HttpEndpoint, ServerConfig, StdioEndpoint
from isthmus.mcp_host.connection.backoff import ReconnectPolicy, RelistBackoff
from isthmus.mcp_host.connection.connection_context import ConnectionContext
from isthmus.mcp_host.connection.connection_signals import ConnectionSignals
from isthmus.mcp_host.connection.errors import (
    AbandonedError,
    ConnectFailedError,
    NeedsLoginError,
    ServerLostError,
    SessionForgottenError,
)
from isthmus.mcp_host.connection.running_requests import RunningRequests
from isthmus.mcp_host.connection.transport_probe import TransportChoice, TransportProbe
from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.mcp_host.elicitation.server_requests import ServerAsking
from isthmus.mcp_host.sdk import import_with_sdk
from isthmus.tools.port.servers import ServerState

if TYPE_CHECKING:
    from mcp import MCPError
    from mcp_types import CallToolResult

    from isthmus.mcp_host.connection.attempt import Attempt
    from isthmus.mcp_host.connection.session import McpSession, OnProgress

_LOG = logging.getLogger("isthmus.mcp")

T = TypeVar("T")

REFUSING_SECONDS = 2.0
"""Maximum time in seconds for a server to refuse the other requests of a session that it does not know."""
TURN_SECONDS = 0.01
"""Interval in seconds at which a call checks whether the server is connected, while it reconnects."""


class ServerConnection:
    """A server that is kept connected. Any task may read its attributes at any time."""

    def __init__(self, config: ServerConfig, context: ConnectionContext) -> None:
        self.config = config
        self.timeouts = context.timeouts
        self.state = ServerState.DISCONNECTED
        self.problem: str | None = None
        self.log = ServerLog()
        self.challenge: str | None = None
        """The server's challenge (header WWW-Authenticate), if it refused a request."""
        self._secrets = Secrets(config)
        self._context = context
        self._session: McpSession | None = None
        self._attempt: Attempt | None = None
        self._owner: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._running = RunningRequests()
        self._has_answered = False
        """Whether a request was answered over the current connection."""
        self._is_useless_program = False
        """Whether it is a program that was connected and offered nothing usable."""
        self._retries = ReconnectPolicy(context.timeouts.retry_seconds)
        self.signals = ConnectionSignals()
        self._pace = RelistBackoff()
        self._probe = TransportProbe(config.endpoint)
        self.known = KnownCatalogue(config, context)
        self.failure: str | None = None
        """Problem of the attempt before, while a server that was given up is tried again."""
        self.began: float | None = None
        """Monotonic time at which the last attempt to connect began."""
        self.connect_took: float | None = None
        """Time in seconds that the last successful connecting and listing took."""
        host = config.endpoint.host if isinstance(config.endpoint, HttpEndpoint) else ""
        self.asking = ServerAsking(config.name, context.workspace, context.open_browser, host)

    def load_cached(self) -> None:
        """Load the catalogue of the last connection, before `start`. Blocking."""
        self._probe.remember(self.known.load_cached())

    @property
    def reads_freely(self) -> bool:
        """Whether tools that claim to be read-only run without the user's approval."""
        return self.config.trust or self._context.reads_freely

    @property
    def catalogue(self) -> Catalogue:
        """The server's catalogue, or the cached one while it is unknown whether the server can be connected."""
        return self.known.catalogue

    @property
    def is_asleep(self) -> bool:
        """Whether the server starts at its first call and has not been called yet."""
        return self.config.lazy and self.known.is_cached and self._owner is None

    def start(self) -> None:
        """Begin to connect, unless already begun. A lazy server with a cached catalogue stays asleep."""
        if not self.is_asleep:
            self._begin()

    def _begin(self) -> None:
        if self._owner is None:
            self.state, self.began = ServerState.CONNECTING, time.monotonic()
            self._owner = asyncio.create_task(self._own(), name=f"mcp {self.config.name}")
            self._owner.add_done_callback(self._handle_owner_end)

    def _handle_owner_end(self, owner: "asyncio.Task[None]") -> None:
        """Wake waiting callers when a bug ends the owning task."""
        if not owner.cancelled() and (error := owner.exception()) is not None:
            _LOG.error("MCP server %s: the task that owns it failed", self.config.name, exc_info=error)
            self.state = ServerState.DISCONNECTED
            self.problem = self.hidden(f"it was given up because of a bug in isthmus: {type(error).__name__}: {error}")
        self._settled.set()

    @property
    def is_settled(self) -> bool:
        """Whether the outcome of the last attempt to connect is known."""
        return self._settled.is_set()

    @property
    def is_known(self) -> bool:
        """Whether there is a catalogue, if only a cached one."""
        return self.is_settled or self.known.is_cached

    async def settled(self, seconds: float) -> bool:
        """Wait until the outcome of the attempt to connect is known; return False if it is not after `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._settled.wait()
        return self.is_settled

    async def refresh(self) -> None:
        """Reconnect and list again; return when the outcome is known, at the latest after the deadlines.

        While calls are running, the server is only listed again: they may belong to another session.
        """
        self._begin()
        if self._session is not None and self._running:
            self.signals.list_now()
            await self.signals.listed(self.config.connect_seconds)
            return
        await self.restart()

    async def restart(self) -> None:
        """End the connection and the running calls, and reconnect; return when the outcome is known, as `refresh`."""
        self._begin()
        self._settled.clear()
        self._reconnect()
        await self.settled(self.config.connect_seconds * 2 + self.timeouts.close_seconds)

    def try_again(self) -> None:
        """Begin to connect to a server that was given up some time ago, unless it is a program that offers nothing."""
        may_try = self.state is ServerState.DISCONNECTED and not self._is_useless_program
        if may_try and self._retries.take_turn(time.monotonic()):
            self.failure = self.problem
            self._reconnect()

    def _reconnect(self) -> None:
        self.signals.request_reconnect()
        if self._attempt is not None:
            self._attempt.abandon()

    async def aclose(self) -> None:
        """End the connection and all processes that it started, within about two seconds."""
        self.signals.close()
        if self._attempt is not None:
            self._attempt.abandon()
        owner = self._owner
        if owner is None:
            return
        done, _ = await asyncio.wait({owner}, timeout=self.timeouts.close_seconds)
        if not done:
            owner.cancel()
            await asyncio.wait({owner}, timeout=1)
        self.state = ServerState.DISCONNECTED

    async def call(
        self, tool: str, arguments: Mapping[str, Any], on_progress: "OnProgress", version: str | None = None
    ) -> "CallToolResult":
        """Call a tool by the server's own name for it.

        `version` is the version of the approved tool; None for any tool of this name. If the server ends during the
        call, the call is repeated once, but only if the tool claims to be read-only or idempotent and the user trusts
        the server.

        Raises:
            ToolGoneError: the server does not have the tool, or has another version of it.
            ServerLostError: the server cannot be reached, or ended before it answered.
            MCPError: the server answered with an error.
        """

        async def perform(session: "McpSession") -> "CallToolResult":
            self.known.require(tool, version)
            result = await session.call(tool, arguments, on_progress)
            if session.reports_changes:
                self.signals.note_answer(self.timeouts.change_seconds)
            return result

        try:
            return await self.request(perform)
        except ServerLostError as error:
            found = self.known.tool(tool)
            is_harmless = found is not None and (found.is_read_only or found.is_idempotent)
            if not (error.was_sent and is_harmless and self.config.trust):
                raise
            return await self.request(perform)

    async def request(self, perform: "Callable[[McpSession], Awaitable[T]]") -> T:
        """Perform one request. Only connecting has a deadline.

        If the server refuses because it no longer knows the session, the request is repeated in a new session.

        Raises:
            ServerLostError: the server cannot be reached, or ended before it answered.
            MCPError: the server answered with an error.
        """
        try:
            return await self._request(perform)
        except SessionForgottenError:
            return await self._request(perform)

    async def _request(self, perform: "Callable[[McpSession], Awaitable[T]]") -> T:
        session = self._session if self._session is not None and not self.signals.is_lost else await self._connected()
        from mcp import MCPError

        with self._running.one():
            try:
                answer = await perform(session)
                self._has_answered = True
                return answer
            except MCPError as error:
                raise await self._request_error(error, session) from error

    async def _request_error(self, error: "MCPError", session: "McpSession") -> Exception:
        from isthmus.mcp_host.diagnosis.failures import request_failure

        refusal = await session.refusal(error) if isinstance(self.config.endpoint, HttpEndpoint) else None
        is_lost = self.signals.is_lost or self._session is not session
        watch = None if self._attempt is None else self._attempt.watch
        found = request_failure(error, self.config, self.log, watch, is_lost=is_lost, refusal=refusal)
        if watch is not None and watch.login is not None and self.state is ServerState.CONNECTED:
            self.problem = self.hidden(str(watch.login))  # its other tools still work
        if isinstance(found, ServerLostError):
            if self._session is session:  # not a new one, in which other calls may run
                self.signals.lose(is_forgotten=isinstance(found, SessionForgottenError))
            found.args = (self.hidden(str(found)),)
        return found

    async def _connected(self) -> "McpSession":
        self._begin()
        self.signals.wake()  # connect now: a caller is waiting
        deadline = time.monotonic() + self.config.connect_seconds
        while self._session is None or self.signals.is_lost:
            seconds = deadline - time.monotonic()
            # Not settled before the deadline: it connected, and was lost again before this task ran.
            is_over = await self.settled(seconds) and self.state not in (ServerState.CONNECTED, ServerState.CONNECTING)
            if seconds <= 0 or is_over:
                reason = self.problem or f"no connection within {self.config.connect_seconds:g} s"
                raise ServerLostError(f"the MCP server {self.config.name!r} is not connected: {reason}")
            await asyncio.sleep(0 if self.state is ServerState.CONNECTED else TURN_SECONDS)
        return self._session

    def hidden(self, text: str) -> str:
        """Return a text for the user or the model, without the secrets of the configuration."""
        return self._secrets.hidden(text)

    # --- The task that owns the session ------------------------------------------------------------------------------

    async def _own(self) -> None:
        if self.known.is_cached:
            # Callers get the cached tools before the programs start, which keeps the event loop busy for a while.
            await self.signals.wait_for_wake(self.timeouts.start_delay_seconds)
        while not self.signals.is_closing:
            self.signals.reconnect_requested = False
            self.began = began = time.monotonic()
            was_connected = await self._connect_once()
            if self.signals.must_disconnect:
                self._retries.reset()
                continue
            if was_connected:
                self._retries.note_end(time.monotonic() - began, has_answered=self._has_answered)
                if self.signals.is_forgotten:
                    continue  # a request waits for the new session
            if self.catalogue.is_empty or self.known.is_cached or self._retries.is_exhausted:
                self.known.clear()
                self._retries.give_up(time.monotonic(), time.monotonic() - began)
                self._settled.set()
                await self.known.mark_failed()
                await self.signals.wait_until_unwanted()
                continue
            # It was connected before, so its tools stay and calls wait for it to reconnect.
            await self.signals.wait_for_wake(self._retries.next_seconds())
        self._settled.set()

    async def _connect_once(self) -> bool:
        """Connect and stay connected as long as possible; return False if the server was never listed."""
        self.state = ServerState.CONNECTING
        self.problem = None
        self._has_answered = was_connected = False
        try:
            await import_with_sdk("isthmus.mcp_host.connection.attempt")
            was_connected = await self._probe.first_working(self._connect_by)
        except NeedsLoginError as error:
            self.state, self.problem = ServerState.NEEDS_LOGIN, str(error)
            self.known.clear()
        except ConnectFailedError as error:
            self.state, self.problem = ServerState.DISCONNECTED, self.hidden(str(error))
        finally:
            if self.problem is not None and not self.signals.is_closing:
                _LOG.info("MCP server %s: %s: %s", self.config.name, self.state.value, self.problem)
            self._session = self.failure = None
            if self.state in (ServerState.CONNECTING, ServerState.CONNECTED):
                self.state = ServerState.DISCONNECTED
        return was_connected

    async def _connect_by(self, choice: TransportChoice) -> bool:
        """Connect by `choice` and stay connected as long as possible; return False if the attempt was abandoned."""
        from isthmus.mcp_host.connection.attempt import Attempt

        if self.signals.must_disconnect:
            return False
        self._attempt = attempt = Attempt(
            self.config, self._context, choice, self.signals.lose, self.signals.change, self.asking
        )
        self.log = attempt.log
        self.signals.begin()
        try:
            async with attempt.open() as (session, listing):
                self.connect_took = None if self.began is None else time.monotonic() - self.began
                self.known.take(listing)
                await self._stay(session, listing, self._probe.worked(choice, listing.discovered))
        except AbandonedError:
            return False
        except NeedsLoginError:
            self.challenge = attempt.watch.challenge
            raise
        if attempt.loss is not None:
            self._note_loss(attempt.loss)
        elif self.signals.is_lost and self.problem is None:
            self._note_loss(f"the connection ended{self.log.exit_text}{self.log.last_words}")
        return True

    async def _stay(self, session: "McpSession", listing: Listing, choice: TransportChoice) -> None:
        """Stay connected until the connection has to end; list the server again when it reports a change."""
        if self.catalogue.is_empty:
            dropped = "; ".join(self.catalogue.dropped)
            self.problem = "it is connected but offers nothing usable" + (f" ({dropped})" if dropped else "")
            self.state = ServerState.DISCONNECTED
            self._is_useless_program = isinstance(self.config.endpoint, StdioEndpoint)
            return
        self._session, self.failure = session, None
        self.state = ServerState.CONNECTED
        self._settled.set()
        await self.known.keep(listing, choice, self.connect_took or 0.0)
        while not self.signals.is_ending:
            if self.signals.has_changed:
                await self._list_again(session, choice)
                continue
            await self.signals.wait_for_wake()
        self._session = None
        if not self.signals.is_closing:
            self._settled.clear()
            self.state = ServerState.CONNECTING
            if self.signals.is_forgotten:  # its other requests are being refused, too: they get to know it
                await self._running.ended(REFUSING_SECONDS, unless=lambda: self.signals.must_disconnect)

    async def _list_again(self, session: "McpSession", choice: TransportChoice) -> None:
        """List the server again, once for changes that come close together."""
        import anyio

        await self.signals.sleep_unless_urgent(self._pace.seconds(time.monotonic()))
        self.signals.take_change()
        self.problem = None
        try:
            with anyio.fail_after(self.config.connect_seconds):
                listing = await session.listing()
        except Exception as error:
            # The catalogue stays as it was; `_stay` notices the end of a connection.
            reason = "it did not list them in time" if isinstance(error, TimeoutError) else f"listing failed: {error}"
            self.problem = self.hidden(f"it reported that its tools changed, but {reason}")
        else:
            self.known.take(listing)
            await self.known.keep(listing, choice, self.connect_took or 0.0)
        self.signals.note_listed()

    def _note_loss(self, reason: str) -> None:
        self._settled.clear()
        self._session, self.state, self.problem = None, ServerState.DISCONNECTED, self.hidden(reason)
