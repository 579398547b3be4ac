import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.models.answer_reader import AnswerReader
from isthmus.models.anthropic import AnthropicReader, facts_of_claude, output_limit, version_of
from isthmus.models.anthropic import request_body as anthropic_body
from isthmus.models.anthropic import thinks as anthropic_thinks
from isthmus.models.gemini import GeminiReader
from isthmus.models.gemini import request_body as gemini_body
from isthmus.models.gemini import thinks as gemini_thinks
from isthmus.models.openai.chat_body import request_body as openai_body
from isthmus.models.openai.chat_completions import OpenAIReader
from isthmus.models.openai.event_reader import END_MARK
from isthmus.models.port.base import (
    Finish,
    Message,
    ModelRequest,
    ModelThought,
    Opaque,
    ProviderState,
    Text,
    requests_of,
)
from isthmus.models.port.message import message_from_json, message_to_json

NAMES = st.sampled_from(
    re.findall(
        r"\w+",
        """type index delta content_block text thinking signature partial_json usage message stop_reason candidates
        content parts functionCall thought thoughtSignature finishReason choices tool_calls function arguments name id
        finish_reason reasoning reasoning_content reasoning_details summary usageMetadata args error""",
    )
)
WORDS = st.sampled_from(
    re.findall(
        r"[\w.]+",
        """content_block_start content_block_delta message_delta text thinking tool_use text_delta thinking_delta
        input_json_delta signature_delta citations_delta STOP stop reasoning.text""",
    )
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | WORDS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=25,
)
READERS = [GeminiReader, AnthropicReader, lambda: OpenAIReader("openai@x")]


@pytest.mark.parametrize("make", READERS)
@given(events=st.lists(json_values, max_size=6))
def test_no_event_that_is_json_breaks_a_reader(make: Any, events: list[Any]) -> None:
    reader: AnswerReader = make()
    for event in events:
        reader.feed(event)
    answer = reader.answer()
    assert message_from_json(message_to_json(answer.message)) == answer.message
    request = ModelRequest("", (Message("user", (Text("x"),)), answer.message))
    for body in (gemini_body(request, "m"), anthropic_body(request, "m"), openai_body(request, "m", "openai@x")):
        assert body


def read(reader: AnswerReader, *events: Any) -> AnswerReader:
    for event in events:
        reader.feed(event)
    return reader


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(name: str | None, arguments: Any, **fields: Any) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return chunk(tool_calls=[{**fields, "function": function}])


