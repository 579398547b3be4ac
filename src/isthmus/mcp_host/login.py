"""Logs a person in to a server: shows the URL, receives the browser's redirect here, keeps the tokens, connects.

The redirect comes to ``http://localhost:7777/oauth/callback``, to another port when that one is taken, or where the
configuration says. Only a redirect with the state of this very login counts.
"""

import asyncio
import contextlib
import html
import importlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qs, urlsplit

from isthmus.amounts import show_count
from isthmus.mcp_host.config import HttpEndpoint, HttpKind
from isthmus.mcp_host.connection import ServerConnection
from isthmus.tools.failure import ToolFailure
from isthmus.tools.servers import ServerState

if TYPE_CHECKING:
    import httpx2

LOGIN_SECONDS = 300.0
"""How long a person may take."""
PORT = 7777
PATH = "/oauth/callback"
CATEGORY = "mcp_login"


Paste: TypeAlias = Callable[[], Awaitable[str]]
"""Waits for what the person pastes: the whole address that the browser ended at, or the code in it. Called again after
a text that was neither; cancelled when the redirect itself came."""


class RedirectReceiver:
    """A small HTTP server on the loopback that takes the redirect of one login."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.state: str | None = None
        """The state that the redirect must have; until it is known every redirect is refused."""
        self.answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._take(head.split(b"\r\n", 1)[0].decode("latin-1"))
                body = f"<!doctype html><meta charset=utf-8><title>Isthmus</title><p>{html.escape(text)}</p>".encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
                    "Connection: close\r\nCache-Control: no-store\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        writer.close()

    def _take(self, request: str) -> tuple[str, str]:
        method, _, rest = request.partition(" ")
        try:
            target = urlsplit(rest.rpartition(" ")[0])
        except ValueError:  # such as //[
            return "400 Bad Request", "This is no address."
        if method != "GET" or target.path != self._path:
            return "404 Not Found", "There is nothing here."
        values = {name: found[0] for name, found in parse_qs(target.query).items()}
        if self.state is None or values.get("state") != self.state:
            return "400 Bad Request", "This is not the answer to the login that is going on."
        if not self.answer.done():
            self.answer.set_result(values)
        if "error" in values:
            return "200 OK", f"The login was refused: {values.get('error_description', values['error'])}"
        return "200 OK", "You are logged in. You can close this page."


@contextlib.asynccontextmanager
async def receiving(redirect_uri: str | None) -> AsyncGenerator[tuple[str, RedirectReceiver]]:
    """The redirect URI, and what receives it.

    Raises:
        ToolFailure: the configured redirect URI is not of this machine, or its port is taken.
    """
    parts = urlsplit(redirect_uri or f"http://localhost:{PORT}{PATH}")
    if parts.hostname not in ("localhost", "127.0.0.1", "::1") or parts.scheme != "http":
        raise ToolFailure(f"oauth.redirectUri {redirect_uri}: expected http://localhost and a port", CATEGORY)
    receiver = RedirectReceiver(parts.path or "/")
    port = parts.port or 80
    try:
        server = await asyncio.start_server(receiver.handle, "127.0.0.1", port, limit=16_384)
    except OSError as error:
        if redirect_uri is not None:
            raise ToolFailure(f"the port of oauth.redirectUri {redirect_uri} is taken: {error}", CATEGORY) from error
        server = await asyncio.start_server(receiver.handle, "127.0.0.1", 0, limit=16_384)
        port = int(server.sockets[0].getsockname()[1])
    try:
        yield redirect_uri or f"http://localhost:{port}{PATH}", receiver
    finally:
        server.close()


async def login(
    connection: ServerConnection,
    home: Path,
    open_browser: Callable[[str], None] | None = None,
    paste: Paste | None = None,
) -> AsyncGenerator[str, None]:
    """Log in, telling on the way what the person has to do and how it ended.

    `paste` is called once the page to open was told; without it the redirect alone is awaited.

    Raises:
        ToolFailure: it failed, or took too long.
    """
    await asyncio.to_thread(_import)
    config = connection.config
    endpoint = config.endpoint
    if not isinstance(endpoint, HttpEndpoint):
        raise ToolFailure(f"the MCP server {config.name!r} is a program here; it has no login", CATEGORY)
    news: asyncio.Queue[str | None] = asyncio.Queue()
    async with receiving(config.oauth.redirect_uri) as (redirect_uri, receiver):
        flow = asyncio.create_task(_flow(connection, endpoint, home, redirect_uri, receiver, news, open_browser))
        flow.add_done_callback(lambda _flow: news.put_nowait(None))
        try:
            while (line := await news.get()) is not None:
                yield line
            asked = await flow
        finally:
            flow.cancel()
            await asyncio.wait({flow}, timeout=2)
    if not asked:
        yield f"{config.name} does not ask for a login."
    await connection.refresh()
    if connection.state is ServerState.CONNECTED:
        yield f"{config.name} is connected; it has {show_count(len(connection.offer.tools), 'tool')}."
    else:
        raise ToolFailure(f"{config.name} is not connected after the login: {connection.problem}", CATEGORY)


def _import() -> None:
    """In a thread: the SDK takes a second, which the event loop has not."""
    importlib.import_module("isthmus.mcp_host.oauth")


async def _flow(
    connection: ServerConnection,
    endpoint: HttpEndpoint,
    home: Path,
    redirect_uri: str,
    receiver: RedirectReceiver,
    news: "asyncio.Queue[str | None]",
    open_browser: Callable[[str], None] | None,
) -> bool:
    """Make one request that has to be logged in for; False when the server wanted no login."""
    import httpx2
    from mcp.client.auth import OAuthFlowError
    from mcp.shared.auth import AuthorizationCodeResult

    from isthmus.mcp_host.oauth import interactive_login

    name, was_asked = connection.config.name, False

    async def redirect(url: str) -> None:
        nonlocal was_asked
        was_asked = True
        receiver.state = (parse_qs(urlsplit(url).query).get("state") or [None])[0]
        news.put_nowait(f"To log in to {name}, open this page in a browser on this machine:\n{url}")
        if open_browser is not None:
            await asyncio.to_thread(open_browser, url)

    async def callback() -> AuthorizationCodeResult:
        values = await receiver.answer
        if "error" in values:
            said = values.get("error_description") or values["error"]
            raise ToolFailure(f"the login to {name} was refused: {said}", CATEGORY)
        return AuthorizationCodeResult(code=values.get("code", ""), state=values.get("state"), iss=values.get("iss"))

    auth = interactive_login(connection.config, endpoint.url, home, redirect_uri, redirect, callback)
    headers = {**endpoint.headers, "Accept": "application/json, text/event-stream"}
    try:
        async with (
            asyncio.timeout(LOGIN_SECONDS),
            httpx2.AsyncClient(auth=auth, timeout=httpx2.Timeout(30)) as client,
            _request(client, endpoint, headers) as response,
        ):
            status = response.status_code
    except TimeoutError as error:
        raise ToolFailure(f"nobody logged in to {name} within {LOGIN_SECONDS:g} s", CATEGORY) from error
    except (httpx2.HTTPError, OAuthFlowError, ValueError) as error:
        raise ToolFailure(f"the login to {name} failed: {error or type(error).__name__}", CATEGORY) from error
    if status in (401, 403):
        raise ToolFailure(f"{name} refuses the login: HTTP {status}", CATEGORY)
    return was_asked


def _request(
    client: "httpx2.AsyncClient", endpoint: HttpEndpoint, headers: dict[str, str]
) -> "AbstractAsyncContextManager[httpx2.Response]":
    if endpoint.kind is HttpKind.SSE:
        return client.stream("GET", endpoint.url, headers=headers)
    return client.stream("POST", endpoint.url, headers=headers, json={"jsonrpc": "2.0", "id": 0, "method": "ping"})
