"""OpenAI's Responses: the requests as they stand on the wire; the official SDK's types judge both sides."""

import json
from dataclasses import replace
from typing import Any

import pytest
from openai.types.responses import ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from isthmus.models.choose import choose
from isthmus.models.endpoint.providers import OPENAI
from isthmus.models.endpoint.providers import RESPONSES as PROVIDER
from isthmus.models.openai.chat_completions import OpenAIModel
from isthmus.models.openai.responses import ResponsesModel
from isthmus.models.port.base import (
    Done,
    Effort,
    Message,
    ModelRequest,
    ModelThought,
    ModelToolResult,
    Text,
    TextDelta,
    ThoughtDelta,
)
from isthmus.models.port.message import message_from_json, message_to_json
from isthmus.models.streaming import open_provider
from support.model_bench import QUESTION, RESPONSES, bench, continued
from support.responses_wire import ResponsesWire
from support.scripted_wire import Call, Reply, Say, Think, WireUsage
from support.wire_server import WireRequest

pytestmark = pytest.mark.anyio

REASONED = Reply.of(
    Think("I look ", "first.", signature="gAAAA=="),
    Say("Let me look."),
    Call("glob", {"pattern": "*"}, id="call_1"),
    usage=WireUsage(input=2_000, output=90, cached=1_500, thoughts=64),
)


async def test_the_reasoning_goes_back_encrypted_between_the_calls_of_a_turn() -> None:
    request = replace(QUESTION, effort=Effort.HIGH, max_output_tokens=500)
    async with bench(RESPONSES, REASONED, Reply.of(Say("Done.")), model="gpt-6.2-sol") as it:
        items = await it.ask(request)
        done = items[-1]
        assert isinstance(done, Done)
        assert "".join(item.text for item in items if isinstance(item, ThoughtDelta)) == "I look first."
        assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "Let me look."
        answer = continued(done, ModelToolResult("call_1", "glob", "a.py"), text="thanks")
        # The journal keeps the message as JSON: a task that waited goes on in another process.
        kept = tuple(message_from_json(json.loads(json.dumps(message_to_json(item)))) for item in answer.messages)
        await it.answer(replace(answer, messages=kept, effort=Effort.HIGH))
        first, second = (sent.json for sent in it.wire.model_requests)
        assert it.wire.model_requests[0].path == "/v1/responses"
    assert (done.usage.input, done.usage.cached, done.usage.output, done.usage.thoughts) == (2_000, 1_500, 90, 64)
    key = first.pop("prompt_cache_key")
    assert first == {
        "model": "gpt-6.2-sol",
        "instructions": "You are a test.",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is here?"}]}],
        "stream": True,
        "store": False,
        "reasoning": {"effort": "high", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "tools": [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in QUESTION.tools
        ],
        "max_output_tokens": 500,
    }
    assert second["prompt_cache_key"] == key
    assert second["input"][1:] == [
        {
            "type": "reasoning",
            "id": "rs_0",
            "summary": [{"type": "summary_text", "text": "I look first."}],
            "encrypted_content": "gAAAA==",
        },
        {"type": "message", "role": "assistant", "content": "Let me look."},
        {"type": "function_call", "call_id": "call_1", "name": "glob", "arguments": '{"pattern": "*"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "a.py"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "thanks"}]},
    ]
    judge = TypeAdapter[Any](ResponseCreateParamsStreaming)
    for body in (first, second):
        judge.validate_python(body)


def test_the_official_types_read_every_event_of_our_endpoint() -> None:
    request = WireRequest("POST", "/v1/responses", "", {}, b'{"tools": []}')
    judge = TypeAdapter[Any](ResponseStreamEvent)
    for event in ResponsesWire([]).events(REASONED, request):
        data = json.loads(event.partition(b"data: ")[2])
        if data["type"] in ("response.created", "response.completed"):
            continue  # these have the whole response, of which the SDK requires more than any client reads
        judge.validate_python({"sequence_number": 1, "logprobs": [], **data})


async def test_a_model_that_does_not_reason_gets_no_parameters_for_it() -> None:
    async with bench(RESPONSES, Reply.of(Say("hi")), model="gpt-4.1") as it:
        await it.answer(replace(QUESTION, effort=Effort.LOW))
        assert not {"reasoning", "include"} & it.wire.model_requests[0].json.keys()


async def test_a_thought_without_a_summary_is_kept_all_the_same() -> None:
    async with bench(RESPONSES, Reply.of(Think(signature="secret=="), Say("x")), Reply.of(Say("y"))) as it:
        done = await it.answer()
        (thought,) = [part for part in done.message.parts if isinstance(part, ModelThought)]
        assert thought.text == ""
        await it.answer(continued(done, text="on"))
        assert "secret==" in it.wire.model_requests[1].body.decode()


async def test_a_conversation_begun_by_chat_completions_goes_on() -> None:
    history = (Message("user", (Text("one"),)), Message("assistant", (ModelThought("hm"), Text("two"))))
    async with bench(RESPONSES, Reply.of(Say("three"))) as it:
        await it.answer(ModelRequest("s", (*history, Message("user", (Text("go"),)))))
        kinds = [(item["type"], item.get("role")) for item in it.wire.model_requests[0].json["input"]]
        assert kinds == [("message", "user"), ("message", "assistant"), ("message", "user")]


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        (None, ResponsesModel),
        ("https://api.openai.com/v1/", ResponsesModel),
        ("https://proxy.example.org/v1", OpenAIModel),
        ("http://127.0.0.1:11434/v1", OpenAIModel),
    ],
)
async def test_openais_own_server_is_asked_by_responses_and_imitators_by_chat_completions(
    address: str | None, kind: type[OpenAIModel]
) -> None:
    environment = {"OPENAI_API_KEY": "a-key-of-some-length", **({"OPENAI_BASE_URL": address} if address else {})}
    for provider, expected in ((OPENAI, kind), (PROVIDER, ResponsesModel)):
        model = open_provider(provider, "gpt-6.2-sol", environment)
        assert type(model) is expected
        await model.aclose()


def test_the_prefix_chooses_responses_for_any_server() -> None:
    environment = {"OPENAI_API_KEY": "a-key-of-some-length", "OPENAI_BASE_URL": "https://proxy.example.org/v1"}
    chosen = choose("responses:gpt-6.2-sol", None, environment)
    assert (chosen.provider, chosen.name) == ("responses", "gpt-6.2-sol")