CALLS: dict[str, tuple[list[Any], list[tuple[str, Any]]]] = {
    "index 0 for all, whole, with ids": (
        [call("a", '{"x":1}', index=0, id="1"), call("b", '{"x":2}', index=0, id="2")],
        [("a", {"x": 1}), ("b", {"x": 2})],
    ),
    "index 0 for all, whole, without ids": (
        [call("a", '{"x":1}', index=0), call("a", '{"x":2}', index=0)],
        [("a", {"x": 1}), ("a", {"x": 2})],
    ),
    "no index and no id": ([call("a", "{}"), call("b", "{}")], [("a", {}), ("b", {})]),
    "no index, in pieces": (
        [call("a", "", id="1"), call(None, '{"x"'), call(None, ":1}"), call("b", "{}", id="2")],
        [("a", {"x": 1}), ("b", {})],
    ),
    "name and id with every piece": (
        [call("a", '{"x"', index=0, id="1"), call("a", ":1}", index=0, id="1")],
        [("a", {"x": 1})],
    ),
    "name with every piece, no id": (
        [call("a", '{"x"', index=0), call("a", ":1}", index=0)],
        [("a", {"x": 1})],
    ),
    "pieces of two calls mixed": (
        [
            call("a", "", index=0, id="1"),
            call("b", "", index=1, id="2"),
            call(None, '{"y":2}', index=1),
            call(None, '{"x":1}', index=0),
        ],
        [("a", {"x": 1}), ("b", {"y": 2})],
    ),
    "arguments as an object": ([call("a", {"x": 1}, index=0, id="1")], [("a", {"x": 1})]),
    "no arguments": ([call("a", None, index=0, id="1")], [("a", {})]),
    "index as a text": ([call("a", "{}", index="0", id="1")], [("a", {})]),
    "one id for both": (
        [call("a", "{}", index=0, id="call"), call("b", "{}", index=1, id="call")],
        [("a", {}), ("b", {})],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_of_openais_imitators_come_out_right(name: str) -> None:
    events, expected = CALLS[name]
    found = requests_of(read(OpenAIReader("openai@x"), *events, chunk("stop")).answer().message)
    assert [(request.name, request.arguments) for request in found] == expected
    assert len({request.id for request in found}) == len(found)
    assert all(request.id for request in found)


def test_an_id_that_two_calls_share_goes_back_as_it_came() -> None:
    events, _ = CALLS["one id for both"]
    message = read(OpenAIReader("openai@x"), *events).answer().message
    body = openai_body(ModelRequest("", (message,)), "m", "openai@x")
    assert [sent["id"] for sent in body["messages"][0]["tool_calls"]] == ["call", "call"]
    assert [sent["tool_call_id"] for sent in body["messages"][1:]] == ["call", "call"]


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_thoughts_are_read_and_sent_back_under_the_servers_own_name(name: str) -> None:
    reader = read(OpenAIReader("openai@a"), chunk(**{name: "hm "}), chunk(**{name: "ok"}), chunk("stop", content="yes"))
    message = reader.answer().message
    assert message.parts[0] == ModelThought("hm ok", ProviderState("openai@a", {"field": name}))
    request = ModelRequest("", (message,))
    assert openai_body(request, "m", "openai@a")["messages"][0][name] == "hm ok"
    assert name not in openai_body(request, "m", "openai@b")["messages"][0]


def test_thoughts_under_two_names_are_shown_once() -> None:
    reader = OpenAIReader("openai@a")
    shown = [reader.feed(chunk(reasoning="hm", reasoning_content="hm", reasoning_details=[{"text": "hm"}]))]
    assert len([item for items in shown if isinstance(items, list) for item in items]) == 1


def test_reasoning_details_are_joined_by_item() -> None:
    pieces = [
        {"type": "reasoning.text", "index": 0, "text": "a"},
        {"type": "reasoning.text", "index": 0, "text": "b", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "x"},
        {"type": "reasoning.encrypted", "index": 1, "data": "y"},
    ]
    events = [chunk(reasoning_details=[piece]) for piece in pieces]
    message = read(OpenAIReader("openai@a"), *events, chunk("stop", content="yes")).answer().message
    assert message.parts[1] == Opaque(
        "openai@a",
        {
            "reasoning_details": [
                {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"},
                {"type": "reasoning.encrypted", "index": 1, "data": "x"},
                {"type": "reasoning.encrypted", "index": 1, "data": "y"},
            ]
        },
    )


def test_a_stream_has_ended_by_its_reason_or_by_its_mark_outside_of_a_call() -> None:
    assert not read(OpenAIReader("o"), chunk(content="yes")).answer().ended
    assert read(OpenAIReader("o"), chunk("stop", content="yes")).answer().ended
    assert read(OpenAIReader("o"), chunk(content="yes"), END_MARK).answer().ended
    assert read(OpenAIReader("o"), call("a", "{}", index=0), END_MARK).answer().finish is Finish.TOOL_CALLS
    assert not read(OpenAIReader("o"), call("a", "{}", index=0)).answer().ended
    assert not read(OpenAIReader("o"), call("a", '{"x', index=0), END_MARK).answer().ended


def test_a_refusal_of_openai_is_a_safety_stop_that_is_shown() -> None:
    answer = read(OpenAIReader("o"), chunk(refusal="I will not."), chunk("stop")).answer()
    assert answer.finish is Finish.SAFETY
    assert answer.message.parts == (Text("I will not."),)


def test_content_as_a_list_of_typed_parts_is_read() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]
    message = read(OpenAIReader("o"), chunk("stop", content=parts)).answer().message
    assert message.parts == (ModelThought("hm", ProviderState("o", {"field": ""})), Text("yes"))


def test_a_malformed_call_of_gemini_is_an_empty_answer_with_its_reason() -> None:
    candidate = {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed function call: print("}
    answer = read(GeminiReader(), {"candidates": [candidate]}).answer()
    assert (answer.finish, answer.message.parts) == (Finish.OTHER, ())
    assert answer.raw_finish == "MALFORMED_FUNCTION_CALL: Malformed function call: print("


def test_a_block_of_anthropics_own_tools_keeps_its_streamed_input() -> None:
    start: dict[str, Any] = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    reader = read(
        AnthropicReader(),
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"q":'}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '"x"}'}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "new", "data": "a"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "new_delta", "data": "b", "n": 1}},
    )
    assert reader.answer().message.parts == (
        Opaque("anthropic", {**start, "input": {"q": "x"}}),
        Opaque("anthropic", {"type": "new", "data": "ab", "n": 1}),
    )


def test_ids_of_other_providers_are_made_fit_for_anthropic_on_both_sides() -> None:
    message = read(OpenAIReader("o"), call("a", "{}", index=0, id="functions.a:0")).answer().message
    body = anthropic_body(ModelRequest("", (message,)), "m")
    assert body["messages"][0]["content"][0]["id"] == "functions_a_0"
    assert body["messages"][1]["content"][0]["tool_use_id"] == "functions_a_0"


@pytest.mark.parametrize(
    ("name", "version", "thinks", "limit"),
    [
        ("claude-sonnet-5-5", (5, 5), True, 128_000),
        ("claude-opus-4-6", (4, 6), True, 128_000),
        ("claude-haiku-4-5-20251001", (4, 5), True, 64_000),
        ("claude-opus-5", (5, 0), True, 128_000),
        ("claude-3-7-sonnet-20250219", (3, 7), True, 50_000),
        ("claude-3-5-haiku-latest", (3, 5), False, 8192),
        ("claude-3-opus-20240229", (3, 0), False, 4096),
        ("other", None, False, 32_000),
    ],
)
def test_what_a_claude_model_can_do_follows_from_its_row(
    name: str, version: tuple[int, int] | None, thinks: bool, limit: int
) -> None:
    assert (version_of(name), anthropic_thinks(name), output_limit(name, facts_of_claude(name))) == (
        version,
        thinks,
        limit,
    )


def test_a_call_of_another_model_carries_what_gemini_takes_for_a_signature() -> None:
    foreign = read(OpenAIReader("o"), call("a", "{}", index=0, id="1")).answer().message
    native = read(GeminiReader(), {"candidates": [{"content": {"parts": [{"functionCall": {"name": "a"}}]}}]})
    request = ModelRequest("", (foreign, native.answer().message))
    part: dict[str, Any] = {"functionCall": {"name": "a", "args": {}}}
    sent = [content["parts"][0] for content in gemini_body(request, "gemini-3.8-flash")["contents"][::2]]
    assert sent == [{**part, "thoughtSignature": "skip_thought_signature_validator"}, part]
    sent = [content["parts"][0] for content in gemini_body(request, "gemini-2.5-flash")["contents"][::2]]
    assert sent == [part, part]


def test_only_gemini_models_that_can_think_are_asked_for_their_thoughts() -> None:
    assert [gemini_thinks(name) for name in ("gemini-2.0-flash", "gemini-1.5-pro", "gemma-3-27b")] == [False] * 3
    assert [gemini_thinks(name) for name in ("gemini-2.5-pro", "gemini-3.8-flash", "gemini-flash-latest")] == [True] * 3
