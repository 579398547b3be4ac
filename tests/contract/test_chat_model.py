"""The ChatModel port on each provider, over a real connection: replies, and the next requests."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from isthmus.models.choose import choose, open_model
from isthmus.models.port.base import (
    ChatModel,
    Done,
    Finish,
    Message,
    ModelRequest,
    ModelThought,
    ModelToolResult,
    Opaque,
    Text,
    TextDelta,
    ThoughtDelta,
    ToolRequestStarted,
    Usage,
    requests_of,
    text_of,
)
from support.model_bench import (
    ANTHROPIC,
    GEMINI,
    KEY,
    OPENAI,
    QUESTION,
    RESPONSES,
    Provider,
    bench,
    continued,
    each_provider,
)
from support.scripted_wire import Call, Reply, Say, Script, Think, Unknown, WireUsage
from support.wire_server import WireRequest

pytestmark = pytest.mark.anyio


@pytest.mark.slow
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


@pytest.mark.slow
@each_provider
async def test_the_results_of_one_message_go_back_together_before_the_users_words(provider: Provider) -> None:
    calls = Reply.of(Call("glob", {"pattern": "a"}, id="call_a"), Call("glob", {"pattern": "b"}, id="call_b"))
    async with bench(provider, calls, Reply.of(Say("done"))) as it:
        done = await it.answer()
        results = [ModelToolResult(call.id, call.name, f"found {call.id}") for call in requests_of(done.message)]
        request = continued(done)
        messages = (
            *request.messages[:-1],
            Message("user", (results[1],)),
            Message("user", (Text("go on"), results[0])),
        )
        await it.answer(replace(request, messages=messages))
        body = it.wire.model_requests[1].json
    if provider.wire is OPENAI.wire:
        assert [(message["role"], message.get("tool_call_id")) for message in body["messages"][3:]] == [
            ("tool", "call_a"),
            ("tool", "call_b"),
            ("user", None),
        ]
    elif provider is RESPONSES:
        assert [(item["type"], item.get("call_id")) for item in body["input"][3:]] == [
            ("function_call_output", "call_a"),
            ("function_call_output", "call_b"),
            ("message", None),
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
        assert "".join(part.text for part in done.message.parts if isinstance(part, ModelThought)) == "Let me see."
        (call,) = requests_of(done.message)
        await it.answer(continued(done, ModelToolResult(call.id, call.name, "a.py")))
        (sent,) = provider.messages(it.wire.model_requests[1])
    if provider is GEMINI:
        assert sent[:2] == [
            {"thought": True, "text": "", "thoughtSignature": "sig+/=="},
            {"functionCall": {"name": "glob", "args": {"pattern": "*"}, "id": "call_a"}, "thoughtSignature": "call=="},
        ]
    elif provider is ANTHROPIC:
        assert sent[0] == {"type": "thinking", "thinking": "Let me see.", "signature": "sig+/=="}
    elif provider is RESPONSES:
        summary = [{"type": "summary_text", "text": "Let me see."}]
        assert sent[:2] == [
            {"type": "reasoning", "id": "rs_0", "summary": summary, "encrypted_content": "sig+/=="},
            {"type": "function_call", "call_id": "call_a", "name": "glob", "arguments": '{"pattern": "*"}'},
        ]
    else:
        assert sent["reasoning_content"] == "Let me see."
        assert sent["reasoning_details"] == [{"type": "reasoning.encrypted", "data": "sig+/==", "index": 0}]


@each_provider
async def test_what_one_provider_keeps_is_not_sent_to_another(provider: Provider) -> None:
    reply = Reply.of(Think("hidden", signature="sig+/=="), Unknown(provider.unknown), Say("shown"))
    async with bench(provider, reply) as it:
        done = await it.answer()
    for other in (GEMINI, ANTHROPIC, OPENAI, RESPONSES):
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
    if provider.wire is OPENAI.wire:
        assert sent["hologram"] == provider.unknown["hologram"]
    else:
        assert provider.unknown in sent


@each_provider
async def test_a_safety_stop_after_some_text_is_a_finish(provider: Provider) -> None:
    async with bench(provider, Reply.of(Say("Well"), finish="safety")) as it:
        done = await it.answer()
    assert (done.finish, done.raw_finish) == (Finish.SAFETY, provider.raw_safety)
    assert text_of(done.message) == "Well"


@each_provider
async def test_the_output_limit_is_a_finish(provider: Provider) -> None:
    async with bench(provider, Reply.of(Say("Once upon"), finish="length")) as it:
        assert (await it.answer()).finish is Finish.LENGTH


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
        # The conversation continues, with a call that the provider accepts.
        await it.answer(continued(done, ModelToolResult(call.id, call.name, call.invalid, is_error=True)))
        assert arguments not in json.dumps(provider.messages(it.wire.model_requests[1]))


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
async def test_a_chosen_model_is_opened_and_answers(provider: Provider) -> None:
    with provider.wire([Reply.of(Say("ok"))]) as wire:
        environment = {provider.base_url: wire.base_url, provider.key: KEY}
        model = open_model(choose(f"{provider.name}:some-model", None, environment), environment)
        assert isinstance(model, ChatModel)
        # Responses is another API of the same provider.
        assert model.provider == ("openai" if provider is RESPONSES else provider.name)
        assert model.name == "some-model"
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
        request = continued(first, ModelToolResult(one.id, one.name, "first"))
        second = await it.answer(request)
        (two,) = requests_of(second.message)
        assert one.id == "call_0" != two.id
        results = Message("user", (ModelToolResult(two.id, two.name, "second"),))
        await it.answer(replace(request, messages=(*request.messages, second.message, results)))
        assert two.id not in it.wire.model_requests[2].body.decode()
