"""The transport for a server's configuration, and an observer of HTTP responses that the SDK does not report.

A client's own endpoint (Origin.CLIENT) is reached only at addresses that this server's rule allows; addresses are
checked after resolution at each request. No redirect to another origin is followed.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from typing_extensions import override

from isthmus.mcp_host.config.server_config import Endpoint, HttpEndpoint, HttpKind, StdioEndpoint
from isthmus.mcp_host.config.shell_variables import ShellVariables
from isthmus.mcp_host.connection.server_sandbox import ServerSandbox
from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.mcp_host.diagnosis.unreachable import connection_problem
from isthmus.mcp_host.oauth.bearer import LoginProblem
from isthmus.mcp_host.transports.http_answers import check_answer
from isthmus.mcp_host.transports.http_caps import NO_COMPRESSION, Bounds, ReopeningPace, cap
from isthmus.mcp_host.transports.messages import MAXIMUM_MESSAGE_BYTES, MAXIMUM_VALUES
from isthmus.mcp_host.transports.session_refusals import explain_refusal, unsent_answer
from isthmus.mcp_host.transports.sse import sse_streams
from isthmus.mcp_host.transports.stdio import stdio_streams
from isthmus.network.checked_transport import AddressPolicy, CheckedTransport
from isthmus.network.client_tls import client_tls
from isthmus.network.handshakes import close_cancelled_handshake
from isthmus.network.retry_after import retry_after_seconds
from isthmus.record import record

SESSION_END_SECONDS = 1.0
"""Maximum time in seconds to end a session; the server may be gone."""
MAXIMUM_WAITS = 5
"""Maximum number of times that a request is repeated because the server asked to wait (HTTP 429)."""
LONGEST_WAIT = 60.0
"""Maximum sum in seconds of the waits of a request."""


@dataclass(slots=True)
class HttpWatch:
    """The last HTTP error of a server, and its information about how to log in."""

    status: int | None = None
    wants_login: bool = False
    """Whether a request was refused with HTTP 401, and none was accepted since."""
    is_connecting: bool = True
    challenge: str | None = None
    login: LoginProblem | None = None
    """The problem of its login, which is reported to the user before any other problem."""

    def note_login(self, problem: LoginProblem | None) -> None:
        """Store the problem of the login; None once logging in works."""
        self.login = problem


@record
class Access:
    """The means and restrictions of access to endpoints. ``address_policy`` is the rule for addresses; None allows all.

    ``token_parameter`` is the query parameter of SSE URLs that carries the token instead of a header. ``inherits`` is
    the rule for the variables of ``environment`` that a program gets; None for a few of them alone.
    """

    environment: Mapping[str, str]
    exit_seconds: tuple[float, float]
    auth: httpx2.Auth | None = None
    address_policy: AddressPolicy | None = None
    token_parameter: str | None = None
    sandbox: ServerSandbox | None = None
    inherits: ShellVariables | None = None


class TokenInQuery(httpx2.AsyncBaseTransport):
    """Transport that moves the bearer token of each request into its query, below all code that logs or shows URLs."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, parameter: str) -> None:
        self._inner = inner
        self._parameter = parameter

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind != "Bearer":
            return await self._inner.handle_async_request(request)
        sent = httpx2.Request(
            request.method,
            request.url.copy_set_param(self._parameter, token),
            headers=[(name, value) for name, value in request.headers.raw if name.lower() != b"authorization"],
            stream=request.stream,
            extensions=request.extensions,
        )
        return await self._inner.handle_async_request(sent)

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()


class PatientClient(httpx2.AsyncClient):
    """An HTTP client that waits as the server asks, but does not wait long for the end of a session, as the SDK would.

    A request of a session whose server cannot be reached is answered with an error: the SDK would end the session with
    all its other requests, and not say that this one was not sent.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request.

        Raises:
            httpx2.ReadTimeout: a request to end a session was not answered in time.
        """
        if request.method == "DELETE":
            return await self._end_session(request, **options)
        try:
            return await self._send_patiently(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if (answer := unsent_answer(request, connection_problem(error))) is None:
                raise
            return answer

    async def _send_patiently(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; while the server answers with HTTP 429 and a time to wait, repeat it then."""
        waited = 0.0
        for _ in range(MAXIMUM_WAITS):
            response = await super().send(request, **options)
            wait = retry_after_seconds(response.headers.get("retry-after"), time.time())
            if response.status_code != 429 or wait is None or waited + wait > LONGEST_WAIT:
                return response
            waited += wait
            await response.aclose()
            await asyncio.sleep(wait)
        return await super().send(request, **options)

    async def _end_session(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            async with asyncio.timeout(SESSION_END_SECONDS):
                response = await super().send(request, **options)
                await response.aread()
                return response
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no answer within {SESSION_END_SECONDS:g} s", request=request) from error


def streams(
    endpoint: Endpoint, kind: HttpKind, access: Access, connect_seconds: float, log: ServerLog, watch: HttpWatch
) -> AbstractAsyncContextManager[Any]:
    """Return the transport to `endpoint`; `kind` is the transport for a URL."""
    if isinstance(endpoint, StdioEndpoint):
        return stdio_streams(endpoint, access.environment, log, access.sandbox, access.exit_seconds, access.inherits)
    client = _http_client(endpoint, kind, access, connect_seconds, watch)
    if kind is HttpKind.SSE:
        return sse_streams(endpoint.url, client, log)
    return _streamable(endpoint.url, client)


@contextlib.asynccontextmanager
async def _streamable(url: str, client: httpx2.AsyncClient) -> AsyncGenerator[Any, None]:
    async with (
        client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAXIMUM_MESSAGE_BYTES) as found,
    ):
        yield found


def _http_client(
    endpoint: HttpEndpoint, kind: HttpKind, access: Access, connect_seconds: float, watch: HttpWatch
) -> httpx2.AsyncClient:
    transport: httpx2.AsyncBaseTransport | None = (
        None if access.address_policy is None else CheckedTransport(access.address_policy)
    )
    if kind is HttpKind.SSE and access.token_parameter:
        transport = TokenInQuery(transport or httpx2.AsyncHTTPTransport(verify=client_tls()), access.token_parameter)

    async def look(response: httpx2.Response) -> None:
        # A server usually has no stream besides its responses, so this error does not explain a later failure.
        is_usual = response.status_code == 405 and response.request.method == "GET" and kind is not HttpKind.SSE
        if response.status_code >= 400 and not is_usual:
            watch.status = response.status_code
            watch.wants_login = watch.wants_login or response.status_code == 401
            watch.challenge = response.headers.get("www-authenticate") or watch.challenge
        elif response.status_code < 400 and (watch.status == 401 or watch.is_connecting):
            watch.status, watch.wants_login = None, False  # logged in since, or an unknown request was refused
        cap(response, Bounds(MAXIMUM_MESSAGE_BYTES, MAXIMUM_VALUES))
        if kind is not HttpKind.SSE:
            check_answer(response)
            explain_refusal(response)

    pace = ReopeningPace()

    async def wait(request: httpx2.Request) -> None:
        if request.method == "GET":
            await pace.wait()

    return PatientClient(
        headers={**NO_COMPRESSION, **endpoint.headers},
        # No read timeout: calls have their own deadlines, and streams may be silent for hours.
        timeout=httpx2.Timeout(connect_seconds, read=None),
        auth=access.auth,
        transport=transport,
        verify=client_tls(),
        event_hooks={"request": [wait, close_cancelled_handshake], "response": [look]},
    )
