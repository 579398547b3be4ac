"""The ChatModel port on each provider while the computer sleeps: a dead connection is not awaited to its deadline."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from isthmus.models.endpoint.sleep_watch import SleepLimits
from isthmus.models.port.base import ChatModel, Done, Retrying, StreamItem, TextDelta, text_of
from isthmus.models.streaming import StreamOptions
from support.fake_clock import FakeClock
from support.model_bench import KEY, QUESTION, Provider, each_provider
from support.scripted_wire import Reply, Say, Script, ScriptedWire
from support.waiting import eventually_async
from support.wire_server import Hold

pytestmark = pytest.mark.anyio

LIMITS = SleepLimits(look=0.01, difference=30, grace=0.3)


@dataclass
class Sleeper:
    """A model on a computer that sleeps when the test wants; ``items`` are those received so far."""

    model: ChatModel
    wire: ScriptedWire
    clock: FakeClock
    items: list[StreamItem] = field(default_factory=list[StreamItem])

    def ask(self) -> "asyncio.Task[None]":
        async def read() -> None:
            async for item in self.model.stream(QUESTION):
                self.items.append(item)

        return asyncio.create_task(read())


@asynccontextmanager
async def sleeper(provider: Provider, *replies: Script) -> AsyncGenerator[Sleeper]:
    clock = FakeClock()
    options = StreamOptions(
        sleep=clock.sleep, random=lambda: 0.5, now=clock.now, monotonic=clock.monotonic, sleep_limits=LIMITS
    )
    with provider.wire(replies) as wire:
        environment = {provider.base_url: wire.base_url, provider.key: KEY}
        model = provider.open("test-model", environment, options=options)
        try:
            yield Sleeper(model, wire, clock)
        finally:
            await model.aclose()


@each_provider
@pytest.mark.parametrize("hold_after", [0, 4], ids=["before the first words", "in mid-stream"])
async def test_an_answer_that_stops_with_the_sleep_is_asked_for_again(provider: Provider, hold_after: int) -> None:
    silent = Reply.of(Say("Hello", " world"), hold=Hold(), hold_after=hold_after)
    async with sleeper(provider, silent, Reply.of(Say("Hello world"))) as it:
        reading = it.ask()
        await eventually_async(lambda: it.wire.model_requests and (it.items or hold_after == 0))
        it.clock.sleep_computer(600)
        async with asyncio.timeout(10):
            await reading
        assert len(it.wire.model_requests) == 2
    (notice,) = [item for item in it.items if isinstance(item, Retrying)]
    assert "the computer slept" in notice.reason
    after = it.items[it.items.index(notice) :]
    assert "".join(item.text for item in after if isinstance(item, TextDelta)) == "Hello world"
    assert isinstance(it.items[-1], Done)
    assert text_of(it.items[-1].message) == "Hello world"


@each_provider
async def test_what_still_comes_after_the_sleep_is_taken(provider: Provider) -> None:
    hold = Hold()
    async with sleeper(provider, Reply.of(Say("Hello", " world"), hold=hold, hold_after=4)) as it:
        reading = it.ask()
        await eventually_async(lambda: it.items)
        it.clock.sleep_computer(600)
        hold.release()
        async with asyncio.timeout(10):
            await reading
        assert len(it.wire.model_requests) == 1
    assert not any(isinstance(item, Retrying) for item in it.items)


@each_provider
async def test_a_clock_that_is_set_a_little_is_no_sleep(provider: Provider) -> None:
    hold = Hold()
    async with sleeper(provider, Reply.of(Say("Hello", " world"), hold=hold, hold_after=4)) as it:
        reading = it.ask()
        await eventually_async(lambda: it.items)
        it.clock.sleep_computer(LIMITS.difference - 1)
        await asyncio.wait({reading}, timeout=3 * LIMITS.grace)
        assert not reading.done()
        hold.release()
        await reading
    assert not any(isinstance(item, Retrying) for item in it.items)
