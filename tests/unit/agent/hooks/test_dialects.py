from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode
from isthmus.agent.hooks.dialects import HookedCall, HookedResult, input_for, name_for
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent

BEFORE, AFTER, FAILED = HookEvent.BEFORE_TOOL, HookEvent.AFTER_TOOL, HookEvent.AFTER_FAILED_TOOL


def claude(matcher: str = "", condition: str = "", event: HookEvent = BEFORE) -> Hook:
    names = {BEFORE: "PreToolUse", AFTER: "PostToolUse", FAILED: "PostToolUseFailure"}
    return Hook(HookDialect.CLAUDE, event, names[event], "c", "w", matcher, condition)


def gemini(matcher: str = "", event: HookEvent = BEFORE) -> Hook:
    return Hook(HookDialect.GEMINI, event, "BeforeTool" if event is BEFORE else "AfterTool", "c", "w", matcher)


def call(tool: str, effect: dict[str, Any] | None = None, **arguments: Any) -> HookedCall:
    return HookedCall("id", tool, arguments, effect or arguments, "s", "/p", ApprovalMode.AUTO_EDIT, "now")


MCP = HookedCall("id", "jira__find", {"a": 1}, {"a": 1}, "s", "/p", ApprovalMode.YOLO, "now", "jira", "find")


@pytest.mark.parametrize(
    ("tool", "matcher", "name"),
    [
        ("run_shell_command", "Bash", "Bash"),
        ("run_shell_command", "run_shell_command", "Bash"),
        ("run_shell_command", "", "Bash"),
        ("run_shell_command", "Write|Bash", "Bash"),
        ("run_shell_command", "Write, Bash", "Bash"),
        ("run_shell_command", "Ba.*", "Bash"),
        ("run_shell_command", "Bas", None),
        ("run_shell_command", "bash", None),
        ("read_file", "Read", "Read"),
        ("read_many_files", "Read", "Read"),
        ("write_file", "Edit|Write", "Write"),
        ("write_file", "Edit", None),
        ("replace", "Edit|Write", "Edit"),
        ("replace", "MultiEdit", "MultiEdit"),
        ("apply_patch", "Edit", "Edit"),
        ("apply_patch", "Write", "Write"),
        ("web_fetch", "WebFetch", "WebFetch"),
        ("google_web_search", "WebSearch", "WebSearch"),
        ("glob", "Glob", "Glob"),
        ("grep_search", "Grep", "Grep"),
        ("list_directory", "LS", "LS"),
        ("write_todos", "TodoWrite", "TodoWrite"),
        ("other_tool", "other_tool", "other_tool"),
    ],
)
def test_a_matcher_of_claude_code_is_tried_with_its_name_and_ours(tool: str, matcher: str, name: str | None) -> None:
    assert name_for(claude(matcher), call(tool)) == name


@pytest.mark.parametrize(
    ("tool", "matcher", "name"),
    [
        ("write_file", "write_file|replace", "write_file"),
        ("write_file", "write_.*", "write_file"),
        ("write_file", "file", "write_file"),
        ("read_file", "^write", None),
        ("apply_patch", "write_file", "write_file"),
        ("apply_patch", "", "apply_patch"),
    ],
)
def test_a_matcher_of_gemini_cli_is_an_expression(tool: str, matcher: str, name: str | None) -> None:
    assert name_for(gemini(matcher), call(tool)) == name


def test_a_tool_of_a_server_has_the_name_that_each_program_gives_it() -> None:
    assert name_for(claude("mcp__jira__.*"), MCP) == "mcp__jira__find"
    assert name_for(gemini("mcp_jira_find"), MCP) == "mcp_jira_find"
    assert input_for(gemini(), "mcp_jira_find", MCP)["mcp_context"] == {"server_name": "jira", "tool_name": "find"}
    assert name_for(claude("Read"), MCP) is None


