"""Opens the transport that a server's configuration names, and watches HTTP answers that the SDK keeps to itself.

A client's own endpoint (Origin.CLIENT) is connected to only at addresses that the rule of this server allows, checked
after resolution at each request; no redirect leaves the origin anywhere. Deliberately not here: sessions.
"""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from isthmus.ide.checked_transport import CheckedTransport, WhyNot
from isthmus.mcp_host.config import Endpoint, HttpEndpoint, HttpKind, StdioEndpoint
from isthmus.mcp_host.http_caps import NO_COMPRESSION, cap
from isthmus.mcp_host.server_log import ServerLog
from isthmus.mcp_host.server_sandbox import ServerSandbox
from isthmus.mcp_host.stdio import MAXIMUM_MESSAGE_BYTES, stdio_streams


@dataclass(slots=True)
class HttpWatch:
    """The last refusal that a server answered with, and what it says of how to log in."""

    status: int | None = None
    challenge: str | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """How endpoints are reached. ``why_not``: the rule for addresses; None: every address may be reached."""

    environment: Mapping[str, str]
    auth: httpx2.Auth | None = None
    why_not: WhyNot | None = None
    sandbox: ServerSandbox | None = None


def streams(
    endpoint: Endpoint, kind: HttpKind, access: Access, connect_seconds: float, log: ServerLog, watch: HttpWatch
) -> AbstractAsyncContextManager[Any]:
    """The transport to `endpoint`; `kind` says how a URL is spoken to."""
    if isinstance(endpoint, StdioEndpoint):
        return stdio_streams(endpoint, access.environment, log, access.sandbox)
    client = _http_client(endpoint, access, connect_seconds, watch)
    if kind is HttpKind.SSE:

        def made(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return client

        return sse_client(endpoint.url, httpx_client_factory=made)
    return _streamable(endpoint.url, client)


@contextlib.asynccontextmanager
async def _streamable(url: str, client: httpx2.AsyncClient) -> AsyncGenerator[Any, None]:
    async with (
        client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAXIMUM_MESSAGE_BYTES) as found,
    ):
        yield found


def _http_client(
    endpoint: HttpEndpoint, access: Access, connect_seconds: float, watch: HttpWatch
) -> httpx2.AsyncClient:
    async def look(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            watch.status = response.status_code
            watch.challenge = response.headers.get("www-authenticate")
        cap(response, MAXIMUM_MESSAGE_BYTES)

    return httpx2.AsyncClient(
        headers={**NO_COMPRESSION, **endpoint.headers},
        # No limit to silence here: calls have deadlines of their own, and streams are silent for hours.
        timeout=httpx2.Timeout(connect_seconds, read=None),
        auth=access.auth,
        transport=None if access.why_not is None else CheckedTransport(access.why_not),
        event_hooks={"response": [look]},
    )
