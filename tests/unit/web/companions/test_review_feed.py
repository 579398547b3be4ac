"""The lines for reviews in the stream of changes: the first one, changes, nothing without them, and their end."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

import pytest

from isthmus.encoding.codec import JsonObject
from isthmus.web.companions import review_feed
from isthmus.web.companions.review_feed import CHANGED, ReviewFeed, merged
from isthmus.web.sessions.changes import TooManyStreamsError

pytestmark = pytest.mark.anyio
WAIT = 10.0


class ChangingCompanions:
    """Companions of a test: ``tell`` says that something may have changed."""

    def __init__(self) -> None:
        self.found: list[JsonObject] = []
        self.looks = 0
        self.is_watched = False
        self._news: asyncio.Queue[None] = asyncio.Queue()

    async def waiting(self) -> list[JsonObject]:
        self.looks += 1
        return self.found

    def tell(self, *found: JsonObject) -> None:
        self.found = list(found)
        self._news.put_nowait(None)

    async def changes(self) -> AsyncGenerator[None]:
        self.is_watched = True
        try:
            yield
            while True:
                await self._news.get()
                yield
        finally:
            self.is_watched = False

    async def ask(self, companion: str, command: str, arguments: Mapping[str, object]) -> JsonObject:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_feed, "GATHER_SECONDS", 0)


async def following(frames: AsyncGenerator[bytes]) -> bytes:
    async with asyncio.timeout(WAIT):
        return await anext(frames)


async def test_each_change_is_told_and_a_look_without_one_is_not() -> None:
    companions = ChangingCompanions()
    async with aclosing(ReviewFeed(companions).frames()) as frames:
        assert await following(frames) == CHANGED
        await following(frames)  # the first look, which is later than the first line
        companions.tell({"id": "1"})
        await following(frames)
        looks = companions.looks
        companions.tell({"id": "1"})
        step = asyncio.ensure_future(following(frames))
        while companions.looks == looks:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not step.done()
        companions.tell({"id": "2"})
        assert await step == CHANGED


async def test_all_pages_share_one_look_and_none_is_made_without_a_page() -> None:
    companions = ChangingCompanions()
    feed = ReviewFeed(companions)
    async with aclosing(feed.frames()) as one, aclosing(feed.frames()) as other:
        for frames in (one, other):
            await following(frames)
        await asyncio.gather(following(one), following(other))
        looks = companions.looks
        companions.tell({"id": "1"})
        await asyncio.gather(following(one), following(other))
        assert (companions.looks, companions.is_watched) == (looks + 1, True)
    async with asyncio.timeout(WAIT):
        while companions.is_watched:
            await asyncio.sleep(0)


async def test_the_number_of_streams_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_feed, "MAXIMUM_STREAMS", 1)
    feed = ReviewFeed(ChangingCompanions())
    async with aclosing(feed.frames()) as frames:
        await following(frames)
        with pytest.raises(TooManyStreamsError, match="maximum"):
            feed.check()
    feed.check()


async def test_merged_streams_keep_all_pieces_and_end_together() -> None:
    ended: list[str] = []

    async def counting(name: str, pieces: int, *, ends: bool) -> AsyncGenerator[bytes]:
        try:
            for number in range(pieces):
                yield f"{name}{number}".encode()
            if not ends:
                await asyncio.Event().wait()
        finally:
            ended.append(name)

    found = [piece async for piece in merged(counting("a", 2, ends=False), counting("b", 3, ends=True))]
    assert sorted(found) == [b"a0", b"a1", b"b0", b"b1", b"b2"]
    assert sorted(ended) == ["a", "b"]
