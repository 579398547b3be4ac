"""Tool calls and questions of an ACP agent as ours: names, states, details, and ids that come again."""

import re
from typing import Any

import pytest

from isthmus.acp.host.agents import claude_agent_acp, gemini, qwen
from isthmus.acp.host.calls import CallTable
from isthmus.acp.host.known_agent import UNKNOWN, KnownAgent
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.v1.client_requests import PermissionOption
from isthmus.acp.v1.updates import SessionNotification, ToolCallChanged, ToolCallStarted
from isthmus.development_tool import (
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.encoding.codec import from_json

OPTIONS = (PermissionOption("once", "Allow", "allow_once"),)


def state(what: str = "tool_call", **members: Any) -> ToolCallStarted | ToolCallChanged:
    """Return an update of the call "c" as it is read from the wire."""
    update = {"sessionUpdate": what, "toolCallId": "c", "title": "Do it", **members}
    read = from_json(SessionNotification, {"sessionId": "s", "update": update}).update
    assert isinstance(read, ToolCallStarted | ToolCallChanged)
    return read


def text(value: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": value}}


def diff(path: str, new: str, old: str | None = None) -> dict[str, Any]:
    return {"type": "diff", "path": path, "newText": new, "oldText": old}


def table(agent: KnownAgent = UNKNOWN, **limits: int) -> CallTable:
    return CallTable(agent, HostLimits(**limits))  # type: ignore[arg-type]


def shown(calls: CallTable, *updates: ToolCallStarted | ToolCallChanged) -> ToolCall:
    """Return the call after updates."""
    found = [call for update in updates if (call := calls.take(update)) is not None]
    return found[-1]


def test_a_call_goes_through_its_states_with_live_content_and_output() -> None:
    calls = table()
    first = calls.take(state(status="pending", rawInput={"a": 1}))
    assert first == ToolCall("c", ToolCallStatus.PENDING, "other", {"a": 1}, "Do it")
    running = calls.take(state("tool_call_update", status="in_progress", content=[text("half")]))
    assert running is not None
    assert (running.status, running.live_content) == (ToolCallStatus.EXECUTING, "half")
    assert calls.take(state("tool_call_update", status="in_progress")) is None
    assert calls.take(state("tool_call_update", status="pending")) is None
    done = calls.take(state("tool_call_update", status="completed", content=[text("all"), text("of it")]))
    assert done is not None
    assert (done.status, done.output) == (ToolCallStatus.SUCCEEDED, ToolOutput(text="all\nof it"))
    assert calls.take(state("tool_call_update", status="failed")) is None


def test_an_id_that_comes_again_is_another_call() -> None:
    calls = table()
    shown(calls, state(status="completed"))
    assert shown(calls, state(status="pending")).tool_call_id == "c-2"
    assert shown(calls, state("tool_call_update", status="completed")).tool_call_id == "c-2"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"content": [text("no such file")]}, "no such file"),
        ({"rawOutput": {"code": 2}}, '{"code":2}'),
        ({"rawOutput": "boom"}, "boom"),
        ({}, "Do it failed; the agent does not say why"),
    ],
)
def test_a_failure_says_why(members: dict[str, Any], message: str) -> None:
    call = shown(table(), state(status="failed", **members))
    assert call.error is not None
    assert call.error.message == message


def test_one_diff_is_an_output_and_several_are_text() -> None:
    one = shown(table(), state(status="completed", content=[diff("/w/a.txt", "new\n", "old\n")]))
    assert one.output is not None
    assert one.output.diff == FileDiff(
        "a.txt", "/w/a.txt", "new\n", "old\n", "--- a/w/a.txt\n+++ b/w/a.txt\n@@ -1 +1 @@\n-old\n+new\n"
    )
    changes = [diff("/w/a", "x\n"), diff("/w/b", "y\n")]
    two = shown(table(), state(status="completed", content=changes))
    assert two.output is not None
    assert re.findall(r"(?m)^\+\w", two.output.text or "") == ["+x", "+y"]


@pytest.mark.parametrize(
    ("asked", "result", "shown_as"),
    [
        (diff("/w/a", "one\n"), diff("/w/a", "one\n", ""), (None, "one\n")),
        (diff("/w/a", "one\nTWO\n", "one\ntwo\n"), diff("/w/a", "TWO", "two"), ("one\ntwo\n", "one\nTWO\n")),
        (diff("/w/a", "one\n"), diff("/w/a", "one;\n", ""), ("", "one;\n")),
        (diff("/w/a", "one\n"), diff("/w/b", "one\n", ""), ("", "one\n")),
    ],
    ids=["a new file", "a passage", "written otherwise", "another file"],
)
def test_a_result_that_says_less_than_the_question_is_shown_as_the_question(
    asked: dict[str, Any], result: dict[str, Any], shown_as: tuple[str | None, str]
) -> None:
    calls = table()
    calls.ask(state(content=[asked]), OPTIONS)
    calls.allow("c")
    done = shown(calls, state("tool_call_update", status="completed", content=[result]))
    assert done.output is not None
    assert done.output.diff is not None
    assert (done.output.diff.old_content, done.output.diff.new_content) == shown_as


