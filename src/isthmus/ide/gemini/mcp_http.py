"""Streamable HTTP to one MCP server: a thin layer over :mod:`isthmus.ide.mcp.mcp_client`, with httpx2.

Responses are JSON or an event stream. Notifications are received on the stream of :meth:`McpConnection.listen`, which
the caller reopens as needed. Connects only to loopback addresses, and to URLs from a client after a check of their
addresses; never through a proxy.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from enum import Enum
from typing import assert_never

import httpx2

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import encode_ascii
from isthmus.errors import IsthmusError
from isthmus.ide.ide_protocol import RemoteEndpoint
from isthmus.ide.mcp import mcp_client
from isthmus.ide.mcp.mcp_client import McpClient, ToolOutcome
from isthmus.network.checked_transport import CheckedTransport
from isthmus.network.client_tls import client_tls
from isthmus.network.handshakes import close_cancelled_handshake
from isthmus.record import record
from isthmus.rpc import messages as rpc
from isthmus.rpc.wire_log import WireLog

MAXIMUM_ANSWER_BYTES = 64 * 1024 * 1024
SILENT_STREAM_SECONDS = 300.0
"""Maximum silence in seconds before a stream is reopened; a keep-alive prevents it."""
_CONNECT_SECONDS = 2.0
_STREAM_HEAD_SECONDS = 5.0
_WIRE = WireLog("IDE")


class McpError(IsthmusError):
    """An MCP request that failed; the text is the reason."""


class ServerUnreachableError(McpError):
    """A server that does not listen, or a connection that broke before the answer."""


class NoAnswerError(McpError):
    """A request that was not answered within its deadline."""


class SessionEndedError(McpError):
    """A session that the server no longer knows."""


class StreamEnd(Enum):
    """Reason why :meth:`McpConnection.listen` returned."""

    ENDED = "the server ended the stream"
    BROKEN = "the connection broke"
    UNREACHABLE = "nobody listens"
    SESSION_ENDED = "the server does not know the session"
    NOT_OFFERED = "the server has no stream of notifications"


@record
class GeminiEndpoint:
    """Address of a server; ``token`` is None if the server does not require one."""

    port: int
    token: str | None = None
    host: str = "127.0.0.1"
    remote: RemoteEndpoint | None = None
    """Endpoint that, if given, replaces the other fields."""

    @property
    def url(self) -> str:
        """URL of the server, with the path that real clients use."""
        return f"http://{self.host}:{self.port}/mcp" if self.remote is None else self.remote.url

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of each request."""
        if self.remote is not None:
            return self.remote.headers
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    def __str__(self) -> str:
        """Return the URL without its query, which may contain a secret."""
        return self.url.partition("?")[0]


