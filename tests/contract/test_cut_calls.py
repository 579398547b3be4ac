"""A tool call that was cut by the output limit, as each wire reports it."""

import json
from typing import Any

import pytest

from isthmus.models.choose import ModelChoice, open_model
from isthmus.models.port.base import Done, Finish, requests_of
from support.model_bench import QUESTION
from support.wire_server import Answer, WireRequest, WireServer

pytestmark = pytest.mark.anyio

CUT = '{"file_path": "a.py", "content": "x = '
ANTHROPIC: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "t1", "name": "write_file", "input": {}},
    },
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": CUT}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 64_000}},
    {"type": "message_stop"},
]
CHAT: list[dict[str, Any]] = [
    {
        "choices": [
            {
                "index": 0,
                "delta": {
                    "tool_calls": [
                        {"index": 0, "id": "c1", "function": {"name": "write_file", "arguments": CUT}},
                    ]
                },
            }
        ]
    },
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]},
    {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 777}},
]
RESPONSES: list[dict[str, Any]] = [
    {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {
            "type": "function_call",
            "call_id": "c1",
            "name": "write_file",
            "arguments": CUT,
            "status": "incomplete",
        },
    },
    {
        "type": "response.incomplete",
        "response": {
            "incomplete_details": {"reason": "max_output_tokens"},
            "usage": {"input_tokens": 9, "output_tokens": 777},
        },
    },
]


@pytest.mark.parametrize(
    ("provider", "name", "events", "limit"),
    [
        ("anthropic", "claude-haiku-4-5", ANTHROPIC, "64,000"),
        ("openai", "unknown", CHAT, "777"),
        ("responses", "gpt-6.1-sol", RESPONSES, "128,000"),
    ],
)
async def test_a_cut_call_names_the_limit_on_every_wire(
    provider: str, name: str, events: list[dict[str, Any]], limit: str
) -> None:
    def respond(request: WireRequest) -> Answer:
        lines = [f"event: {event.get('type', 'x')}\ndata: {json.dumps(event)}\n\n" for event in events]
        return Answer(200, {"content-type": "text/event-stream"}, ("".join(lines).encode(),))

    with WireServer(respond) as server:
        environment = {"ANTHROPIC_BASE_URL": server.base_url, "OPENAI_BASE_URL": f"{server.base_url}/v1"}
        model = open_model(ModelChoice(provider, name, "a test"), environment)
        try:
            items = [item async for item in model.stream(QUESTION)]
        finally:
            await model.aclose()
    done = items[-1]
    assert isinstance(done, Done)
    (call,) = requests_of(done.message)
    assert (done.finish, call.name, call.arguments) == (Finish.LENGTH, "write_file", {})
    assert call.invalid is not None
    assert call.invalid.startswith(f"the answer was cut at the output limit of {limit} tokens, so its arguments")
