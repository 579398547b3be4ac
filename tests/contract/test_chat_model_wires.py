"""Features of only one provider's wire, over a real connection."""

import json

import pytest

from isthmus.models.choose import ModelChoice, choose, open_model
from isthmus.models.port.base import (
    Done,
    ModelErrorKind,
    ModelToolResult,
    Opaque,
    Retrying,
    TextDelta,
    requests_of,
)
from support.anthropic_wire import AnthropicWire
from support.model_bench import ANTHROPIC, GEMINI, KEY, QUESTION, bench, continued
from support.openai_wire import OpenAIWire
from support.scripted_wire import Call, Reply, Say, Unknown
from support.wire_server import Answer

pytestmark = pytest.mark.anyio


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
        await it.answer(continued(done, *(ModelToolResult(call.id, call.name, "x") for call in calls)))
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
        await it.answer(continued(done, ModelToolResult("toolu_1", "glob", "x")))
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
        model = open_model(ModelChoice("anthropic", "claude-x", "a test"), environment)
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


async def test_an_anthropic_overload_in_the_middle_of_the_stream_is_tried_again() -> None:
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    headers = {"content-type": "text/event-stream"}
    async with bench(ANTHROPIC, Answer(200, headers, (error,)), Reply.of(Say("ok"))) as it:
        assert [type(item) for item in await it.ask()] == [Retrying, TextDelta, Done]
        events = it.wire.events(Reply.of(Say("Hel", "lo")), it.wire.requests[0])
        it.wire.add(Answer(200, headers, (*events[:4], error)), Reply.of(Say("whole")))
        items = await it.ask()
    assert [type(item) for item in items] == [TextDelta, Retrying, TextDelta, Done]
    (notice,) = [item for item in items if isinstance(item, Retrying)]
    assert "Overloaded" in notice.reason


async def test_gemini_obeys_the_retry_delay_in_the_body_and_says_when_a_prompt_is_blocked() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}
    body = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": [info]}}
    blocked = b'data: {"promptFeedback": {"blockReason": "OTHER"}}\r\n\r\n'
    async with bench(GEMINI, Answer.json(body, 429), Answer(200, {}, (blocked,))) as it:
        error = await it.error()
        assert it.waits == [3.5]
    assert error.kind is ModelErrorKind.SAFETY
