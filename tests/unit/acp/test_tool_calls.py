"""Tool calls as clients of ACP see them. What goes out stands here as JSON, and fits the official schema."""

from typing import Any

import pytest

from isthmus.acp.front.tool_calls import MAXIMUM_TEXT, call_state, fenced
from isthmus.acp.front.wire_v1 import call_state_v1
from isthmus.development_tool import (
    ConfirmationDetails,
    ConfirmationOption,
    ConfirmationRequest,
    ErrorDetails,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.encoding.codec import to_camel_json
from support import acp_schema

OPTIONS = (ConfirmationOption("proceed_once", "Allow once"),)
DIFF = FileDiff("a.txt", "/w/a.txt", "new\n", "old\n", "-old\n+new\n")


def call(name: str = "tool", status: ToolCallStatus = ToolCallStatus.EXECUTING, **more: Any) -> ToolCall:
    return ToolCall("c1", status, name, more.pop("input_parameters", {}), **more)


def asked(name: str, details: ConfirmationDetails, **more: Any) -> ToolCall:
    return call(name, ToolCallStatus.PENDING, confirmation_request=ConfirmationRequest.of(OPTIONS, details), **more)


def sent(tool_call: ToolCall) -> dict[str, Any]:
    state = to_camel_json(call_state_v1(call_state(tool_call, "/w")))
    acp_schema.check("ToolCallUpdate", state)
    acp_schema.check_update({"sessionUpdate": "tool_call", **state})
    return state


def test_an_edit_that_waits_shows_its_diff_place_and_arguments() -> None:
    arguments = {"file_path": "a.txt", "old_string": "old", "expected_replacements": 1}
    assert sent(asked("replace", DIFF, description="Edit a.txt", input_parameters=arguments)) == {
        "toolCallId": "c1",
        "title": "Edit a.txt",
        "kind": "edit",
        "status": "pending",
        "content": [{"type": "diff", "path": "/w/a.txt", "oldText": "old\n", "newText": "new\n"}],
        "locations": [{"path": "/w/a.txt"}],
        "rawInput": {"file_path": "a.txt", "old_string": "old", "expected_replacements": 1},
        "name": "replace",
    }


def test_a_new_file_has_no_old_text_and_a_deleted_one_an_empty_new_text() -> None:
    new = sent(asked("write_file", FileDiff("b", "/w/b", "text")))
    assert new["content"] == [{"type": "diff", "path": "/w/b", "newText": "text"}]
    deleted = sent(asked("delete_file", FileDiff("b", "/w/b", "", "text"), description="Delete b"))
    assert deleted["content"] == [{"type": "diff", "path": "/w/b", "oldText": "text", "newText": ""}]
    assert (deleted["title"], deleted["kind"]) == ("Delete b", "edit")


def test_a_shell_command_that_waits_shows_the_command_and_its_folder() -> None:
    command = ExecuteDetails("make ```x```", "/w/src")
    state = sent(asked("run_shell_command", command, input_parameters={"command": "make"}))
    text = "In /w/src:\n````sh\nmake ```x```\n````"
    assert state["content"] == [{"type": "content", "content": {"type": "text", "text": text}}]
    assert (state["title"], state["kind"], state["status"]) == ("run_shell_command", "execute", "pending")
    assert "locations" not in state


@pytest.mark.parametrize(
    ("details", "text"),
    [
        (McpDetails("files", "read"), "read of the MCP server files"),
        (GenericDetails("Open the page?"), "Open the page?"),
        (ExecuteDetails("ls"), "```sh\nls\n```"),
    ],
)
def test_other_questions_are_shown_as_text(details: ConfirmationDetails, text: str) -> None:
    assert sent(asked("x", details))["content"] == [{"type": "content", "content": {"type": "text", "text": text}}]


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (ToolCallStatus.STATUS_UNSPECIFIED, "pending"),
        (ToolCallStatus.PENDING, "pending"),
        (ToolCallStatus.EXECUTING, "in_progress"),
        (ToolCallStatus.SUCCEEDED, "completed"),
        (ToolCallStatus.FAILED, "failed"),
        (ToolCallStatus.CANCELLED, "failed"),
    ],
)
def test_each_state_has_a_word_of_the_protocol(status: ToolCallStatus, word: str) -> None:
    assert sent(call(status=status)) == {
        "toolCallId": "c1",
        "title": "tool",
        "kind": "other",
        "status": word,
        "name": "tool",
    }


