"""The comments that keep an idle event stream alive, by a clock that the test sets."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from starlette.types import Message

from isthmus.a2a.server.http import sse
from isthmus.a2a.server.http.sse import EventStream, OpenStreams
from isthmus.encoding.event_stream import KEEP_ALIVE

pytestmark = pytest.mark.anyio

INTERVAL = 0.02
"""Time in seconds after which the stream is watched, and after which a comment follows what was sent last."""


class _Clock:
    """The time of a watch in seconds; ``looks`` is the number of times that it was read."""

    def __init__(self) -> None:
        self.now = 0.0
        self.looks = 0

    def read(self) -> float:
        self.looks += 1
        return self.now


@pytest.mark.parametrize(("now", "has_comment"), [(0.03, False), (0.04, True)])
async def test_a_comment_is_sent_when_nothing_else_was_for_the_whole_interval(
    monkeypatch: pytest.MonkeyPatch, now: float, has_comment: bool
) -> None:
    """The event was sent at 0.015 s: that is long after the stream began, and shortly before now."""
    clock, sent = _Clock(), list[bytes]()
    monkeypatch.setattr(sse._StreamWatch, "now", clock.read)  # pyright: ignore[reportPrivateUsage]

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("the reader stays")

    async def send(message: Message) -> None:
        sent.append(message.get("body", b""))

    async def frames() -> AsyncGenerator[bytes, None]:
        clock.now = 0.015
        yield b"data: one\n\n"
        while b"data: one\n\n" not in sent:
            await asyncio.sleep(0)
        clock.now, clock.looks = now, 0
        while clock.looks < 5:  # the watch has looked several times
            await asyncio.sleep(0)

    async with asyncio.timeout(20):
        await EventStream(frames(), OpenStreams(), keep_alive=INTERVAL)({"type": "http"}, receive, send)
    assert (KEEP_ALIVE in sent) == has_comment
