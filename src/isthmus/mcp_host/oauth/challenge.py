"""The challenge of an MCP server to a request without a token, which says where to log in."""

import asyncio

from isthmus.mcp_host.config.server_config import HttpEndpoint, HttpKind
from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.oauth.http import place
from isthmus.mcp_host.oauth.messages import Challenge

ANSWER_SECONDS = 10.0
"""Maximum time in seconds for the server's answer."""


async def challenge_of(endpoint: HttpEndpoint) -> Challenge | None:
    """Return the server's challenge to a request without a token; None if it accepts the request."""
    import httpx2

    from isthmus.mcp_host.diagnosis.unreachable import connection_problem
    from isthmus.network.client_tls import client_tls
    from isthmus.network.handshakes import close_cancelled_handshake

    headers = {**endpoint.headers, "Accept": "application/json, text/event-stream"}
    ping = {"jsonrpc": "2.0", "id": 0, "method": "ping"}
    methods = ("GET",) if endpoint.kind is HttpKind.SSE else ("POST",)
    if endpoint.kind is HttpKind.PROBE:
        methods = ("POST", "GET")
    try:
        async with (
            asyncio.timeout(ANSWER_SECONDS),
            httpx2.AsyncClient(
                timeout=ANSWER_SECONDS, verify=client_tls(), event_hooks={"request": [close_cancelled_handshake]}
            ) as client,
        ):
            for method in methods:
                body = ping if method == "POST" else None
                async with client.stream(method, endpoint.url, headers=headers, json=body) as response:
                    if response.status_code == 401:
                        return Challenge.of(response.headers.get("www-authenticate"))
    except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        reason = connection_problem(error) if str(error) else f"no answer within {ANSWER_SECONDS:g} s"
        raise OAuthError(f"{place(endpoint.url)} cannot be reached: {reason}") from error
    return None