@pytest.mark.parametrize(
    ("condition", "command", "runs"),
    [
        ("Bash(rm *)", "rm -rf x", True),
        ("Bash(rm:*)", "rm -rf x", True),
        ("Bash(rm *)", "ls && rm x", True),
        ("Bash(rm *)", "rm", True),
        ("Bash(rm *)", "ls", False),
        ("Bash(rm *)", "$x", True),
        ("Bash", "ls", True),
        ("Write", "ls", False),
        ("not a condition (", "ls", True),
    ],
)
def test_a_condition_of_claude_code_narrows_a_hook_where_it_is_certain(
    condition: str, command: str, runs: bool
) -> None:
    hook = claude("Bash", condition)
    assert (name_for(hook, call("run_shell_command", command=command)) is not None) is runs


def test_a_hook_of_claude_code_gets_its_names_and_fields() -> None:
    given = input_for(claude(), "Bash", call("run_shell_command", command="ls", description="d"))
    assert given == {
        "session_id": "s",
        "transcript_path": "",
        "cwd": "/p",
        "permission_mode": "acceptEdits",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_use_id": "id",
        "tool_input": {"command": "ls", "description": "d"},
    }


def test_a_hook_of_gemini_cli_gets_its_names_and_fields() -> None:
    given = input_for(gemini(), "write_file", call("write_file", {"file_path": "/p/x"}, file_path="x"))
    assert given == {
        "session_id": "s",
        "transcript_path": "",
        "cwd": "/p",
        "hook_event_name": "BeforeTool",
        "timestamp": "now",
        "tool_name": "write_file",
        "tool_input": {"file_path": "x"},
    }


@pytest.mark.parametrize(
    ("tool", "name", "effect", "expected"),
    [
        ("read_file", "Read", {"file_path": "/p/x", "start_line": 3}, {"file_path": "/p/x", "offset": 3}),
        ("write_file", "Write", {"file_path": "/p/x", "content": "c"}, {"file_path": "/p/x", "content": "c"}),
        (
            "replace",
            "Edit",
            {"file_path": "/p/x", "old_string": "a", "new_string": "b", "allow_multiple": True, "content": "whole"},
            {"file_path": "/p/x", "old_string": "a", "new_string": "b", "replace_all": True},
        ),
        (
            "apply_patch",
            "Edit",
            {"input": "p", "file_path": "/p/x", "content": "new"},
            {"input": "p", "file_path": "/p/x", "old_string": "", "new_string": "new"},
        ),
        (
            "apply_patch",
            "Write",
            {"input": "p", "file_path": "/p/x", "content": "new"},
            {"input": "p", "file_path": "/p/x", "content": "new"},
        ),
        ("grep_search", "Grep", {"pattern": "x", "dir_path": "/p"}, {"pattern": "x", "path": "/p"}),
    ],
)
def test_the_arguments_have_claude_codes_names(
    tool: str, name: str, effect: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert input_for(claude(), name, call(tool, effect, given=1))["tool_input"] == expected


def test_a_result_has_the_form_of_each_program() -> None:
    shell, done = call("run_shell_command", command="ls"), HookedResult("for the model", "shown")
    assert input_for(gemini(event=AFTER), "run_shell_command", shell, done)["tool_response"] == {
        "llmContent": "for the model",
        "returnDisplay": "shown",
    }
    assert input_for(claude(event=AFTER), "Bash", shell, done)["tool_response"]["stdout"] == "shown"
    written = call("write_file", {"file_path": "/p/x"})
    response = input_for(claude(event=AFTER), "Write", written, HookedResult("ok"))["tool_response"]
    assert response == {"success": True, "content": "ok", "filePath": "/p/x"}
    failed = HookedResult("it broke", error="broken")
    assert input_for(claude(event=FAILED), "Bash", shell, failed)["error"] == "broken"
    assert input_for(gemini(event=AFTER), "x", shell, failed)["tool_response"]["error"] == {"message": "broken"}
