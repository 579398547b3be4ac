"""The ChatModel port on each provider, over a real connection to a fake server of its wire."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from isthmus.models.anthropic import open_anthropic
from isthmus.models.base import (
    ChatModel,
    Done,
    Finish,
    Message,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    Opaque,
    Retrying,
    StreamItem,
    Text,
    TextDelta,
    Thought,
    ThoughtDelta,
    ToolRequestStarted,
    ToolResult,
    ToolSpec,
    Usage,
    requests_of,
    text_of,
)
from isthmus.models.choose import choose, open_model
from isthmus.models.gemini import open_gemini
from isthmus.models.http import Timeouts
from isthmus.models.message import message_from_json, message_to_json
from isthmus.models.openai import open_openai
from isthmus.models.streaming import ProviderModel, StreamOptions
from support.anthropic_wire import AnthropicWire
from support.gemini_wire import GeminiWire
from support.openai_wire import OpenAIWire
from support.scripted_wire import Call, Failure, Reply, Say, Script, ScriptedWire, Think, Unknown, WireUsage
from support.waiting import eventually_async
from support.wire_server import Answer, Hold, WireRequest, WireServer

pytestmark = pytest.mark.anyio

KEY = "sk-secret-0123456789"
TOOLS = (
    ToolSpec("glob", "Find files.", {"type": "object", "properties": {"pattern": {"type": "string"}}}),
    ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"file_path": {"type": "string"}}}),
)
QUESTION = ModelRequest("You are a test.", (Message("user", (Text("What is here?"),)),), TOOLS)


@dataclass(frozen=True)
class Provider:
    """What differs between the providers in a test."""

    name: str
    wire: type[ScriptedWire]
    open: Callable[..., ProviderModel]
    key: str
    base_url: str
    messages: Callable[[WireRequest], list[Any]]
    """The assistant's messages of a request, as the provider's JSON."""
    unknown: Mapping[str, Any]
    """A part that no client knows."""
    raw_safety: str


def gemini_messages(request: WireRequest) -> list[Any]:
    return [content["parts"] for content in request.json["contents"] if content["role"] == "model"]


def anthropic_messages(request: WireRequest) -> list[Any]:
    return [message["content"] for message in request.json["messages"] if message["role"] == "assistant"]


def openai_messages(request: WireRequest) -> list[Any]:
    return [message for message in request.json["messages"] if message["role"] == "assistant"]


GEMINI = Provider(
    "gemini",
    GeminiWire,
    open_gemini,
    "GEMINI_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
    gemini_messages,
    {"hologram": {"voxels": [1, 2]}, "thoughtSignature": "h=="},
    "SAFETY",
)
ANTHROPIC = Provider(
    "anthropic",
    AnthropicWire,
    open_anthropic,
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    anthropic_messages,
    {"type": "hologram", "voxels": [1, 2]},
    "refusal",
)
OPENAI = Provider(
    "openai",
    OpenAIWire,
    open_openai,
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    openai_messages,
    {"hologram": {"voxels": [1, 2]}},
    "content_filter",
)
ALL = [pytest.param(provider, id=provider.name) for provider in (GEMINI, ANTHROPIC, OPENAI)]
each_provider = pytest.mark.parametrize("provider", ALL)


@dataclass
class Bench:
    """A model, the server it talks to, and the waits it asked for."""

    model: ChatModel
    wire: ScriptedWire
    waits: list[float] = field(default_factory=list[float])

    async def ask(self, request: ModelRequest = QUESTION) -> list[StreamItem]:
        return [item async for item in self.model.stream(request)]

    async def answer(self, request: ModelRequest = QUESTION) -> Done:
        last = (await self.ask(request))[-1]
        assert isinstance(last, Done)
        return last

    async def error(self, request: ModelRequest = QUESTION) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.ask(request)
        assert_no_key(caught.value)
        return caught.value


def assert_no_key(error: BaseException | None) -> None:
    while error is not None:
        assert KEY not in str(error)
        error = error.__cause__ or error.__context__


@asynccontextmanager
async def bench(
    provider: Provider, *replies: Script, model: str = "test-model", timeouts: Timeouts | None = None
) -> AsyncGenerator[Bench, None]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    options = StreamOptions(sleep=sleep, random=lambda: 0.5, timeouts=timeouts or Timeouts(connect=5, idle=10))
    with provider.wire(replies) as wire:
        environment = {provider.base_url: wire.base_url, provider.key: KEY}
        opened = provider.open(model, environment, options=options)
        try:
            yield Bench(opened, wire, waits)
        finally:
            await opened.aclose()


def continued(done: Done, *results: ToolResult, text: str = "") -> ModelRequest:
    """The request after an answer, which has been in the journal meanwhile."""
    kept = message_from_json(json.loads(json.dumps(message_to_json(done.message))))
    parts = (*results, Text(text)) if text else results
    return replace(QUESTION, messages=(*QUESTION.messages, kept, Message("user", parts)))


@each_provider
@pytest.mark.parametrize("layout", [{}, {"piece_size": 1}, {"piece_size": 7}, {"split_at": "ü"}])
async def test_text_and_two_parallel_calls_come_out_whole_however_the_bytes_are_split(
    provider: Provider, layout: dict[str, Any]
) -> None:
    reply = Reply.of(
        Say("Grüße ", "aus 東京"),
        Call("glob", {"pattern": "*.ü"}, id="call_a"),
        Call("read_file", {"file_path": "/tmp/日本.txt", "limit": 3}, id="call_b"),
        **layout,
    )
    async with bench(provider, reply) as it:
        items = await it.ask()
    done = items[-1]
    assert isinstance(done, Done)
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "Grüße aus 東京"
    assert text_of(done.message) == "Grüße aus 東京"
    assert [item.name for item in items if isinstance(item, ToolRequestStarted)] == ["glob", "read_file"]
    assert [(call.id, call.name, call.arguments, call.invalid) for call in requests_of(done.message)] == [
        ("call_a", "glob", {"pattern": "*.ü"}, None),
        ("call_b", "read_file", {"file_path": "/tmp/日本.txt", "limit": 3}, None),
    ]
    assert done.finish is Finish.TOOL_CALLS
    assert sum(isinstance(item, Done) for item in items) == 1


@each_provider
async def test_the_results_of_one_message_go_back_together_before_the_persons_words(provider: Provider) -> None:
    calls = Reply.of(Call("glob", {"pattern": "a"}, id="call_a"), Call("glob", {"pattern": "b"}, id="call_b"))
    async with bench(provider, calls, Reply.of(Say("done"))) as it:
        done = await it.answer()
        results = [ToolResult(call.id, call.name, f"found {call.id}") for call in requests_of(done.message)]
        request = continued(done)
        messages = (
            *request.messages[:-1],
            Message("user", (results[1],)),
            Message("user", (Text("go on"), results[0])),
        )
        await it.answer(replace(request, messages=messages))
        body = it.wire.model_requests[1].json
    if provider is OPENAI:
        assert [(message["role"], message.get("tool_call_id")) for message in body["messages"][3:]] == [
            ("tool", "call_a"),
            ("tool", "call_b"),
            ("user", None),
        ]
    elif provider is ANTHROPIC:
        assert [block.get("tool_use_id", block["type"]) for block in body["messages"][2]["content"]] == [
            "call_a",
            "call_b",
            "text",
        ]
    else:
        parts = body["contents"][2]["parts"]
        assert [part.get("functionResponse", {}).get("id") for part in parts] == ["call_a", "call_b", None]


@each_provider
async def test_a_call_without_a_result_is_told_as_not_run(provider: Provider) -> None:
    async with bench(provider, Reply.of(Call("glob", {}, id="call_a")), Reply.of(Say("ok"))) as it:
        done = await it.answer()
        await it.answer(continued(done, text="something else"))
        assert "was not run" in it.wire.model_requests[1].body.decode()


@each_provider
async def test_a_thought_goes_back_with_its_signature_unchanged(provider: Provider) -> None:
    reply = Reply.of(
        Think("Let me ", "see.", signature="sig+/=="),
        Call("glob", {"pattern": "*"}, id="call_a", signature="call=="),
        Say("x"),
    )
    async with bench(provider, reply, Reply.of(Say("done")), model="gemini-3-x") as it:
        items = await it.ask()
        done = items[-1]
        assert isinstance(done, Done)
        assert "".join(item.text for item in items if isinstance(item, ThoughtDelta)) == "Let me see."
        assert "".join(part.text for part in done.message.parts if isinstance(part, Thought)) == "Let me see."
        (call,) = requests_of(done.message)
        await it.answer(continued(done, ToolResult(call.id, call.name, "a.py")))
        (sent,) = provider.messages(it.wire.model_requests[1])
    if provider is GEMINI:
        assert sent[:3] == [
            {"thought": True, "text": "Let me "},
            {"thought": True, "text": "see.", "thoughtSignature": "sig+/=="},
            {"functionCall": {"name": "glob", "args": {"pattern": "*"}, "id": "call_a"}, "thoughtSignature": "call=="},
        ]
    elif provider is ANTHROPIC:
        assert sent[0] == {"type": "thinking", "thinking": "Let me see.", "signature": "sig+/=="}
    else:
        assert sent["reasoning_content"] == "Let me see."
        assert sent["reasoning_details"] == [{"type": "reasoning.encrypted", "data": "sig+/==", "index": 0}]


@each_provider
async def test_what_one_provider_keeps_is_not_sent_to_another(provider: Provider) -> None:
    reply = Reply.of(Think("hidden", signature="sig+/=="), Unknown(provider.unknown), Say("shown"))
    async with bench(provider, reply) as it:
        done = await it.answer()
    for other in (GEMINI, ANTHROPIC, OPENAI):
        if other is not provider:
            async with bench(other, Reply.of(Say("ok"))) as it:
                await it.answer(continued(done, text="and now?"))
                sent = it.wire.model_requests[0].body.decode()
                assert "shown" in sent
                assert not [word for word in ("sig+", "hidden", "hologram") if word in sent]


@each_provider
async def test_an_unknown_part_is_kept_and_sent_back_as_it_came(provider: Provider) -> None:
    reply = Reply.of(Say("a"), Unknown(provider.unknown), Say("b"))
    async with bench(provider, reply, Reply.of(Say("done"))) as it:
        done = await it.answer()
        assert text_of(done.message) == "ab"
        assert [part.raw for part in done.message.parts if isinstance(part, Opaque)] == [provider.unknown]
        await it.answer(continued(done, text="go on"))
        (sent,) = provider.messages(it.wire.model_requests[1])
    assert sent["hologram"] == provider.unknown["hologram"] if provider is OPENAI else provider.unknown in sent


@each_provider
async def test_429_is_tried_again_after_what_the_server_asks(provider: Provider) -> None:
    async with bench(provider, Failure(429, "slow down", retry_after=7), Reply.of(Say("ok"))) as it:
        items = await it.ask()
        assert it.waits == [7.0]
    assert isinstance(items[0], Retrying)
    assert (items[0].attempt, items[0].delay) == (2, 7.0)
    assert "slow down" in items[0].reason
    assert isinstance(items[-1], Done)


@each_provider
async def test_one_500_is_tried_again_with_a_growing_wait(provider: Provider) -> None:
    async with bench(provider, Failure(500), Failure(503), Reply.of(Say("ok"))) as it:
        items = await it.ask()
        assert it.waits == [0.75, 1.5]
        assert len(it.wire.model_requests) == 3
    assert [type(item) for item in items] == [Retrying, Retrying, TextDelta, Done]


@each_provider
async def test_a_failure_that_stays_ends_after_the_attempts_of_the_policy(provider: Provider) -> None:
    async with bench(provider, *[Failure(503, "busy")] * 9) as it:
        error = await it.error()
        assert len(it.wire.model_requests) == 5
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
async def test_a_cut_after_the_first_words_is_interrupted_and_not_tried_again(provider: Provider) -> None:
    whole = Reply.of(Say("Hello", " world", " again"))
    async with bench(provider, replace(whole, hold=None, cut_after=-60), Reply.of(Say("never"))) as it:
        error = await it.error()
        assert len(it.wire.model_requests) == 1
    assert error.kind is ModelErrorKind.INTERRUPTED


@each_provider
async def test_a_cut_before_the_first_words_is_tried_again(provider: Provider) -> None:
    async with bench(provider, Reply.of(Say("Hello"), cut_after=10), Reply.of(Say("ok"))) as it:
        items = await it.ask()
    assert [type(item) for item in items] == [Retrying, TextDelta, Done]


@each_provider
async def test_a_safety_stop_after_some_text_is_a_finish(provider: Provider) -> None:
    async with bench(provider, Reply.of(Say("Well"), finish="safety")) as it:
        done = await it.answer()
    assert (done.finish, done.raw_finish) == (Finish.SAFETY, provider.raw_safety)
    assert text_of(done.message) == "Well"


@each_provider
async def test_a_safety_stop_with_nothing_is_an_error(provider: Provider) -> None:
    async with bench(provider, Reply.of(finish="safety"), Reply.of(Say("never"))) as it:
        error = await it.error()
        assert len(it.wire.model_requests) == 1
    assert error.kind is ModelErrorKind.SAFETY
    assert provider.raw_safety in str(error)


@each_provider
async def test_the_output_limit_is_a_finish(provider: Provider) -> None:
    async with bench(provider, Reply.of(Say("Once upon"), finish="length")) as it:
        assert (await it.answer()).finish is Finish.LENGTH


@each_provider
async def test_an_empty_answer_is_asked_for_once_more(provider: Provider) -> None:
    async with bench(provider, Reply.of(), Reply.of(Say("ok"))) as it:
        assert [type(item) for item in await it.ask()] == [Retrying, TextDelta, Done]


@each_provider
async def test_two_empty_answers_are_an_error(provider: Provider) -> None:
    async with bench(provider, Reply.of(), Reply.of(), Reply.of(Say("never"))) as it:
        error = await it.error()
        assert len(it.wire.model_requests) == 2
    assert error.kind is ModelErrorKind.EMPTY


@each_provider
@pytest.mark.parametrize("arguments", ['{"pattern": "*', "[1, 2]", "nonsense"])
async def test_arguments_that_are_no_json_object_are_said_and_do_not_end_the_turn(
    provider: Provider, arguments: str
) -> None:
    async with bench(provider, Reply.of(Call("glob", arguments)), Reply.of(Say("ok"))) as it:
        done = await it.answer()
        (call,) = requests_of(done.message)
        assert call.arguments == {}
        assert call.invalid is not None
        assert arguments[:7] in call.invalid
        # The conversation goes on, with a call that the provider accepts.
        await it.answer(continued(done, ToolResult(call.id, call.name, call.invalid, is_error=True)))
        assert arguments not in json.dumps(provider.messages(it.wire.model_requests[1]))


@each_provider
@pytest.mark.parametrize(
    ("failure", "kind", "words"),
    [
        (Failure(400, kind="context_too_long"), ModelErrorKind.CONTEXT_TOO_LONG, "longer than test-model can take"),
        (Failure(413, "too large"), ModelErrorKind.CONTEXT_TOO_LONG, "longer than"),
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
async def test_usage_counts_the_cached_tokens_and_the_thoughts(provider: Provider) -> None:
    usage = WireUsage(input=1000, output=50, cached=600, thoughts=0 if provider is ANTHROPIC else 20)
    async with bench(provider, Reply.of(Say("ok"), usage=usage)) as it:
        assert (await it.answer()).usage == Usage(1000, 50, cached=600, thoughts=usage.thoughts)


@each_provider
async def test_usage_that_is_absent_counts_nothing(provider: Provider) -> None:
    async with bench(provider, Reply.of(Say("ok"), usage=None)) as it:
        assert (await it.answer()).usage == Usage()


@each_provider
async def test_closing_the_stream_closes_the_connection_before_it_returns(provider: Provider) -> None:
    hold = Hold()
    async with bench(provider, Reply.of(Say("Hello", " world"), hold=hold, hold_after=4)) as it:
        stream = it.model.stream(QUESTION)
        assert await anext(stream) == TextDelta("Hello")
        assert not it.wire.requests[0].disconnected.is_set()
        await stream.aclose()
        await eventually_async(it.wire.requests[0].disconnected.is_set, 1, what="the server sees the disconnect")


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
        await eventually_async(it.wire.requests[0].disconnected.is_set, 1, what="the server sees the disconnect")


@each_provider
async def test_a_server_that_falls_silent_is_given_up_after_the_idle_timeout(provider: Provider) -> None:
    silent = Reply.of(Say("Hello", " world"), hold=Hold(), hold_after=4)
    async with bench(provider, silent, timeouts=Timeouts(connect=5, idle=0.2)) as it:
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
async def test_no_proxy_and_no_key_of_the_process_reaches_a_server_on_this_machine(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv(provider.key, "of-the-process")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    with provider.wire([Reply.of(Say("ok"))]) as wire:
        environment = {provider.base_url: wire.base_url, "ALL_PROXY": "http://127.0.0.1:1"}
        model = provider.open("test-model", environment)
        items = [item async for item in model.stream(QUESTION)]
        await model.aclose()
        headers = dict(wire.requests[0].headers)
    assert isinstance(items[-1], Done)
    assert "of-the-process" not in str(headers)


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
        await eventually_async(server.requests[0].disconnected.is_set, 1, what="the server sees the disconnect")
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


@each_provider
async def test_a_chosen_model_is_opened_and_answers(provider: Provider) -> None:
    with provider.wire([Reply.of(Say("ok"))]) as wire:
        environment = {provider.base_url: wire.base_url, provider.key: KEY}
        model = open_model(choose(f"{provider.name}:some-model", None, environment), environment)
        assert isinstance(model, ChatModel)
        assert (model.provider, model.name) == (provider.name, "some-model")
        items = [item async for item in model.stream(QUESTION)]
        await model.aclose()
        assert "some-model" in wire.requests[0].path + wire.requests[0].body.decode()
    assert items[-2:-1] == [TextDelta("ok")]


@each_provider
async def test_several_requests_at_once_do_not_mix(provider: Provider) -> None:
    def reply(request: WireRequest) -> Script:
        body = request.body.decode()
        return Reply.of(Say(next(word for word in ("one", "two", "three") if word in body)), piece_size=5)

    with provider.wire(reply) as wire:
        model = provider.open("test-model", {provider.base_url: wire.base_url, provider.key: KEY})

        async def ask(word: str) -> str:
            request = ModelRequest("", (Message("user", (Text(word),)),))
            return "".join([item.text async for item in model.stream(request) if isinstance(item, TextDelta)])

        assert await asyncio.gather(*map(ask, ("one", "two", "three"))) == ["one", "two", "three"]
        await model.aclose()


@each_provider
async def test_the_request_carries_the_system_prompt_the_tools_and_the_key(provider: Provider) -> None:
    async with bench(provider, Reply.of(Say("ok"))) as it:
        await it.answer(replace(QUESTION, max_output_tokens=77))
        (request,) = it.wire.model_requests
    body = request.body.decode()
    for expected in ("You are a test.", "What is here?", "Find files.", "read_file", "77"):
        assert expected in body
    assert KEY in str(request.headers)
    assert KEY not in request.path + request.query + body


@each_provider
async def test_a_call_id_that_came_before_is_made_unique_here_and_kept_on_the_wire(provider: Provider) -> None:
    call = Reply.of(Call("glob", {"pattern": "*"}, id="call_0"))
    async with bench(provider, call, call, Reply.of(Say("ok"))) as it:
        first = await it.answer()
        (one,) = requests_of(first.message)
        request = continued(first, ToolResult(one.id, one.name, "first"))
        second = await it.answer(request)
        (two,) = requests_of(second.message)
        assert one.id == "call_0" != two.id
        results = Message("user", (ToolResult(two.id, two.name, "second"),))
        await it.answer(replace(request, messages=(*request.messages, second.message, results)))
        assert two.id not in it.wire.model_requests[2].body.decode()


async def test_gemini_keeps_signatures_on_text_and_on_empty_parts_part_by_part() -> None:
    reply = Reply.of(
        Say("Hello", " there", signature="text=="),
        Say("plain ", "words"),
        Say("", signature="empty=="),
        Unknown({"thoughtSignature": "bare=="}),
        Call("glob", {"pattern": "*"}, signature="call=="),
        Call("glob", {"pattern": "?"}),
    )
    async with bench(GEMINI, reply, Reply.of(Say("done"))) as it:
        done = await it.answer()
        calls = requests_of(done.message)
        await it.answer(continued(done, *(ToolResult(call.id, call.name, "x") for call in calls)))
        body = it.wire.model_requests[1].json
    assert body["contents"][1]["parts"] == [
        {"text": "Hello"},
        {"text": " there", "thoughtSignature": "text=="},
        {"text": "plain words"},
        {"text": "", "thoughtSignature": "empty=="},
        {"thoughtSignature": "bare=="},
        {"functionCall": {"name": "glob", "args": {"pattern": "*"}}, "thoughtSignature": "call=="},
        {"functionCall": {"name": "glob", "args": {"pattern": "?"}}},
    ]
    # The server gave no ids, so none are sent.
    assert body["contents"][2]["parts"] == [
        {"functionResponse": {"name": "glob", "response": {"output": "x"}}},
        {"functionResponse": {"name": "glob", "response": {"output": "x"}}},
    ]


async def test_anthropic_sends_redacted_thinking_back_and_marks_what_to_cache() -> None:
    redacted = {"type": "redacted_thinking", "data": "opaque=="}
    reply = Reply.of(Unknown(redacted), Call("glob", {}, id="toolu_1"))
    async with bench(ANTHROPIC, reply, Reply.of(Say("done")), model="claude-sonnet-5-5") as it:
        done = await it.answer()
        assert done.message.parts[0] == Opaque("anthropic", redacted)
        await it.answer(continued(done, ToolResult("toolu_1", "glob", "x")))
        body = it.wire.model_requests[1].json
    assert body["messages"][1]["content"][0] == redacted
    marks = json.dumps(body).count("cache_control")
    assert marks == 4
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert body["tools"][-1]["cache_control"] == {"type": "ephemeral"}
    assert body["messages"][2]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}


async def test_anthropics_token_goes_out_as_a_bearer_token_and_no_key_with_it() -> None:
    with AnthropicWire([Reply.of(Say("ok"))]) as wire:
        environment = {"ANTHROPIC_BASE_URL": wire.base_url, "ANTHROPIC_AUTH_TOKEN": KEY}
        model = open_anthropic("claude-x", environment)
        assert [item async for item in model.stream(QUESTION)]
        await model.aclose()
        headers = wire.requests[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in headers


async def test_an_ollama_model_is_asked_without_the_key_of_openai() -> None:
    with OpenAIWire([Reply.of(Say("ok"))]) as wire:
        environment = {"OLLAMA_HOST": wire.base_url.removesuffix("/v1"), "OPENAI_API_KEY": KEY}
        model = open_model(choose("ollama:qwen3:8b", None, environment), environment)
        assert [item async for item in model.stream(QUESTION)]
        await model.aclose()
        assert wire.requests[0].json["model"] == "qwen3:8b"
        assert KEY not in str(wire.requests[0].headers)


async def test_an_overload_inside_anthropics_stream_is_tried_again_before_and_interrupts_after_the_first_words() -> (
    None
):
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    headers = {"content-type": "text/event-stream"}
    async with bench(ANTHROPIC, Answer(200, headers, (error,)), Reply.of(Say("ok"))) as it:
        assert [type(item) for item in await it.ask()] == [Retrying, TextDelta, Done]
        events = it.wire.events(Reply.of(Say("Hel", "lo")), it.wire.requests[0])
        it.wire.add(Answer(200, headers, (*events[:4], error)))
        failure = await it.error()
    assert failure.kind is ModelErrorKind.INTERRUPTED
    assert "Overloaded" in str(failure)


async def test_gemini_obeys_the_retry_delay_in_the_body_and_says_when_a_prompt_is_blocked() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}
    body = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": [info]}}
    blocked = b'data: {"promptFeedback": {"blockReason": "OTHER"}}\r\n\r\n'
    async with bench(GEMINI, Answer.json(body, 429), Answer(200, {}, (blocked,))) as it:
        error = await it.error()
        assert it.waits == [3.5]
    assert error.kind is ModelErrorKind.SAFETY
