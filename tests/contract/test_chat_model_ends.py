"""The ChatModel port on each provider: an answer has an end of its own, whatever the end of its connection says."""

import pytest

from isthmus.models.port.base import Done, ModelErrorKind, Retrying, TextDelta, requests_of, text_of
from support.model_bench import OPENAI, Provider, bench, each_provider
from support.openai_wire import OpenAIWire, Quirks
from support.scripted_wire import Call, Reply, Say, Think
from support.wire_server import Framing

pytestmark = pytest.mark.anyio

each_framing = pytest.mark.parametrize("framing", ["chunked", "length", "closed"])


@each_provider
@each_framing
async def test_a_text_without_an_end_is_asked_for_again(provider: Provider, framing: Framing) -> None:
    cut = Reply.of(Think("Hm."), Say("It is", " f"), finish=None, usage=None, framing=framing)
    async with bench(provider, cut, Reply.of(Say("It is fine."), framing=framing)) as it:
        items = await it.ask()
        assert len(it.wire.model_requests) == 2
    notice = next(at for at, item in enumerate(items) if isinstance(item, Retrying))
    assert "".join(item.text for item in items[notice:] if isinstance(item, TextDelta)) == "It is fine."
    assert isinstance(items[-1], Done)
    assert text_of(items[-1].message) == "It is fine."


@each_provider
@each_framing
async def test_a_call_without_an_end_is_not_made(provider: Provider, framing: Framing) -> None:
    cut = Reply.of(Call("glob", {"pattern": "*"}), finish=None, framing=framing)
    async with bench(provider, cut, Reply.of(Say("no call"), framing=framing)) as it:
        assert requests_of((await it.answer()).message) == ()


@each_provider
@each_framing
async def test_an_answer_with_its_end_is_whole(provider: Provider, framing: Framing) -> None:
    async with bench(provider, Reply.of(Say("whole"), framing=framing)) as it:
        assert text_of((await it.answer()).message) == "whole"
        assert len(it.wire.model_requests) == 1


@each_provider
async def test_an_answer_that_never_has_an_end_is_an_interruption(provider: Provider) -> None:
    async with bench(provider, *[Reply.of(Say("half"), finish=None, framing="closed")] * 20) as it:
        assert (await it.error()).kind is ModelErrorKind.INTERRUPTED


@each_framing
async def test_a_server_of_chat_completions_may_give_either_end(framing: Framing) -> None:
    with_reason = Reply.of(Say("with a reason"), framing=framing)
    async with bench(OPENAI, with_reason) as it:
        assert isinstance(it.wire, OpenAIWire)
        it.wire.quirks = Quirks(no_done=True)
        assert text_of((await it.answer()).message) == "with a reason"
        it.wire.quirks = Quirks(no_reason=True)
        it.wire.add(Reply.of(Say("with a mark"), framing=framing))
        assert text_of((await it.answer()).message) == "with a mark"
        assert len(it.wire.model_requests) == 2
