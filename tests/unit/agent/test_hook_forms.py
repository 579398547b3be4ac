"""Hooks in the forms of Claude Code's guide, read from its settings file and run as programs: each blocks what it says.

The scripts are our own; what they share with those of the guide is how they are named, started, fed and read.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.events import TaskState
from isthmus.parts.hook_processes import HookProcesses
from isthmus.settings import load_folder_rules
from isthmus.tools.builtin import builtin_tools
from support.agent_harness import AgentHarness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

ONE_LINER = (
    "python3 -c \"import json, sys; name = json.load(sys.stdin)['tool_input'].get('file_path', '');"
    " sys.exit(2 * any(part in name for part in ['.env', 'package-lock.json', '.git/']))\""
)
PROTECTING_SCRIPT = """#!/bin/bash
given=$(cat)
file=$(echo "$given" | jq -r '.tool_input.file_path // empty')
for part in ".env" "package-lock.json" ".git/"; do
  if [[ "$file" == *"$part"* ]]; then
    echo "$file is protected ($part)" >&2
    exit 2
  fi
done
"""
COMMAND_VALIDATOR = """
import json, re, sys

given = json.load(sys.stdin)
if given["tool_name"] != "Bash":
    sys.exit(0)
if re.search(r"^touch\\b", given["tool_input"].get("command", "")):
    print("create files with the editor, not with touch", file=sys.stderr)
    sys.exit(2)
"""
PROMPT_VALIDATOR = """
import json, re, sys

given = json.load(sys.stdin)
if re.search(r"(?i)(password|token) *[:=]", given["prompt"]):
    print(json.dumps({"decision": "block", "reason": "the prompt may have a secret in it"}))
else:
    print("the office is closed")
"""
DENYING = """jq '{hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "deny",
    permissionDecisionReason: ("no " + .tool_name)}}'"""
NO_ANSWER_YET = """[ "$(jq .stop_hook_active)" = true ] || { echo "run the tests" >&2; exit 2; }"""


@pytest.fixture
def wire() -> Iterator[GeminiWire]:
    with GeminiWire() as wire:
        yield wire


def harness(project: Path, wire: GeminiWire, **events: list[dict[str, Any]]) -> AgentHarness:
    """Return an agent in a trusted project, whose settings have these hooks."""
    folder = project / ".claude" / "hooks"
    folder.mkdir(parents=True)
    for name, script in (
        ("protect-files.sh", PROTECTING_SCRIPT),
        ("command_validator.py", COMMAND_VALIDATOR),
        ("prompt_validator.py", PROMPT_VALIDATOR),
    ):
        (folder / name).write_text(script, "utf-8")
        (folder / name).chmod(0o755)
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": events}), "utf-8")
    rules = load_folder_rules(project, project.parent / "home", {}).trusted
    tools = replace(builtin_tools(), hooks=rules.hooks)
    return AgentHarness(project, wire, Policy(ApprovalMode.YOLO), tools=tools, hook_programs=HookProcesses())


def group(command: str, matcher: str | None = None) -> dict[str, Any]:
    named = {} if matcher is None else {"matcher": matcher}
    return {**named, "hooks": [{"type": "command", "command": command}]}


@pytest.mark.parametrize("command", [ONE_LINER, '"$CLAUDE_PROJECT_DIR"/.claude/hooks/protect-files.sh'])
@pytest.mark.parametrize("matcher", ["Edit|Write", "Edit|MultiEdit|Write"])
async def test_protected_files_are_not_edited_by_any_tool(
    tmp_path: Path, wire: GeminiWire, command: str, matcher: str
) -> None:
    project = tmp_path / "a project"
    agent = harness(project, wire, PreToolUse=[group(command, matcher)])
    (project / "package-lock.json").write_text("old", "utf-8")
    patch = "*** Begin Patch\n*** Add File: .env.local\n+b\n*** End Patch"
    wire.add(
        Reply.of(
            Call("write_file", {"file_path": ".env", "content": "b"}),
            Call("replace", {"file_path": "package-lock.json", "old_string": "old", "new_string": "new"}),
            Call("apply_patch", {"patch": patch}),
            Call("write_file", {"file_path": "b", "content": "b"}),
        ),
        Reply.of(Say("done")),
    )
    assert (await agent.prompt("go")).state is TaskState.COMPLETED
    assert sorted(path.name for path in project.iterdir() if path.is_file()) == ["b", "package-lock.json"]
    assert (project / "package-lock.json").read_text("utf-8") == "old"
    assert agent.told().count("A hook refused this call") == 3


async def test_a_validator_blocks_a_command_and_tells_the_model_why(tmp_path: Path, wire: GeminiWire) -> None:
    agent = harness(tmp_path / "p", wire, PreToolUse=[group("python3 .claude/hooks/command_validator.py", "Bash")])
    wire.add(
        Reply.of(*(Call("run_shell_command", {"command": command}) for command in ("touch a", "mkdir b"))),
        Reply.of(Say("done")),
    )
    await agent.prompt("go")
    assert not (tmp_path / "p" / "a").exists()
    assert (tmp_path / "p" / "b").exists()
    assert "create files with the editor" in agent.told()


async def test_a_validator_blocks_a_prompt_with_a_secret_and_adds_to_others(tmp_path: Path, wire: GeminiWire) -> None:
    agent = harness(tmp_path / "p", wire, UserPromptSubmit=[group("python3 .claude/hooks/prompt_validator.py")])
    wire.add(Reply.of(Say("done")))
    end = await agent.prompt("use token: abc")
    assert (end.state, end.error) == (
        TaskState.FAILED,
        "A hook refused the prompt: the prompt may have a secret in it",
    )
    assert wire.model_requests == []
    await agent.prompt("what is new?")
    assert "the office is closed" in agent.told()
    assert "abc" not in agent.told()


@pytest.mark.parametrize(
    ("matcher", "call", "name"),
    [
        ("Bash", Call("run_shell_command", {"command": "touch a"}), "Bash"),
        ("Write", Call("write_file", {"file_path": "a", "content": ""}), "Write"),
        ("*", Call("write_file", {"file_path": "a", "content": ""}), "Write"),
        ("", Call("write_file", {"file_path": "a", "content": ""}), "Write"),
        ("Notebook.*|Wri.*", Call("write_file", {"file_path": "a", "content": ""}), "Write"),
    ],
)
async def test_a_decision_in_json_blocks_the_tools_of_its_matcher(
    tmp_path: Path, wire: GeminiWire, matcher: str, call: Call, name: str
) -> None:
    agent = harness(tmp_path / "p", wire, PreToolUse=[group(DENYING, matcher)])
    wire.add(Reply.of(call), Reply.of(Say("done")))
    await agent.prompt("go")
    assert not (tmp_path / "p" / "a").exists()
    assert f"A hook refused this call: no {name}" in agent.told()


async def test_a_hook_at_the_end_makes_the_agent_go_on(tmp_path: Path, wire: GeminiWire) -> None:
    agent = harness(tmp_path / "p", wire, Stop=[group(NO_ANSWER_YET)])
    wire.add(Reply.of(Say("done")), Reply.of(Say("tested")))
    assert (await agent.prompt("go")).state is TaskState.COMPLETED
    assert len(wire.model_requests) == 2
    assert "run the tests" in agent.told()
