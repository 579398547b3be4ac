"""The ChatModel port on each provider, over a real connection: failures, and how they end."""

import asyncio
from dataclasses import replace

import pytest

from isthmus.models.endpoint.http import Timeouts
from isthmus.models.port.base import (
    Done,
    ModelError,
    ModelErrorKind,
    Retrying,
    StreamItem,
    TextDelta,
    text_of,
)
from isthmus.models.streaming import StreamOptions
from support.model_bench import (
    KEY,
    QUESTION,
    Provider,
    bench,
    each_provider,
)
from support.scripted_wire import Call, Failure, Reply, Say, Think
from support.waiting import eventually_async
from support.wire_server import Answer, Hold, WireRequest, WireServer

pytestmark = pytest.mark.anyio

CUT_STEP = 23
"""Bytes between two places at which a stream is cut."""


@pytest.mark.slow
@each_provider
async def test_429_is_tried_again_after_what_the_server_asks(provider: Provider) -> None:
    async with bench(provider, Failure(429, "slow down", retry_after=7), Reply.of(Say("ok"))) as it:
        items = await it.ask()
        assert it.waits == [7.0]
    assert isinstance(items[0], Retrying)
    assert (items[0].attempt, items[0].delay) == (2, 7.0)
    assert "slow down" in items[0].reason
    assert isinstance(items[-1], Done)


@pytest.mark.slow
@each_provider
async def test_one_500_is_tried_again_with_a_growing_wait(provider: Provider) -> None:
    async with bench(provider, Failure(500), Failure(503), Reply.of(Say("ok"))) as it:
        items = await it.ask()
        assert it.waits == [0.75, 1.5]
        assert len(it.wire.model_requests) == 3
    assert [type(item) for item in items] == [Retrying, Retrying, TextDelta, Done]


@each_provider
async def test_a_failure_that_stays_ends_after_the_attempts_of_the_policy(provider: Provider) -> None:
    async with bench(provider, *[Failure(503, "busy")] * 12) as it:
        error = await it.error()
        assert len(it.wire.model_requests) == 10
    assert (error.kind, error.status) == (ModelErrorKind.OVERLOADED, 503)
    assert "busy" in str(error)


@each_provider
async def test_a_wait_that_is_too_long_is_said_and_not_waited_for(provider: Provider) -> None:
    async with bench(provider, Failure(429, retry_after=3600)) as it:
        error = await it.error()
        assert it.waits == []
    assert (error.kind, error.retry_after) == (ModelErrorKind.RATE_LIMIT, 3600)
    assert "3600 s" in str(error)


@each_provider
async def test_a_cut_after_the_first_words_is_asked_again_from_the_beginning(provider: Provider) -> None:
    whole = Reply.of(Say("Hello", " world", " again"))
    async with bench(provider, replace(whole, hold=None, cut_after=-60), whole) as it:
        items = await it.ask()
        assert len(it.wire.model_requests) == 2
        assert it.wire.model_requests[0].json == it.wire.model_requests[1].json
    at, notice = next((index, item) for index, item in enumerate(items) if isinstance(item, Retrying))
    assert any(isinstance(item, TextDelta) for item in items[:at])
    assert "broke off" in notice.reason
    assert [item.text for item in items[at:] if isinstance(item, TextDelta)] == ["Hello", " world", " again"]
    assert isinstance(items[-1], Done)
    assert text_of(items[-1].message) == "Hello world again"


@pytest.mark.slow
@each_provider
async def test_a_stream_that_is_cut_after_any_byte_recovers(provider: Provider) -> None:
    reply = Reply.of(Think("Grü"), Say("Hel", "ló"), Call("glob", {"pattern": "*"}, id="c1"))
    async with bench(provider, reply) as it:
        expected = await it.answer()
        size = len(b"".join(it.wire.events(reply, it.wire.requests[0])))
        # Every byte passes as well, and takes a minute.
        for cut_after in (*range(0, size - 12, CUT_STEP), *range(size - 12, size)):
            it.wire.add(replace(reply, cut_after=cut_after), reply)
            items = await it.ask()
            it.wire.forget()
            last = max((index for index, item in enumerate(items) if isinstance(item, Retrying)), default=-1)
            said = "".join(item.text for item in items[last + 1 :] if isinstance(item, TextDelta))
            assert (said, items[-1]) == ("Helló", expected), f"cut after {cut_after} bytes"


