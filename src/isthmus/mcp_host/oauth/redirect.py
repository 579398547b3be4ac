"""A small HTTP server on the loopback interface that receives the redirect of one login, or text that the user pastes.

It listens at ``http://localhost:7777/oauth/callback``, at another port if that port is taken, or at the configured
address. Only an answer with the state of this login is accepted.
"""

import asyncio
import contextlib
import errno
import html
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from urllib.parse import parse_qs, urlsplit

from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.oauth.messages import pasted, said
from isthmus.network.loopback import LOOPBACK_NAMES
from isthmus.tools.port.failure import ToolFailure

PORT = 7777
PATH = "/oauth/callback"
CATEGORY = "mcp_login"
MAXIMUM_HEAD_BYTES = 32_768
MAXIMUM_CONNECTIONS = 32
_ATTEMPTS = 10


class RedirectReceiver:
    """Receiver of the redirect of one login at `uri`; `answer` gets the values of its query."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._path = urlsplit(uri).path or "/"
        self._open = 0
        self.state: str | None = None
        """The state that the redirect must have; None refuses every redirect."""
        self.answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    def expect(self, state: str) -> None:
        """Accept an answer with this state from now on."""
        if self.answer.done():
            self.answer = asyncio.get_running_loop().create_future()
        self.state = state

    def paste(self, text: str) -> None:
        """Accept the text that the user pasted: the final address of the browser, or the code in it.

        Raises:
            OAuthError: it is neither of them, or belongs to another login.
        """
        values = pasted(text)
        if "state" in values and not self._is_expected(values["state"]):
            raise OAuthError(
                "that is the answer to another login (its state differs); open the page that was named last"
            )
        if self.state is None or self.answer.done():
            raise OAuthError("this login does not wait for an answer any more")
        self.answer.set_result(values)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection. Close it if there are too many: any program on this machine can connect."""
        if self._open >= MAXIMUM_CONNECTIONS:
            writer.close()
            return
        self._open += 1
        try:
            await self._answer_one(reader, writer)
        finally:
            self._open -= 1

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._take(head.split(b"\r\n", 1)[0].decode("latin-1"))
                body = f"<!doctype html><meta charset=utf-8><title>Isthmus</title><p>{html.escape(text)}</p>".encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
                    "Connection: close\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        writer.close()

    def _take(self, request: str) -> tuple[str, str]:
        method, _, rest = request.partition(" ")
        try:
            target = urlsplit(rest.rpartition(" ")[0])
        except ValueError:  # such as //[
            return "400 Bad Request", "Not a redirect address."
        if method != "GET" or target.path != self._path:
            return "404 Not Found", "Not found."
        values = {name: found[0] for name, found in parse_qs(target.query).items()}
        if not self._is_expected(values.get("state")):
            return "400 Bad Request", "This answer belongs to another login."
        if not self.answer.done():
            self.answer.set_result(values)
        if "error" in values:
            return "200 OK", f"The login was refused: {said(values)}"
        return "200 OK", "The login has arrived. You can close this page."

    def _is_expected(self, state: str | None) -> bool:
        return (
            state is not None and self.state is not None and secrets.compare_digest(state.encode(), self.state.encode())
        )


@contextlib.asynccontextmanager
async def receiving(redirect_uri: str | None) -> AsyncGenerator[RedirectReceiver]:
    """Listen for the redirect to the configured URI or the default one, and yield its receiver.

    Raises:
        ToolFailure: the configured redirect URI is not on this machine, or its port is taken.
    """
    try:
        parts = urlsplit(redirect_uri or f"http://localhost:{PORT}{PATH}")
        port = parts.port or 80
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.hostname not in LOOPBACK_NAMES or parts.scheme != "http":
        raise ToolFailure(f"oauth.redirectUri {redirect_uri}: expected http://localhost and a port", CATEGORY)
    receiver = RedirectReceiver(redirect_uri or f"http://localhost:{PORT}{PATH}")
    hosts = ("127.0.0.1", "::1") if parts.hostname == "localhost" else (parts.hostname,)
    async with contextlib.AsyncExitStack() as stack:
        try:
            await _listen(stack, receiver, hosts, port)
        except OSError as error:
            if redirect_uri is not None:
                raise ToolFailure(
                    f"the port of oauth.redirectUri {redirect_uri} is taken: {error}", CATEGORY
                ) from error
            port = await _listen_anywhere(stack, receiver, hosts)
            receiver.uri = f"http://localhost:{port}{PATH}"
        yield receiver


async def _listen_anywhere(stack: contextlib.AsyncExitStack, receiver: RedirectReceiver, hosts: Sequence[str]) -> int:
    """Listen on a port that is free at all of the hosts, and return it.

    Raises:
        OSError: there is none.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return await _listen(stack, receiver, hosts, 0)
        except OSError:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


async def _listen(stack: contextlib.AsyncExitStack, receiver: RedirectReceiver, hosts: Sequence[str], port: int) -> int:
    """Listen on the same port of all hosts, except for IPv6 where this machine has none, and return it. 0: any port.

    A browser that is sent to localhost tries one address and then the other: a program that listens at one of them
    would get the code.

    Raises:
        OSError: another program has the port at one of the hosts; nothing listens then.
    """
    async with contextlib.AsyncExitStack() as opened:
        for host in hosts:
            try:
                server = await asyncio.start_server(receiver.handle, host, port, limit=MAXIMUM_HEAD_BYTES)
            except OSError as error:
                if host == hosts[0] or error.errno == errno.EADDRINUSE:
                    raise
                continue
            opened.callback(server.close)
            port = int(server.sockets[0].getsockname()[1])
        stack.push_async_exit(opened.pop_all())
    return port
