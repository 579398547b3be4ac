"""A tool whose argument is a text: raw on OpenAI's Responses, JSON on every other wire."""

import json
from dataclasses import replace
from typing import Any

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from isthmus.models.port.base import (
    Done,
    Finish,
    FreeForm,
    ModelRequest,
    ModelToolResult,
    ToolRequest,
    ToolRequestStarted,
    ToolSpec,
)
from isthmus.models.port.message import message_from_json, message_to_json
from support.model_bench import ANTHROPIC, GEMINI, OPENAI, QUESTION, RESPONSES, Provider, bench, continued
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

PATCH = '*** Begin Patch\n*** Add File: "a"\n+$x\n*** End Patch\n'
GRAMMAR = 'start: "x"\n'
PARAMETERS = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
TOOL = ToolSpec("apply_patch", "Patches.", PARAMETERS, free_form=FreeForm("input", GRAMMAR))
ASKED: ModelRequest = replace(QUESTION, tools=(*QUESTION.tools, TOOL))


async def test_the_text_is_raw_both_ways_on_responses() -> None:
    call = Reply.of(Call("apply_patch", PATCH, id="call_1"))
    async with bench(RESPONSES, call, Reply.of(Say("Done.")), model="gpt-6.2-sol") as it:
        items = await it.ask(ASKED)
        done = items[-1]
        assert isinstance(done, Done)
        assert ToolRequestStarted("apply_patch") in items
        assert done.finish is Finish.TOOL_CALLS
        assert done.message.parts == (ToolRequest("call_1", "apply_patch", {"input": PATCH}),)
        answer = continued(done, ModelToolResult("call_1", "apply_patch", "Created."), text="thanks")
        kept = tuple(message_from_json(json.loads(json.dumps(message_to_json(item)))) for item in answer.messages)
        await it.answer(replace(answer, messages=kept, tools=ASKED.tools))
        first, second = (sent.json for sent in it.wire.model_requests)
    assert first["tools"][-1] == {
        "type": "custom",
        "name": "apply_patch",
        "description": "Patches.",
        "format": {"type": "grammar", "syntax": "lark", "definition": GRAMMAR},
    }
    assert second["input"][1:3] == [
        {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": PATCH},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "Created."},
    ]
    judge = TypeAdapter[Any](ResponseCreateParamsStreaming)
    for body in (first, second):
        judge.validate_python(body)


async def test_an_argument_of_our_own_is_left_out_on_responses() -> None:
    """The second call of a move has one."""
    call = ToolRequest("call_1", "apply_patch", {"input": PATCH, "removes_moved": True})
    async with bench(RESPONSES, Reply.of(Say("Done.")), model="gpt-6.2-sol") as it:
        message = replace(QUESTION.messages[0], role="assistant", parts=(call,))
        result = replace(message, role="user", parts=(ModelToolResult("call_1", "apply_patch", "Deleted."),))
        await it.answer(replace(ASKED, messages=(*QUESTION.messages, message, result)))
        (sent,) = it.wire.model_requests
    assert [item["type"] for item in sent.json["input"][1:]] == ["custom_tool_call", "custom_tool_call_output"]
    assert sent.json["input"][1]["input"] == PATCH


@pytest.mark.parametrize("provider", [GEMINI, ANTHROPIC, OPENAI], ids=lambda each: each.name)
async def test_the_tool_is_an_ordinary_one_on_other_wires(provider: Provider) -> None:
    async with bench(provider, Reply.of(Call("apply_patch", {"input": PATCH})), Reply.of(Say("x"))) as it:
        done = await it.answer(ASKED)
        (call,) = done.message.parts
        assert isinstance(call, ToolRequest)
        assert call.arguments == {"input": PATCH}
        assert b"lark" not in it.wire.model_requests[0].body