def test_a_call_whose_agent_does_not_name_its_tool_has_no_name() -> None:
    assert "name" not in sent(asked("edit", DIFF))
    assert sent(asked("mcp__git__log", DIFF))["name"] == "mcp__git__log"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("glob", "search"),
        ("grep_search", "search"),
        ("list_directory", "read"),
        ("read_file", "read"),
        ("read_many_files", "read"),
        ("read_mcp_resource", "read"),
        ("replace", "edit"),
        ("apply_patch", "edit"),
        ("run_shell_command", "execute"),
        ("search_mcp_tools", "search"),
        ("write_file", "edit"),
        ("server__tool", "other"),
    ],
)
def test_each_tool_has_a_kind(name: str, kind: str) -> None:
    assert sent(call(name))["kind"] == kind


def test_the_output_of_a_command_replaces_what_it_wanted_and_is_shown_as_code() -> None:
    running = sent(call("run_shell_command", live_content="one\n"))
    assert running["content"] == [{"type": "content", "content": {"type": "text", "text": "```\none\n```"}}]
    done = sent(call("run_shell_command", ToolCallStatus.SUCCEEDED, output=ToolOutput(text="one\ntwo\n")))
    assert done["content"] == [{"type": "content", "content": {"type": "text", "text": "```\none\ntwo\n```"}}]


def test_structured_output_is_both_text_and_raw() -> None:
    state = sent(call(status=ToolCallStatus.SUCCEEDED, output=ToolOutput(structured_data={"snake_case": 1, "é": []})))
    assert state["rawOutput"] == {"snake_case": 1, "é": []}
    text = '```json\n{\n  "snake_case": 1,\n  "é": []\n}\n```'
    assert state["content"] == [{"type": "content", "content": {"type": "text", "text": text}}]


def test_a_failure_shows_its_reason_and_a_finished_edit_what_was_written() -> None:
    failed = sent(call("write_file", ToolCallStatus.FAILED, error=ErrorDetails("no space", "disk", 28)))
    assert failed["content"] == [{"type": "content", "content": {"type": "text", "text": "no space"}}]
    done = sent(call("replace", ToolCallStatus.SUCCEEDED, output=ToolOutput(diff=DIFF)))
    assert done["content"] == [{"type": "diff", "path": "/w/a.txt", "oldText": "old\n", "newText": "new\n"}]
    assert done["locations"] == [{"path": "/w/a.txt"}]


def test_a_text_that_is_too_long_says_how_much_is_left_out() -> None:
    (item,) = sent(call(live_content="x" * (MAXIMUM_TEXT + 1234)))["content"]
    assert item["content"]["text"] == "x" * 100_000 + "\n... (1,234 more characters)"


@pytest.mark.parametrize(
    ("name", "arguments", "path"),
    [
        ("read_file", {"absolute_path": "/etc/hosts"}, "/etc/hosts"),
        ("read_file", {"file_path": "src/a.py"}, "/w/src/a.py"),
        ("list_directory", {"dir_path": "src"}, "/w/src"),
        ("read_file", {"file_path": 5, "path": "b"}, "/w/b"),
        ("read_file", {"file_path": "a\0b"}, None),
        ("read_file", {"file_path": ""}, None),
        ("server__tool", {"path": "/x"}, None),
    ],
)
def test_a_call_names_the_file_that_it_concerns(name: str, arguments: dict[str, Any], path: str | None) -> None:
    state = sent(call(name, input_parameters=arguments))
    assert state.get("locations") == (None if path is None else [{"path": path}])


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("a", "```\na\n```"),
        ("a\n", "```\na\n```"),
        ("a\n\n", "```\na\n\n```"),
        ("``` and ````", "`````\n``` and ````\n`````"),
        ("", "```\n\n```"),
    ],
)
def test_a_fence_is_longer_than_any_in_the_text(text: str, block: str) -> None:
    assert fenced(text) == block