@pytest.mark.slow
@each_provider
async def test_an_answer_that_breaks_off_five_times_is_an_interruption(provider: Provider) -> None:
    cut = Reply.of(Say("Hello", " world", " again"), cut_after=-60)
    async with bench(provider, *[cut] * 9) as it:
        error = await it.error()
        assert len(it.wire.model_requests) == 5
    assert error.kind is ModelErrorKind.INTERRUPTED


@each_provider
async def test_thoughts_without_an_answer_are_asked_again_until_the_third_time(provider: Provider) -> None:
    thoughts = Reply.of(Think("Hmm."))
    async with bench(provider, thoughts, thoughts, Reply.of(Say("ok"))) as it:
        items = await it.ask()
        assert len(it.wire.model_requests) == 3
    assert isinstance(items[-1], Done)
    assert text_of(items[-1].message) == "ok"


@each_provider
async def test_a_cut_before_the_first_words_is_tried_again(provider: Provider) -> None:
    async with bench(provider, Reply.of(Say("Hello"), cut_after=10), Reply.of(Say("ok"))) as it:
        items = await it.ask()
    assert [type(item) for item in items] == [Retrying, TextDelta, Done]


@pytest.mark.slow
@each_provider
async def test_a_safety_stop_with_nothing_is_an_error(provider: Provider) -> None:
    async with bench(provider, Reply.of(finish="safety"), Reply.of(Say("never"))) as it:
        error = await it.error()
        assert len(it.wire.model_requests) == 1
    assert error.kind is ModelErrorKind.SAFETY
    assert provider.raw_safety in str(error)


@pytest.mark.slow
@each_provider
async def test_an_empty_answer_is_asked_for_once_more(provider: Provider) -> None:
    async with bench(provider, Reply.of(), Reply.of(Say("ok"))) as it:
        assert [type(item) for item in await it.ask()] == [Retrying, TextDelta, Done]


@each_provider
async def test_three_empty_answers_are_an_error(provider: Provider) -> None:
    async with bench(provider, Reply.of(), Reply.of(), Reply.of(), Reply.of(Say("never"))) as it:
        error = await it.error()
        assert len(it.wire.model_requests) == 3
    assert error.kind is ModelErrorKind.EMPTY


@each_provider
@pytest.mark.parametrize(
    ("failure", "kind", "words"),
    [
        (Failure(400, kind="context_too_long"), ModelErrorKind.CONTEXT_TOO_LONG, "too long for test-model"),
        (Failure(413, "too large"), ModelErrorKind.CONTEXT_TOO_LONG, "too long for"),
        (Failure(404, kind="unknown_model"), ModelErrorKind.UNKNOWN_MODEL, "no model 'test-model'"),
        (Failure(401, kind="wrong_key"), ModelErrorKind.AUTHENTICATION, "_API_KEY"),
        (Failure(403, f"no access with {KEY}"), ModelErrorKind.AUTHENTICATION, "no access with [key]"),
        (Failure(400, f"strange field, {KEY}"), ModelErrorKind.BAD_REQUEST, "strange field, [key]"),
        (Failure(404, "page not found"), ModelErrorKind.CONFIGURATION, "_BASE_URL"),
        (Failure(402, "no credit"), ModelErrorKind.RATE_LIMIT, "no credit"),
    ],
)
async def test_a_refusal_says_what_to_do_and_is_not_tried_again(
    provider: Provider, failure: Failure, kind: ModelErrorKind, words: str
) -> None:
    async with bench(provider, failure, Reply.of(Say("never"))) as it:
        error = await it.error()
        assert len(it.wire.model_requests) == 1
    assert error.kind is kind
    assert words in str(error)
    assert error.status is not None


