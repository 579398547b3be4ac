"""One attempt to connect to a server by one transport, and the session if it succeeds.

Connecting and the first listing have a deadline each and can be abandoned; the session has no deadline. This module
imports the SDK, so import it in a thread. Not here: further attempts after a failure, and the states of a connection,
see :mod:`isthmus.mcp_host.connection.connection`.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import anyio
from mcp import MCPError

from isthmus.mcp_host.catalogue.listing import Listing
from isthmus.mcp_host.config.own_program import started_server
from isthmus.mcp_host.config.server_config import DISCOVERED, HttpEndpoint, HttpKind, ServerConfig, StdioEndpoint
from isthmus.mcp_host.connection.connection_context import ConnectionContext
from isthmus.mcp_host.connection.discover_probe import METHOD as QUESTION
from isthmus.mcp_host.connection.discover_probe import DiscoverOutcome, FirstAnswer
from isthmus.mcp_host.connection.errors import AbandonedError, ConnectFailedError, NeedsLoginError
from isthmus.mcp_host.connection.headers_helper import helper_headers
from isthmus.mcp_host.connection.server_sandbox import server_sandbox
from isthmus.mcp_host.connection.session import McpSession, open_session
from isthmus.mcp_host.connection.transport_probe import TransportChoice
from isthmus.mcp_host.diagnosis.debug_log import DebugLog
from isthmus.mcp_host.diagnosis.failures import explain, refuses_handshake
from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.mcp_host.diagnosis.unreachable import causes, is_reached
from isthmus.mcp_host.elicitation.server_requests import ServerAsking
from isthmus.mcp_host.oauth.bearer import BearerAuth, LoginProblem, Report
from isthmus.mcp_host.oauth.google_account import google_auth
from isthmus.mcp_host.oauth.login_store import LoginStore
from isthmus.mcp_host.oauth.machine_login import MachineLogin
from isthmus.mcp_host.oauth.stored_login import StoredLogin, http_of
from isthmus.mcp_host.transports.endpoints import Access, HttpWatch, streams
from isthmus.mcp_host.transports.session_refusals import SessionRefusal, refusal_of
from isthmus.mcp_host.transports.traced import describe_opening, traced
from isthmus.runtime.server_chain import environment_below
from isthmus.text.units import show_count


class Attempt:
    """One attempt to connect to a server.

    ``on_end`` is called when the server sends no more messages, ``on_change`` when it reports a change of its tools,
    prompts or resources. ``asking`` handles its questions. ``log`` keeps its output, ``watch`` its HTTP responses.
    """

    def __init__(
        self,
        config: ServerConfig,
        context: ConnectionContext,
        choice: TransportChoice,
        on_end: Callable[[], None],
        on_change: Callable[[], None],
        asking: ServerAsking | None = None,
    ) -> None:
        self.choice = choice
        self._debug = DebugLog(config)
        self.log = ServerLog(self._debug.wrote)
        self.watch = HttpWatch()
        self._config = config
        self._context = context
        self._on_end = on_end
        self._on_change = on_change
        self._asking = asking
        self._scope = anyio.CancelScope()
        self._is_connecting = True
        self._has_expired = False
        self._step = QUESTION if choice.asks_first else "initialize"
        self._answer: FirstAnswer | None = None
        self.loss: str | None = None
        """Reason why an open session broke; None if it did not break, or if the server ended without an error."""

    def abandon(self) -> None:
        """Give the attempt up; does nothing once the session is open."""
        if self._is_connecting:
            self._scope.cancel()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[tuple[McpSession, Listing]]:
        """Yield the session and the server's first listing. If the session breaks, the block ends with `loss` set.

        Raises:
            NeedsLoginError: the server wants a login.
            ConnectFailedError: the attempt failed; the message gives the reason.
            AbandonedError: `abandon` was called.
        """
        await self._add_headers()
        config, context = self._config, self._context
        auth = _authentication(config, context, self._note_login)
        transport = self._transport(auth)
        with self._scope:
            # The deadline does not include the time that a program waits for its turn to start.
            gate = context.gate if isinstance(config.endpoint, StdioEndpoint) else None
            leave_gate = await gate.enter() if gate is not None else _do_nothing
            # Not fail_after: scopes must be left in reverse order, and the session outlives the deadline.
            timer = self._timer()
            self._debug.begins(f"connecting: {describe_opening(config.endpoint, self.choice.kind)}")
            try:
                if auth is not None:
                    await auth.check()
                async with open_session(
                    config,
                    transport,
                    context,
                    self.choice,
                    self.log,
                    on_end=self._on_end,
                    on_change=self._on_change,
                    on_asked=self._note_answer,
                    asking=self._asking,
                ) as session:
                    timer.cancel()
                    self._debug.done(self._step)
                    self._step = "tools/list"
                    timer = self._timer()
                    listing = await session.listing()
                    timer.cancel()
                    self._debug.done(f"listing {show_count(len(listing.tools), 'tool')}")
                    self._is_connecting = self.watch.is_connecting = False
                    leave_gate()
                    yield session, listing
            except Exception as error:
                if self._is_connecting:
                    failure = self._failure(error, auth)
                    self._debug.failed(self._step, str(failure))
                    raise failure from error
                self.loss = explain(error, "a request", config.endpoint, self.log, self.watch)
            finally:
                timer.cancel()
                leave_gate()
        if self._is_connecting:
            if not self._has_expired:
                raise AbandonedError("the connection is no longer wanted")
            late = self._failure(TimeoutError(f"none came within {config.connect_seconds:g} s"), auth)
            self._debug.failed(self._step, str(late))
            raise late

    def _transport(self, auth: "BearerAuth | None") -> AbstractAsyncContextManager[Any]:
        """Return the transport of this attempt, which is not open yet."""
        config, context = self._config, self._context
        endpoint, environment = config.endpoint, context.environment
        if isinstance(endpoint, StdioEndpoint):
            environment = environment_below(environment, started_server(config, endpoint))
        access = Access(
            environment,
            context.timeouts.exit_seconds,
            auth,
            context.address_policy,
            config.oauth.token_param_name,
            sandbox=server_sandbox(config, context),
            inherits=config.inherits,
        )
        transport = streams(endpoint, self.choice.kind, access, config.connect_seconds, self.log, self.watch)
        if context.trace is None:
            return transport
        return traced(transport, context.trace, describe_opening(endpoint, self.choice.kind))

    async def _add_headers(self) -> None:
        """Run the command that prints further headers, if the configuration has one; they win over its own."""
        config, context = self._config, self._context
        if config.headers_helper is None or not isinstance(config.endpoint, HttpEndpoint):
            return
        endpoint = config.endpoint
        self._debug.begins("headersHelper")
        more = await helper_headers(
            *(config.headers_helper, config.name, endpoint.url, context.environment, context.home or context.workspace),
            inherits=config.inherits,
        )
        self._debug.done("headersHelper")
        given = {name.lower() for name in more}
        kept = {name: value for name, value in endpoint.headers.items() if name.lower() not in given}
        self._config = replace(config, endpoint=replace(endpoint, headers={**kept, **more}))
        self._debug = DebugLog(self._config)  # hides their values

    def _note_login(self, problem: LoginProblem | None) -> None:
        self.watch.note_login(problem)
        # Refused during a session: pending requests get no answer, and over SSE the SDK stops sending.
        is_of_one_call = self.watch.status == 403 and self.choice.kind is not HttpKind.SSE
        if problem is not None and not self._is_connecting and not is_of_one_call:
            self._on_end()

    def _note_answer(self, answer: FirstAnswer) -> None:
        self._debug.done(self._step)
        self._step, self._answer = "initialize", answer

    def _timer(self) -> asyncio.TimerHandle:
        def expire() -> None:
            if self._is_connecting:
                self._has_expired = True
                self._scope.cancel()

        return asyncio.get_running_loop().call_later(self._config.connect_seconds, expire)

    def _failure(self, error: Exception, auth: BearerAuth | None) -> Exception:
        """Return the error that describes why the attempt failed."""
        watch = self.watch
        if watch.login is not None:
            return watch.login
        if watch.wants_login or any(isinstance(inner, NeedsLoginError) for inner in causes(error)):
            refused = "" if auth is not None else " other than what its headers say"
            return NeedsLoginError(f"it wants a login{refused}; use /mcp auth {self._config.name}")
        is_late = isinstance(error, TimeoutError) and self._has_expired
        step, answer = self._step, self._answer
        is_about_session = any(
            isinstance(inner, MCPError) and refusal_of(inner) is SessionRefusal.CERTAIN for inner in causes(error)
        )
        # A server that refused the question would refuse it again.
        is_answered = answer is not None and answer.outcome is DiscoverOutcome.REFUSED
        return ConnectFailedError(
            explain(error, step, self._config.endpoint, self.log, watch),
            is_late=is_late,
            is_about_handshake=not is_late
            and not is_answered
            and step == "initialize"
            and refuses_handshake(error, watch.status),
            may_be_other_transport=not is_late and watch.status is not None and watch.status not in (401, 403),
            is_about_session=is_about_session,
            is_about_question=not is_late and step == QUESTION and is_reached(error),
            discovered=None if answer is None else answer.discovered,
        )


def _authentication(config: ServerConfig, context: ConnectionContext, report: Report) -> BearerAuth | None:
    """Return the authentication by a Google account or a login; None if the configured headers are enough."""
    endpoint, home = config.endpoint, context.home
    if home is None or not isinstance(endpoint, HttpEndpoint):
        return None
    if config.auth_provider != DISCOVERED:
        return google_auth(config, endpoint, report)
    if any(name.lower() == "authorization" for name in endpoint.headers):
        return None
    http = http_of(config, endpoint.url, context.timeouts.token_seconds)
    if config.oauth.is_of_machine:
        return BearerAuth(MachineLogin(config, endpoint, http), report)
    return BearerAuth(StoredLogin(config, endpoint.url, LoginStore(home), http), report)


def _do_nothing() -> None:
    return