@pytest.mark.parametrize(
    ("agent", "members", "name"),
    [
        (UNKNOWN, {"kind": "read"}, "read"),
        (gemini.AGENT, {"toolCallId": "write_file__write_file_17_0"}, "write_file"),
        (gemini.AGENT, {"toolCallId": "replace-1795646626284-0"}, "replace"),
        (qwen.AGENT, {"_meta": {"toolName": "read_file"}}, "read_file"),
        (claude_agent_acp.AGENT, {"_meta": {"claudeCode": {"toolName": "Bash"}}, "kind": "execute"}, "Bash"),
        (claude_agent_acp.AGENT, {"_meta": {"claudeCode": []}, "kind": "execute"}, "execute"),
    ],
)
def test_the_name_of_the_tool_is_found_where_the_agent_states_it(
    agent: KnownAgent, members: dict[str, Any], name: str
) -> None:
    assert shown(table(agent), state(**members)).tool_name == name


@pytest.mark.parametrize(
    ("agent", "members", "details"),
    [
        (UNKNOWN, {"kind": "execute", "rawInput": {"command": "ls -l", "cwd": "/w"}}, ExecuteDetails("ls -l", "/w")),
        (UNKNOWN, {"kind": "execute", "rawInput": {"command": ["ls", "a b"]}}, ExecuteDetails("ls 'a b'")),
        (UNKNOWN, {"kind": "execute"}, GenericDetails("Do it")),
        (gemini.AGENT, {"kind": "execute"}, ExecuteDetails("Do it")),
        (gemini.AGENT, {"title": "find (notes MCP Server)"}, McpDetails("notes", "find")),
        (claude_agent_acp.AGENT, {"_meta": {"claudeCode": {"toolName": "mcp__a__b"}}}, McpDetails("a", "b")),
        (UNKNOWN, {"kind": "fetch", "content": [text("https://x.org")]}, GenericDetails("Do it\nhttps://x.org")),
    ],
)
def test_a_question_has_the_details_of_its_kind(agent: KnownAgent, members: dict[str, Any], details: object) -> None:
    (asked,) = table(agent).ask(state(**members), OPTIONS)
    assert asked.status is ToolCallStatus.PENDING
    assert asked.confirmation_request is not None
    assert asked.confirmation_request.details == details


def test_a_question_stays_shown_until_it_is_answered() -> None:
    calls = table()
    calls.take(state(status="pending"))
    (asked,) = calls.ask(state("tool_call_update", rawInput={"a": 1}), OPTIONS)
    assert asked.input_parameters == {"a": 1}
    assert calls.take(state("tool_call_update", status="in_progress")) is None
    assert calls.allow("c").status is ToolCallStatus.EXECUTING
    closed, again = calls.ask(state("tool_call_update"), OPTIONS)
    assert (closed.tool_call_id, closed.status) == ("c", ToolCallStatus.CANCELLED)
    assert again.tool_call_id == "c-2"
    assert again.confirmation_request is not None


def test_everything_that_an_agent_sends_has_a_limit() -> None:
    calls = table(title=10, text=20, arguments=30, options=2, file=5, calls=2)
    big = state(title="t" * 50, rawInput={"a": "b" * 50}, content=[text("x" * 50), diff("/a", "123456")])
    (asked,) = calls.ask(big, [PermissionOption(str(number), "n" * 50, "") for number in range(2)])
    request = asked.confirmation_request
    assert request is not None
    assert [option.id for option in request.options] == ["0", "1"]
    assert {len(option.name) for option in request.options} == {10}
    assert isinstance(request.details, GenericDetails)
    assert len(request.details.description) <= 20
    assert asked.input_parameters == {}
    assert calls.take(state(toolCallId="d")) is not None
    assert calls.take(state(toolCallId="e")) is None


def test_output_beside_a_terminal_is_shown_as_it_comes() -> None:
    def output(data: Any) -> dict[str, Any]:
        return {"terminal_output_delta": {"terminal_id": "c", "data": data}}

    calls = table(text=12)
    terminal = [{"type": "terminal", "terminalId": "c"}]
    shown(calls, state(status="in_progress", content=terminal))
    assert shown(calls, state("tool_call_update", _meta=output("one\n"))).live_content == "one\n"
    assert shown(calls, state("tool_call_update", _meta=output("two\n"))).live_content == "one\ntwo\n"
    assert calls.take(state("tool_call_update", _meta=output(7))) is None
    done = shown(calls, state("tool_call_update", status="completed", _meta={"terminal_exit": {"exit_code": 0}}))
    assert done.output == ToolOutput(text="one\ntwo\n")

    failed = [state(status="in_progress"), state("tool_call_update", _meta=output("x" * 20))]
    call = shown(calls, *failed, state("tool_call_update", status="failed"))
    assert call.error is not None
    assert call.error.message == "x" * 11 + "\u2026"


def test_the_name_that_an_agent_states_is_the_tools_name() -> None:
    assert shown(table(), state(name="Bash", kind="execute")).tool_name == "Bash"
    assert shown(table(), state(name=None, kind="execute")).tool_name == "execute"
    assert shown(table(qwen.AGENT), state(name="new", _meta={"toolName": "old"})).tool_name == "new"
