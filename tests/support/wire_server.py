"""A real HTTP/1.1 server with scripted answers, for the tests of every provider's streaming wire.

It runs in a thread of its own, so that sync tests, async tests and other processes can all talk to it. It can split
the bytes of a response anywhere, pause, hold, or cut the connection in mid-stream; it records every request and
notices a client that disconnects before the response is complete. It does not know models: see scripted_wire.py.

    with WireServer(lambda request: Answer.json({"ok": True})) as server:
        ...  # server.base_url, server.requests
"""

import asyncio
import contextlib
import functools
import itertools
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import h11

START_DEADLINE = 10
"""Seconds within which the server listens, and within which it ends."""
READ_SIZE = 65536


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of this many seconds in the response."""

    seconds: float


class Hold:
    """A pause until `release` is called, from any thread; a client that disconnects meanwhile is noticed at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._released = False
        self._waiting: list[Callable[[], None]] = []

    def release(self) -> None:
        """Continue the response."""
        with self._lock:
            self._released = True
            waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    async def wait(self) -> None:
        """Return when `release` was called."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            if self._released:
                return
            self._waiting.append(functools.partial(_wake, loop, event))
        await event.wait()


@dataclass(frozen=True, slots=True)
class Cut:
    """A close of the connection in the middle of the body."""


def _wake(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    # A closed loop has no waiters.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(event.set)


Piece: TypeAlias = bytes | Pause | Hold | Cut
Framing: TypeAlias = Literal["chunked", "length", "closed"]
"""How a response ends: by its last chunk, after the announced length, or when the connection is closed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The response. Each `bytes` piece is written and flushed separately, as one HTTP chunk if there are chunks."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    pieces: tuple[Piece, ...] = ()
    framing: Framing = "chunked"

    @classmethod
    def json(cls, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> "Answer":
        """Return a response with a whole JSON document."""
        return cls(status, {"content-type": "application/json", **(headers or {})}, (json.dumps(body).encode(),))


@dataclass(slots=True)
class WireRequest:
    """One request as received. Header names are lower case; `path` has no query."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    disconnected: threading.Event = field(default_factory=threading.Event)
    """Set when the client closed the connection before the response was complete."""
    answered: threading.Event = field(default_factory=threading.Event)
    """Set when the whole response was sent."""

    @property
    def json(self) -> Any:
        """The body, which must be JSON."""
        return json.loads(self.body)


Respond: TypeAlias = Callable[[WireRequest], Answer | Awaitable[Answer]]


def in_pieces(data: bytes, *positions: int) -> tuple[bytes, ...]:
    """`data` split at these byte positions; positions outside of it are ignored."""
    edges = [0, *sorted({position for position in positions if 0 < position < len(data)}), len(data)]
    return tuple(data[start:end] for start, end in itertools.pairwise(edges))


def in_pieces_of(data: bytes, size: int) -> tuple[bytes, ...]:
    """`data` in pieces of `size` bytes; size 1 splits inside every character that has more than one byte."""
    return tuple(data[start : start + size] for start in range(0, len(data), size))


class WireServer:
    """A server that calls `respond` on a free port of 127.0.0.1 while its `with` block runs."""

    def __init__(self, respond: Respond, port: int = 0) -> None:
        self._respond = respond
        self._port = port
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wire-server", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self.requests: list[WireRequest] = []

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT`, without a slash at the end."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        """The listening port."""
        return self._port

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen; return when connections are accepted."""
        self._thread.start()
        if not self._ready.wait(START_DEADLINE) or self._failure is not None:
            raise RuntimeError("the wire server did not start") from self._failure

    def stop(self) -> None:
        """Close every connection and end the thread."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_DEADLINE)
        if self._thread.is_alive():
            raise RuntimeError("the wire server did not stop")

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(_Connection(reader, writer, self._respond, self.requests).run())
            connections[task] = writer

            def ended(_: "asyncio.Task[None]") -> None:
                connections.pop(task, None)
                writer.close()  # also of one that was ended before it began

            task.add_done_callback(ended)

        server = await asyncio.start_server(accept, "127.0.0.1", self._port)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        # A connection that is being accepted is completed first: asyncio would leave it to the garbage collector.
        self._loop.remove_reader(server.sockets[0])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        server.close()
        while connections:
            for task, writer in tuple(connections.items()):
                writer.transport.abort()  # close() would wait for a client that does not read, past the loop's end
                task.cancel()
            await asyncio.gather(*connections, return_exceptions=True)
        await asyncio.sleep(0)


class _Connection:
    """One client connection: requests are answered one after the other."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        respond: Respond,
        requests: list[WireRequest],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._respond = respond
        self._requests = requests
        self._http = h11.Connection(h11.SERVER)

    async def run(self) -> None:
        try:
            while (request := await self._next_request()) is not None:
                self._requests.append(request)
                if not await self._answer(request):
                    return
                if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                    return
                self._http.start_next_cycle()
        except (ConnectionError, h11.RemoteProtocolError):
            return
        finally:
            self._writer.close()
            with contextlib.suppress(ConnectionError):
                await self._writer.wait_closed()

    async def _next_request(self) -> WireRequest | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    await self._send(h11.InformationalResponse(status_code=100, headers=[]))
                self._http.receive_data(await self._reader.read(READ_SIZE))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                path, _, query = head.target.decode().partition("?")
                headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
                return WireRequest(head.method.decode(), path, query, headers, bytes(body))
            else:
                return None

    async def _answer(self, request: WireRequest) -> bool:
        """Send the response; return False if the connection cannot be used again."""
        sending = asyncio.ensure_future(self._send_answer(request))
        watching = asyncio.ensure_future(self._watch())
        try:
            await asyncio.wait({sending, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                request.disconnected.set()
                return False
            return sending.result()
        except ConnectionError:
            request.disconnected.set()
            return False
        finally:
            for task in (sending, watching):
                task.cancel()
            await asyncio.gather(sending, watching, return_exceptions=True)

    async def _watch(self) -> None:
        """Return when the client closes; input before its turn is kept for the next request."""
        with contextlib.suppress(ConnectionError):
            while data := await self._reader.read(READ_SIZE):
                self._http.receive_data(data)

    async def _send_answer(self, request: WireRequest) -> bool:
        answer = self._respond(request)
        if not isinstance(answer, Answer):
            answer = await answer
        is_plain = answer.framing == "closed"
        if is_plain:
            lines = [
                f"HTTP/1.1 {answer.status} Scripted",
                *(f"{name}: {value}" for name, value in answer.headers.items()),
            ]
            await self._write("\r\n".join([*lines, "connection: close", "", ""]).encode())
        else:
            size = sum(len(piece) for piece in answer.pieces if isinstance(piece, bytes))
            framed = {"content-length": str(size)} if answer.framing == "length" else {"transfer-encoding": "chunked"}
            headers = {**framed, **answer.headers}
            await self._send(h11.Response(status_code=answer.status, headers=list(headers.items())))
        for piece in answer.pieces:
            match piece:
                case bytes():
                    await (self._write(piece) if is_plain else self._send(h11.Data(data=piece)))
                case Pause(seconds):
                    await asyncio.sleep(seconds)  # delay: the test names the pause within an answer
                case Hold():
                    await piece.wait()
                case Cut():
                    return False
        if not is_plain:
            await self._send(h11.EndOfMessage())
        request.answered.set()
        return not is_plain

    async def _send(self, event: h11.Event) -> None:
        await self._write(self._http.send(event))

    async def _write(self, data: bytes | None) -> None:
        if data:
            self._writer.write(data)
            await self._writer.drain()
            # A turn of the loop between two pieces, so that they leave in two segments.
            await asyncio.sleep(0)