@each_provider
async def test_an_error_page_that_is_not_json_is_an_error_like_others(provider: Provider) -> None:
    page = Answer(502, {"content-type": "text/html"}, (b"<html>Bad gateway</html>",))
    async with bench(provider, page, Reply.of(Say("ok"))) as it:
        assert [type(item) for item in await it.ask()] == [Retrying, TextDelta, Done]


@each_provider
async def test_a_stream_that_is_not_json_breaks_off(provider: Provider) -> None:
    garbage = Answer(200, {"content-type": "text/event-stream"}, (b"event: x\ndata: {not json\n\n",))
    async with bench(provider, *[garbage] * 9) as it:
        error = await it.error()
    assert error.kind is ModelErrorKind.INTERRUPTED
    assert "not JSON" in str(error)


@each_provider
async def test_closing_the_stream_closes_the_connection_before_it_returns(provider: Provider) -> None:
    hold = Hold()
    async with bench(provider, Reply.of(Say("Hello", " world"), hold=hold, hold_after=4)) as it:
        stream = it.model.stream(QUESTION)
        assert await anext(stream) == TextDelta("Hello")
        assert not it.wire.requests[0].disconnected.is_set()
        await stream.aclose()
        await eventually_async(it.wire.requests[0].disconnected.is_set, what="the server sees the disconnect")


@each_provider
@pytest.mark.parametrize("hold_after", [0, 4])
async def test_cancelling_the_reader_closes_the_connection_at_once(provider: Provider, hold_after: int) -> None:
    async with bench(provider, Reply.of(Say("Hello", " world"), hold=Hold(), hold_after=hold_after)) as it:
        seen: list[StreamItem] = []

        async def read() -> None:
            async for item in it.model.stream(QUESTION):
                seen.append(item)

        reading = asyncio.ensure_future(read())
        await eventually_async(lambda: it.wire.requests and (seen or hold_after == 0))
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await eventually_async(it.wire.requests[0].disconnected.is_set, what="the server sees the disconnect")


@pytest.mark.slow
@each_provider
async def test_a_server_that_falls_silent_is_given_up_after_the_idle_timeout(provider: Provider) -> None:
    silent = Reply.of(Say("Hello", " world"), hold=Hold(), hold_after=4)
    # On a busy machine the first words may be late as well, and are requested again.
    async with bench(provider, *[silent] * 5, timeouts=Timeouts(connect=5, idle=0.2)) as it:
        error = await it.error()
    assert error.kind is ModelErrorKind.INTERRUPTED
    assert "0.2 s" in str(error)


@each_provider
async def test_a_refused_connection_names_the_address(provider: Provider) -> None:
    async with bench(provider) as it:
        address = it.wire.base_url
    options = StreamOptions(sleep=lambda seconds: asyncio.sleep(0))
    model = provider.open("test-model", {provider.base_url: address, provider.key: KEY}, options=options)
    with pytest.raises(ModelError) as caught:
        [item async for item in model.stream(QUESTION)]
    await model.aclose()
    assert caught.value.kind is ModelErrorKind.UNREACHABLE
    assert address in str(caught.value)


@each_provider
async def test_cancelling_before_the_answer_begins_closes_the_connection_too(provider: Provider) -> None:
    hold = Hold()

    async def never(request: WireRequest) -> Answer:
        await hold.wait()
        return Answer(500)

    with WireServer(never) as server:
        model = provider.open("test-model", {provider.base_url: server.base_url})

        async def read() -> None:
            async for _ in model.stream(QUESTION):
                pass

        reading = asyncio.ensure_future(read())
        await eventually_async(lambda: server.requests)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await eventually_async(server.requests[0].disconnected.is_set, what="the server sees the disconnect")
        await model.aclose()


@each_provider
async def test_a_web_page_in_place_of_an_answer_names_the_address_to_check(provider: Provider) -> None:
    page = Answer(200, {"content-type": "text/html; charset=utf-8"}, (b"<html>Welcome</html>",))
    async with bench(provider, page, Reply.of(Say("never"))) as it:
        error = await it.error()
        assert len(it.wire.model_requests) == 1
        assert it.wire.base_url in str(error)
    assert error.kind is ModelErrorKind.CONFIGURATION
    assert provider.base_url in str(error)
