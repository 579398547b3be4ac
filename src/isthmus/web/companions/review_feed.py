"""The lines of the stream ``/ui/api/changes`` for reviews: one when something at a companion changed.

A line says that the reviews, questions and open files are to be asked for again, and no more. Companions are looked at
once for all pages, when they say that they changed, and not at all while no page is open.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from isthmus.encoding.event_stream import event_frame
from isthmus.encoding.json_text import encode
from isthmus.errors import IsthmusError
from isthmus.web.companions.reviews import Companions
from isthmus.web.sessions.changes import MAXIMUM_STREAMS, TooManyStreamsError

GATHER_SECONDS = 0.05
"""Time in seconds for which changes are gathered before they are looked at."""
AGAIN_SECONDS = 2.0
"""Time in seconds after which companions that could not be looked at are looked at again."""
CHANGED = event_frame(encode({"reviews": True}))
"""Line that stands for any change at companions."""
log = logging.getLogger(__name__)


class ReviewFeed:
    """The changes at companions, for the pages that are open. Used on one event loop."""

    def __init__(self, companions: Companions) -> None:
        self._companions = companions
        self._readers: set[asyncio.Event] = set()
        self._looking: asyncio.Task[None] | None = None

    def check(self) -> None:
        """Raise :class:`~isthmus.web.sessions.changes.TooManyStreamsError` if no further stream may be opened."""
        if len(self._readers) >= MAXIMUM_STREAMS:
            raise TooManyStreamsError(f"{MAXIMUM_STREAMS} streams of changes are open, which is the maximum")

    async def frames(self) -> AsyncGenerator[bytes]:
        """Yield a line at once, so that the page knows that it will be told, and one after each change."""
        news = asyncio.Event()
        news.set()
        self._readers.add(news)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="isthmus-review-feed")
        try:
            while True:
                await news.wait()
                news.clear()
                yield CHANGED
        finally:
            self._readers.discard(news)
            if not self._readers:
                self._stop()

    def _stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        sent: bytes | None = None
        while True:
            with contextlib.suppress(IsthmusError):
                async with aclosing(self._companions.changes()) as changes:
                    async for _ in changes:
                        await asyncio.sleep(GATHER_SECONDS)
                        found = encode({"companions": await self._companions.waiting()})
                        if found != sent:
                            sent = found
                            for news in self._readers:
                                news.set()
            log.warning("companions cannot be looked at; pages ask for reviews themselves")
            await asyncio.sleep(AGAIN_SECONDS)


async def merged(*streams: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the pieces of several streams as they come, until one of them ends."""
    async with contextlib.AsyncExitStack() as ending:
        for stream in streams:
            await ending.enter_async_context(aclosing(stream))
        steps = {asyncio.ensure_future(anext(stream)): stream for stream in streams}
        try:
            while True:
                done, _ = await asyncio.wait(steps, return_when=asyncio.FIRST_COMPLETED)
                for step in done:
                    stream = steps.pop(step)
                    try:
                        piece = step.result()
                    except StopAsyncIteration:
                        return
                    yield piece
                    steps[asyncio.ensure_future(anext(stream))] = stream
        finally:
            for step in steps:
                step.cancel()
            await asyncio.gather(*steps, return_exceptions=True)