class McpConnection:
    """A session with a server. ``on_notification`` receives the notifications in order, and must return at once."""

    def __init__(self, endpoint: GeminiEndpoint, on_notification: Callable[[rpc.Notification], None]) -> None:
        self.endpoint = endpoint
        self._on_notification = on_notification
        self._path = httpx2.URL(endpoint.url).path
        self._core = McpClient()
        self._session_id: str | None = None
        self._last_event_id: str | None = None
        policy = endpoint.remote.address_policy if endpoint.remote is not None else None
        # trust_env: no proxy between two processes of one machine.
        self._http = httpx2.AsyncClient(
            headers=dict(endpoint.headers),
            trust_env=False,
            follow_redirects=False,
            verify=client_tls(),
            transport=None if policy is None else CheckedTransport(policy),
            event_hooks={"request": [close_cancelled_handshake]},
        )

    async def initialize(self, timeout: float) -> None:
        """Begin a session.

        Raises:
            McpError: no MCP server answers, or it refuses our token or supports none of our protocol versions.
        """
        result = await self._request(self._core.initialize(), timeout)
        completed = self._core.initialized(result)
        if completed is None:
            version = str(result.get("protocolVersion"))[:50]
            raise McpError(f"{self.endpoint}: expected a known MCP protocol version, received {version}")
        await self._send(completed, timeout)

    async def tool_names(self, timeout: float) -> frozenset[str]:
        """Return the names in ``tools/list``; empty for a server without tools."""
        try:
            return mcp_client.tool_names(await self._request(self._core.request("tools/list", {}), timeout))
        except _CallFailedError as error:
            if error.code == rpc.METHOD_NOT_FOUND:
                return frozenset()
            raise

    async def call_tool(self, name: str, arguments: JsonObject, timeout: float, answered_by: str = "") -> ToolOutcome:
        """Call a tool; a call that closes a view may say who answered its question elsewhere.

        Raises:
            McpError: the call failed without a result.
        """
        return mcp_client.tool_outcome(await self._request(self._core.call_tool(name, arguments, answered_by), timeout))

    async def listen(self, on_open: Callable[[], None]) -> StreamEnd:
        """Receive the server's notifications until the stream ends, starting after the last received event."""
        headers = {"accept": "text/event-stream"}
        if self._last_event_id is not None:
            headers["last-event-id"] = self._last_event_id
        timeout = httpx2.Timeout(_CONNECT_SECONDS, connect=_CONNECT_SECONDS, read=SILENT_STREAM_SECONDS)
        opened = False
        _WIRE.sent(f"GET {self._path}")
        try:
            async with AsyncExitStack() as stack:
                request = self._http.stream(
                    "GET", self.endpoint.url, headers=headers | self._session_headers(), timeout=timeout
                )
                async with asyncio.timeout(_STREAM_HEAD_SECONDS):
                    response = await stack.enter_async_context(request)
                if response.status_code == 405 or (response.status_code == 404 and self._session_id is None):
                    return StreamEnd.NOT_OFFERED
                if response.status_code != 200:
                    return StreamEnd.SESSION_ENDED
                opened = True
                on_open()
                async for event in httpx2.EventSource(response, max_event_size=MAXIMUM_ANSWER_BYTES):
                    if event.id:
                        self._last_event_id = event.id
                    if event.data:
                        _WIRE.received(f"event {event.id}".rstrip(), event.data)
                        await self._take(event.data)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            return StreamEnd.UNREACHABLE
        except httpx2.ReadTimeout:
            return StreamEnd.ENDED if opened else StreamEnd.BROKEN
        except (httpx2.HTTPError, McpError, TimeoutError):
            return StreamEnd.BROKEN
        return StreamEnd.ENDED

    async def aclose(self) -> None:
        """End the session, as far as the server allows, and disconnect."""
        if self._session_id is not None:
            with suppress(httpx2.HTTPError):  # the server is gone or hangs; it forgets idle sessions by itself
                await self._http.delete(self.endpoint.url, headers=self._session_headers(), timeout=1.0)
        await self._http.aclose()

    def _session_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        if self._session_id is not None:
            headers["mcp-session-id"] = self._session_id
        if self._core.protocol_version is not None:
            headers["mcp-protocol-version"] = self._core.protocol_version
        return headers

    async def _request(self, message: rpc.JsonMessage, timeout: float) -> JsonObject:
        async with self._post(message, timeout) as response:
            if response.headers.get("mcp-session-id"):
                self._session_id = response.headers["mcp-session-id"]
            async for data in _bodies(response):
                _WIRE.received(f"{response.status_code} {response.reason_phrase}", data)
                result = await self._take(data, message["id"])
                if result is not None:
                    return result
        raise ServerUnreachableError(f"{self.endpoint}: expected an answer to {message['method']}, received none")

    async def _send(self, message: rpc.JsonMessage, timeout: float) -> None:
        async with self._post(message, timeout):
            pass

    @asynccontextmanager
    async def _post(self, message: rpc.JsonMessage, timeout: float) -> AsyncGenerator[httpx2.Response]:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        method = message.get("method", "an answer")
        content = encode_ascii(message)
        _WIRE.sent(f"POST {self._path}", content)
        try:
            async with (
                asyncio.timeout(timeout),
                self._http.stream(
                    "POST",
                    self.endpoint.url,
                    content=content,
                    headers=headers | self._session_headers(),
                    timeout=httpx2.Timeout(timeout, connect=_CONNECT_SECONDS),
                ) as response,
            ):
                self._check(response, method)
                yield response
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise NoAnswerError(f"{self.endpoint}: no answer to {method} within {timeout:g} s") from error
        except httpx2.HTTPError as error:
            raise ServerUnreachableError(f"{self.endpoint}: {str(error) or type(error).__name__}") from error

    def _check(self, response: httpx2.Response, method: str) -> None:
        status = response.status_code
        if status in (200, 202, 204):
            return
        if status in (401, 403):
            raise McpError(f"{self.endpoint}: refused with {status}; the token or the address is not the server's")
        if status in (400, 404) and self._session_id is not None:
            raise SessionEndedError(f"{self.endpoint}: the session has ended ({status})")
        kind = ServerUnreachableError if status >= 500 else McpError  # a server that shuts down sends 5xx
        raise kind(f"{self.endpoint}: expected an MCP answer to {method}, received status {status}")

    async def _take(self, data: str | bytes, request_id: int | None = None) -> JsonObject | None:
        """Handle the messages in ``data``; return the result of our request ``request_id`` if it is among them."""
        found: JsonObject | None = None
        for incoming in mcp_client.receive(data):
            match incoming:
                case rpc.Response(number, result) if number == request_id:
                    found = result
                case rpc.ErrorResponse(number, code, text) if number == request_id:
                    raise _CallFailedError(f"{self.endpoint}: {text}", code)
                case rpc.Notification():
                    self._on_notification(incoming)
                case rpc.Request():
                    await self._send(mcp_client.answer(incoming), _CONNECT_SECONDS)
                case rpc.Response() | rpc.ErrorResponse() | rpc.ParseError():
                    pass  # a late answer, or an unreadable message
                case _:
                    assert_never(incoming)
        return found


class _CallFailedError(McpError):
    def __init__(self, text: str, code: int) -> None:
        self.code = code
        super().__init__(text)


async def _bodies(response: httpx2.Response) -> AsyncIterator[str | bytes]:
    """Yield the messages of a response: the events of a stream, or otherwise the whole body."""
    if response.headers.get("content-type", "").split(";")[0].strip().lower() == "text/event-stream":
        async for event in httpx2.EventSource(response, max_event_size=MAXIMUM_ANSWER_BYTES):
            if event.data:
                yield event.data
        return
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MAXIMUM_ANSWER_BYTES:
            raise McpError(f"expected at most {MAXIMUM_ANSWER_BYTES} bytes as an answer, received more")
        chunks.append(chunk)
    if chunks:
        yield b"".join(chunks)
