"""Server-sent events out of the server: one response per stream, ended cleanly, pulled at the reader's pace.

A stream takes its next events only when the reader has taken the last ones; nothing is queued for it, and events that
are there together go out together. It notices a reader that leaves, keeps idle connections alive with comments, and
ends with a whole last chunk when the server stops. Deliberately not here: what the events are.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

import anyio
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from isthmus.a2a.server.first_step import FirstStep

STOPPING = b": the server is stopping\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
LASTING_SECONDS = 0.25
"""How long a stream may run before it is looked after; also how late a reader that left at once is noticed."""
GATHERED_BYTES = 16384
"""What is sent at once at the latest, however many events are there."""


def event_frame(data: bytes, seq: int | None = None) -> bytes:
    """One event; ``data`` is one line. Only kept events have an id, which a reader resumes after."""
    return b"data: %b\n\n" % data if seq is None else b"id: %d\ndata: %b\n\n" % (seq, data)


class OpenStreams:
    """What is being answered, so that it can be ended when the server stops."""

    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()
        self.closing = False
        self.why: str | None = None
        """Why they end, when it is not because the server stops."""

    def __len__(self) -> int:
        return len(self._scopes)

    def enter(self) -> anyio.CancelScope:
        """Return a scope to work in; it is cancelled when the server stops."""
        scope = anyio.CancelScope()
        self._scopes.add(scope)
        if self.closing:
            scope.cancel()
        return scope

    def leave(self, scope: anyio.CancelScope) -> None:
        """The work is done."""
        self._scopes.discard(scope)

    def close(self, why: str | None = None) -> None:
        """End everything that is open, and whatever still comes: because the server stops, or for the reason given."""
        self.closing, self.why = True, why
        for scope in tuple(self._scopes):
            scope.cancel()


class EventStream(StreamingResponse):
    """An event stream of frames. ``keep_alive`` is how many seconds without an event make a comment.

    ``farewell`` makes the last frame of a stream that is ended for a reason.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        frames: AsyncGenerator[bytes, None],
        streams: OpenStreams,
        *,
        keep_alive: float = 15,
        headers: Mapping[str, str] | None = None,
        farewell: Callable[[str], bytes] | None = None,
    ) -> None:
        super().__init__(frames, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no", **(headers or {})})
        self._frames = frames
        self._streams = streams
        self._keep_alive = keep_alive
        self._farewell = farewell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head, every frame, and the end; returns when the reader has left, too.

        It is cut short with a comment when the server stops, and with an error when it is ended for another reason.
        """
        work = self._streams.enter()
        care = _Care(receive, send, work, self._keep_alive)
        try:
            with work:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async with aclosing(self._frames) as frames:
                    await self._send_frames(frames, care, send)
        finally:
            self._streams.leave(work)
            care.end()
        if care.reader_has_left:
            return
        end = b""
        if work.cancelled_caught:
            why = self._streams.why
            end = STOPPING if why is None or self._farewell is None else self._farewell(why)
        await send({"type": "http.response.body", "body": end, "more_body": False})

    async def _send_frames(self, frames: AsyncGenerator[bytes, None], care: "_Care", send: Send) -> None:
        gathered: list[bytes] = []
        size = 0

        async def flush() -> None:
            nonlocal size
            if gathered:
                body = b"".join(gathered)
                gathered.clear()
                size = 0
                care.last_sent = care.now()
                await send({"type": "http.response.body", "body": body, "more_body": True})

        try:
            while True:
                step = FirstStep(anext(frames))
                frame = step.result if step.is_done else await step.after(flush)
                gathered.append(frame)
                size += len(frame)
                if size >= GATHERED_BYTES:
                    await flush()
        except StopAsyncIteration:
            await flush()


class _Care:
    """Looks after a stream that lasts: comments while nothing is sent, and the end of its work when the reader leaves.

    A stream that is over before ``LASTING_SECONDS`` costs a timer, not a task.
    """

    def __init__(self, receive: Receive, send: Send, work: anyio.CancelScope, interval: float) -> None:
        self._receive = receive
        self._send = send
        self._work = work
        self._interval = interval
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(min(interval, LASTING_SECONDS), self._begin)
        self.last_sent = self.now()
        self.reader_has_left = False

    def now(self) -> float:
        return self._loop.time()

    def end(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        with contextlib.suppress(OSError):  # what is sent to a reader that has left
            while not self.reader_has_left:
                rest = self.last_sent + self._interval - self.now()
                if rest <= 0:
                    self.last_sent = self.now()
                    await self._send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})
                    continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(rest):
                        self.reader_has_left = (await self._receive())["type"] == "http.disconnect"
        self.reader_has_left = True
        self._work.cancel()
