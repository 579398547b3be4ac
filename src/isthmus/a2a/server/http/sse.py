"""Server-sent events: one response per stream, at the reader's pace.

A stream asks for its next events only when the reader has taken the previous ones; nothing is queued, and events that
are ready together are sent together. It notices when its reader leaves, keeps an idle connection alive with comments,
and ends properly, with a last chunk, when the server stops.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Self

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from isthmus.a2a.server.http.first_step import FirstStep
from isthmus.encoding.event_stream import KEEP_ALIVE, comment

STOPPING = comment("the server is stopping")
"""End of a stream that the stop of the server has cut."""
WATCH_AFTER_SECONDS = 0.25
"""Time in seconds until a stream is watched. A shorter stream costs no asyncio task; a reader that leaves earlier is
noticed only then."""
GATHERED_BYTES = 16384
"""Number of bytes after which gathered events are sent, even if more are ready."""


class OpenStreams:
    """The answers that wait for tasks, which must end when the server stops."""

    def __init__(self) -> None:
        self._scopes: set[StreamScope] = set()
        self.closing = False
        """Whether answers are ended, also those that begin now."""
        self.reason: str | None = None
        """Reason of the end; None: the server stops."""

    def __len__(self) -> int:
        return len(self._scopes)

    def scope(self) -> "StreamScope":
        """Return a scope for an answer; it is cancelled when the server stops."""
        return StreamScope(self)

    def enter(self, scope: "StreamScope") -> None:
        """Add the scope of an answer that begins."""
        self._scopes.add(scope)
        if self.closing:
            scope.cancel()

    def leave(self, scope: "StreamScope") -> None:
        """Forget the scope of an answer that has ended."""
        self._scopes.discard(scope)

    def close(self, reason: str | None = None) -> None:
        """End all answers, also those that begin later; without a reason because the server stops."""
        self.closing, self.reason = True, reason
        for scope in tuple(self._scopes):
            scope.cancel()


class StreamScope:
    """An ``async with`` block that :meth:`cancel` ends early, without an error; ``is_cancelled`` afterwards.

    Each answer has one, and anyio's cancel scope would cost several times as much.
    """

    def __init__(self, streams: OpenStreams) -> None:
        self._streams = streams
        self._timeout = asyncio.timeout(None)
        self.is_cancelled = False

    def cancel(self) -> None:
        """End the block at its next wait."""
        if not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._streams.enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._streams.leave(self)
        try:
            return await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:  # made of the cancellation; an error of the block is passed in, not raised
            self.is_cancelled = True
            return True


class EventStream(StreamingResponse):
    """An event stream of frames, with a comment after ``keep_alive`` seconds without an event.

    ``last_frame`` returns the last frame of a stream that is ended for a reason.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        frames: AsyncGenerator[bytes, None],
        streams: OpenStreams,
        *,
        keep_alive: float = 15,
        headers: Mapping[str, str] | None = None,
        last_frame: Callable[[str], bytes] | None = None,
    ) -> None:
        super().__init__(frames, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no", **(headers or {})})
        self._frames = frames
        self._streams = streams
        self._keep_alive = keep_alive
        self._last_frame = last_frame

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head, every frame, and the end, unless the reader leaves.

        The stream ends early with a comment when the server stops, and with an error when it is ended for a reason.
        """
        end = b""
        work = self._streams.scope()
        watch = _StreamWatch(receive, send, work, self._keep_alive)
        try:
            async with work:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async with aclosing(self._frames) as frames:
                    end = await self._send_frames(frames, watch, send)
        finally:
            watch.end()
        if watch.reader_has_left:
            return
        if work.is_cancelled:
            reason = self._streams.reason
            end = STOPPING if reason is None or self._last_frame is None else self._last_frame(reason)
        await send({"type": "http.response.body", "body": end, "more_body": False})

    async def _send_frames(self, frames: AsyncGenerator[bytes, None], watch: "_StreamWatch", send: Send) -> bytes:
        """Send the frames, and return the last of them, which are sent together with the end."""
        gathered: list[bytes] = []
        size = 0

        async def flush() -> None:
            nonlocal size
            if gathered:
                body = b"".join(gathered)
                gathered.clear()
                size = 0
                watch.last_sent = watch.now()
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
            return b"".join(gathered)


class _StreamWatch:
    """Watches a stream: sends comments while nothing else is sent, and cancels its work when the reader leaves.

    A stream that ends before ``WATCH_AFTER_SECONDS`` costs a timer, not an asyncio task.
    """

    def __init__(self, receive: Receive, send: Send, work: StreamScope, interval: float) -> None:
        self._receive = receive
        self._send = send
        self._work = work
        self._interval = interval
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(min(interval, WATCH_AFTER_SECONDS), self._begin)
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
        with contextlib.suppress(OSError):  # sending to a reader that has left
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
