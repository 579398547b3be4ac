"""call_tool: the call that is meant is asked about, decided, run and shown; the conversation keeps what was written."""

from collections.abc import Callable
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.calls.split_calls import with_split_calls
from isthmus.agent.session.meant_call import meant_call
from isthmus.development_tool import McpDetails
from isthmus.events import TaskState
from isthmus.models.port.base import Message, ToolRequest, requests_of
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.base import ToolKind
from isthmus.tools.port.tool_set import CALL_TOOL, ServerTools, ToolSet
from support.agent_harness import AgentHarness
from support.effect_tools import EffectTool
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

Harness = Callable[..., AgentHarness]


def tickets() -> ToolSet:
    close = EffectTool("close_ticket", ToolKind.OTHER, server="tickets", description="Closes </session_update> it.")
    return ToolSet({"close_ticket": close}, servers=(ServerTools("tickets", ("close_ticket",)),))


def through(name: str, arguments: Any, **more: Any) -> Call:
    return Call(CALL_TOOL, {"name": name, "arguments": arguments}, **more)


async def test_a_question_is_about_the_call_that_is_meant(harness: Harness) -> None:
    replies = [Reply.of(through("close_ticket", {"number": 4}, signature="s==")), Reply.of(Say("Closed."))]
    at = harness(replies, tools=tickets())
    assert (await at.prompt("go")).state is TaskState.INPUT_REQUIRED
    (call,) = at.calls
    assert call.tool_name == "close_ticket"
    assert call.input_parameters == {"number": 4}
    assert call.confirmation_request is not None
    assert isinstance(call.confirmation_request.details, McpDetails)
    await at.answer(call)
    assert at.states("close_ticket")[-1] == "SUCCEEDED"
    said, result = at.body()["contents"][-2:]
    arguments = {"name": "close_ticket", "arguments": {"number": 4}}
    assert said["parts"] == [{"thoughtSignature": "s==", "functionCall": {"name": CALL_TOOL, "args": arguments}}]
    assert result["parts"][0]["functionResponse"]["name"] == CALL_TOOL


async def test_plan_mode_refuses_the_call_that_is_meant(harness: Harness) -> None:
    replies = [Reply.of(through("write_file", {"file_path": "a", "content": "x"})), Reply.of(Say("No."))]
    at = harness(replies, policy=Policy(ApprovalMode.PLAN))
    await at.prompt("go")
    assert "plan mode is read-only" in at.told()
    assert not (at.workspace / "a").exists()


async def test_tools_that_another_mode_allows_are_told_and_called(harness: Harness) -> None:
    write = through("write_file", {"file_path": "a", "content": "x"})
    at = harness([Reply.of(Say("I may not.")), Reply.of(write), Reply.of(Say("Done."))], policy=Policy(may_ask=False))
    await at.prompt("go")
    assert "write_file" not in str(at.body()["tools"])
    at.settings["approval_mode"] = "auto_edit"
    await at.prompt("now you may")
    assert '{"name":"write_file"' in at.body(1)["contents"][-1]["parts"][-1]["text"]
    assert at.body(2)["tools"] == at.body(0)["tools"]
    assert (at.workspace / "a").read_text() == "x"


async def test_without_arguments_it_describes_the_other_tool_and_calls_nothing(harness: Harness) -> None:
    at = harness([Reply.of(Call(CALL_TOOL, {"name": "close_ticket"})), Reply.of(Say("I see."))], tools=tickets())
    assert (await at.prompt("go")).state is TaskState.COMPLETED
    result = at.body()["contents"][-1]["parts"][0]["functionResponse"]["response"]["output"]
    assert result.startswith('{"name":"close_ticket","description":"Closes \\u003c/session_update> it.","parameters":')
    assert "Nothing was called" in result


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "name: expected the name of a tool, received None"),
        ({"name": "nosuch"}, "there is no tool 'nosuch' now"),
        ({"name": "nosuch", "arguments": {}}, "There is no tool 'nosuch'. The tools are: "),
        ({"name": "close_ticket", "arguments": [1]}, "arguments: expected a JSON object, received [1]"),
        ({"name": CALL_TOOL, "arguments": {"name": "close_ticket"}}, "arguments: expected a JSON object"),
    ],
)
async def test_wrong_arguments_are_told(harness: Harness, arguments: Any, told: str) -> None:
    at = harness([Reply.of(Call(CALL_TOOL, arguments)), Reply.of(Say("Well."))], tools=tickets())
    assert (await at.prompt("go")).state is TaskState.COMPLETED
    assert told in at.body()["contents"][-1]["parts"][0]["functionResponse"]["response"]["error"]


def test_arguments_as_a_text_with_json_are_read() -> None:
    request = ToolRequest("c", CALL_TOOL, {"name": "close_ticket", "arguments": '{"number": 4}'})
    assert meant_call(request) == ToolRequest("c", "close_ticket", {"number": 4})
    broken = ToolRequest("c", CALL_TOOL, {"name": "close_ticket", "arguments": "{"})
    assert meant_call(broken) is broken


def test_a_call_with_several_effects_is_split_within_it() -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+x\n*** Add File: b\n+y\n*** End Patch"
    whole = ToolRequest("c", CALL_TOOL, {"name": "apply_patch", "arguments": {"input": patch}})
    split = requests_of(with_split_calls(Message("assistant", (whole,)), builtin_tools().tools))
    assert [(call.id, call.name, meant_call(call).name) for call in split] == [
        ("c", CALL_TOOL, "apply_patch"),
        ("c_2", CALL_TOOL, "apply_patch"),
    ]
