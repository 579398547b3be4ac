"""A recording HTTP relay: stands between two processes, passes on what they say, and keeps it as frames.

Requests and answers are passed on as they come, streams event by event; only the ``Host`` header is changed, so that
the server sees the address it listens on. Tokens are blacked out before a frame leaves this module. Not a proxy for
anything but the demonstration: one origin, HTTP/1.1, no compression.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import h11

READ_BYTES = 65536

_MessageEvent: TypeAlias = h11.Request | h11.InformationalResponse | h11.Response | h11.Data | h11.EndOfMessage


@dataclass(frozen=True, slots=True)
class Frame:
    """Something that was said. ``at`` is Unix time in seconds.

    ``kind`` is ``request``, ``response`` or ``event`` (one item of a stream, with its ``id:`` in ``event_id``).
    ``body`` is the JSON value where the body is JSON, else its text; None when there is none.
    """

    at: float
    link: str
    kind: str
    head: str
    body: Any = None
    event_id: str | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])


class Relay:
    """Relays its own ``port`` on 127.0.0.1 to ``target_port`` there; every frame goes to ``on_frame``."""

    def __init__(self, link: str, target_port: int, on_frame: Callable[[Frame], None]) -> None:
        self._link = link
        self.target_port = target_port
        self._on_frame = on_frame
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.close()
            return
        client = _Side(h11.Connection(h11.SERVER), reader, writer)
        server = _Side(h11.Connection(h11.CLIENT), upstream_reader, upstream_writer)
        with contextlib.suppress(ConnectionError, h11.ProtocolError, asyncio.IncompleteReadError):
            while await self._exchange(client, server):
                pass
        for side in (client, server):
            side.writer.close()

    async def _exchange(self, client: "_Side", server: "_Side") -> bool:
        """One request and its answer; False when the connection ends."""
        recorder = _Recorder(self._link, self._on_frame)
        async for event in client.events():
            if isinstance(event, h11.Request):
                recorder.request(event)
                host = f"127.0.0.1:{self.target_port}".encode()
                headers = [(name, host if name == b"host" else value) for name, value in event.headers]
                event = h11.Request(method=event.method, target=event.target, headers=headers)
            elif isinstance(event, h11.Data):
                recorder.data(bytes(event.data))
            await server.send(event)
        if not client.is_mid_exchange:
            return False
        recorder.end_of_request()
        # A client that leaves in the middle of a stream ends the exchange, as it would without a relay.
        watching = asyncio.create_task(client.wait_for_end())
        passing = asyncio.create_task(self._pass_answer(client, server, recorder))
        await asyncio.wait({watching, passing}, return_when=asyncio.FIRST_COMPLETED)
        for task in (watching, passing):
            task.cancel()
        await asyncio.gather(watching, passing, return_exceptions=True)
        return client.next_cycle() and server.next_cycle()

    async def _pass_answer(self, client: "_Side", server: "_Side", recorder: "_Recorder") -> None:
        async for event in server.events():
            if isinstance(event, h11.Response):
                recorder.response(event)
            elif isinstance(event, h11.Data):
                recorder.data(bytes(event.data))
            await client.send(event)
        recorder.end_of_response()


@dataclass(slots=True)
class _Side:
    connection: h11.Connection
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    _early: bytes = b""

    @property
    def is_mid_exchange(self) -> bool:
        return self.connection.their_state is h11.DONE

    async def events(self) -> AsyncGenerator[_MessageEvent, None]:
        """Yield the events of one message, to its end or the end of the connection."""
        while True:
            event = self.connection.next_event()
            if event is h11.NEED_DATA:
                early, self._early = self._early, b""
                self.connection.receive_data(early or await self.reader.read(READ_BYTES))
            elif isinstance(event, (h11.Request, h11.InformationalResponse, h11.Response, h11.Data, h11.EndOfMessage)):
                yield event
                if isinstance(event, h11.EndOfMessage):
                    return
            else:
                return  # paused until the next exchange, or closed

    async def send(self, event: _MessageEvent) -> None:
        self.writer.write(self.connection.send(event))
        await self.writer.drain()

    async def wait_for_end(self) -> None:
        """Until the other end closes; what it says meanwhile is the next request."""
        while data := await self.reader.read(READ_BYTES):
            self._early += data

    def next_cycle(self) -> bool:
        if self.connection.our_state is not h11.DONE or self.connection.their_state is not h11.DONE:
            return False
        self.connection.start_next_cycle()
        return True


class _Recorder:
    """Makes frames of one exchange."""

    def __init__(self, link: str, on_frame: Callable[[Frame], None]) -> None:
        self._link = link
        self._on_frame = on_frame
        self._head = ""
        self._headers: dict[str, str] = {}
        self._body = b""
        self._is_stream = False

    def request(self, event: h11.Request) -> None:
        self._head = f"{event.method.decode()} {event.target.decode()}"
        self._headers = _shown(event.headers)

    def response(self, event: h11.Response) -> None:
        self._head = f"{event.status_code} {event.reason.decode()}".strip()
        self._headers = _shown(event.headers)
        self._is_stream = self._headers.get("content-type", "").startswith("text/event-stream")
        if self._is_stream:
            self._tell("response", None)

    def data(self, data: bytes) -> None:
        self._body += data
        if self._is_stream:
            *whole, self._body = self._body.replace(b"\r\n", b"\n").split(b"\n\n")
            for item in whole:
                self._event(item.decode("utf-8", "replace"))

    def end_of_request(self) -> None:
        self._tell("request", _value(self._body))
        self._body = b""

    def end_of_response(self) -> None:
        if not self._is_stream:
            self._tell("response", _value(self._body))

    def _event(self, item: str) -> None:
        fields = [line.partition(":") for line in item.split("\n") if line and not line.startswith(":")]
        data = "\n".join(value.removeprefix(" ") for name, _, value in fields if name == "data")
        number = next((value.strip() for name, _, value in fields if name == "id"), None)
        if data:
            self._on_frame(Frame(time.time(), self._link, "event", self._head, _value(data.encode()), number))

    def _tell(self, kind: str, body: Any) -> None:
        self._on_frame(Frame(time.time(), self._link, kind, self._head, body, headers=self._headers))


def _value(body: bytes) -> Any:
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")


def _shown(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    decoded = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    if "authorization" in decoded:
        decoded["authorization"] = decoded["authorization"].partition(" ")[0] + " (hidden)"
    return decoded
