"""The load: a raw HTTP/1.1 keep-alive client, the same for every server, and too cheap to affect the measurement."""

import asyncio
import itertools
import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

DEADLINE_SECONDS = 60.0
FIRST_EVENT_SECONDS = 5.0
RECEIVE_BYTES = 65536
"""Size of the receive buffer in bytes; small, so that a server cannot be far ahead of the events counted here."""
_NUMBERS = itertools.count(1)
TOKEN = "benchmark"
"""Token of our server."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; ``head`` is in lower case. ``events`` is the number of stream events, ``seconds`` their time."""

    status: int
    head: bytes
    body: bytes
    events: int
    seconds: float


class Connection:
    """A connection for one request at a time."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self.headers = headers
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._path = parts.path or "/"
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        # Before it connects; otherwise the kernel chooses the size of the window.
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, (self._host, self._port))
        self._reader, self._writer = await asyncio.open_connection(sock=connection, limit=2**20)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
            await self._writer.wait_closed()

    async def post(
        self,
        body: bytes,
        on_event: Callable[[int], None] | None = None,
        on_piece: Callable[[bytes], None] | None = None,
    ) -> Answer:
        """Send a request and read the answer to its end.

        ``on_event`` receives the number of events so far, ``on_piece`` each piece of a stream as it comes.
        """
        assert self._reader is not None
        assert self._writer is not None
        reader = self._reader
        begin = time.perf_counter()
        self._writer.write(self._request_head(len(body)) + body)
        async with asyncio.timeout(DEADLINE_SECONDS):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            status = int(head[9:12])
            _, found, rest = head.partition(b"content-length:")
            if found:
                content = await reader.readexactly(int(rest.partition(b"\r\n")[0]))
            elif b"transfer-encoding: chunked" in head:
                content = await self._chunks(on_event, on_piece)
            else:
                content = b""
        return Answer(status, head, content, _events(content), time.perf_counter() - begin)

    async def first_event(self, body: bytes) -> Answer:
        """Send a request and read its stream up to the first whole event; afterwards the connection is unusable."""
        assert self._reader is not None
        assert self._writer is not None
        begin = time.perf_counter()
        self._writer.write(self._request_head(len(body)) + body)
        received = b""
        async with asyncio.timeout(FIRST_EVENT_SECONDS):
            while b"data: {" not in received or not received.rstrip(b"\r\n0").endswith(b"}"):
                piece = await self._reader.read(2**16)
                if not piece:
                    raise ConnectionError(f"the server closed the connection before an event: {received[-300:]!r}")
                received += piece
        head, _, content = received.partition(b"\r\n\r\n")
        return Answer(int(head[9:12]), head.lower(), content, _events(content), time.perf_counter() - begin)

    def _request_head(self, length: int) -> bytes:
        lines = {
            "Host": f"{self._host}:{self._port}",
            "Content-Type": "application/json",
            "Content-Length": str(length),
            **self.headers,
        }
        fields = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST {self._path} HTTP/1.1\r\n{fields}\r\n".encode()

    async def _chunks(self, on_event: Callable[[int], None] | None, on_piece: Callable[[bytes], None] | None) -> bytes:
        """Return the body up to its last chunk; chunk heads are left in it, which is harmless here."""
        assert self._reader is not None
        pieces: list[bytes] = []
        end, events = b"", 0
        while True:
            piece = await self._reader.read(2**18)
            if not piece:
                raise ConnectionError("the server closed the connection within an answer")
            pieces.append(piece)
            if on_piece is not None:
                on_piece(piece)
            if on_event is not None:
                events += _events(piece)
                on_event(events)
            end = (end + piece)[-7:]
            if end == b"\r\n0\r\n\r\n":
                return b"".join(pieces)


def _events(content: bytes) -> int:
    return content.count(b"data: {")


def message(text: str, metadata: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a message of A2A 0.3 with a new id: a message with a repeated id would begin no task."""
    content: dict[str, Any] = {
        "kind": "message",
        "role": "user",
        "messageId": f"message-{next(_NUMBERS)}",
        "parts": [{"kind": "text", "text": text}],
        **more,
    }
    if metadata is not None:
        content["metadata"] = metadata
    return content


def rpc(method: str, params: object) -> bytes:
    """Return a JSON-RPC request."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
