"""Hooks of the settings in a session of the agent, with real programs."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.events import TaskState, Thought
from isthmus.parts.hook_processes import HookProcesses
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent
from isthmus.tools.builtin import builtin_tools
from support.agent_harness import AgentHarness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

BEFORE, AFTER = HookEvent.BEFORE_TOOL, HookEvent.AFTER_TOOL
BLOCKS_RM = """
command=$(jq -r .tool_input.command)
case $command in
    *'rm -rf'*) jq -n '{hookSpecificOutput: {permissionDecision: "deny", permissionDecisionReason: "no deleting"}}';;
esac
"""
PROTECTS = """
path=$(jq -r '.tool_input.file_path // empty')
case $path in *.env*|*/.git/*) echo "$path is protected" >&2; exit 2;; esac
"""


def claude(command: str, matcher: str = "", event: HookEvent = BEFORE) -> Hook:
    name = "PreToolUse" if event is BEFORE else "PostToolUse"
    return Hook(HookDialect.CLAUDE, event, name, command, "hooks in f", matcher, seconds=20)


def gemini(command: str, matcher: str = "", event: HookEvent = BEFORE) -> Hook:
    return Hook(HookDialect.GEMINI, event, "BeforeTool", command, "hooks in f", matcher, seconds=20)


def shell(command: str) -> Call:
    return Call("run_shell_command", {"command": command})


@pytest.fixture
def wire() -> Iterator[GeminiWire]:
    with GeminiWire() as wire:
        yield wire


def harness(
    tmp_path: Path, wire: GeminiWire, *hooks: Hook, mode: ApprovalMode = ApprovalMode.YOLO, may_ask: bool = True
) -> AgentHarness:
    tools = replace(builtin_tools(), hooks=hooks)
    return AgentHarness(tmp_path, wire, Policy(mode, may_ask=may_ask), tools=tools, hook_programs=HookProcesses())


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".out"))


async def test_a_hook_of_claude_code_blocks_a_command_in_yolo(tmp_path: Path, wire: GeminiWire) -> None:
    (tmp_path / "kept").mkdir()
    agent = harness(tmp_path, wire, claude(BLOCKS_RM, "Bash"))
    wire.add(Reply.of(shell("rm -rf kept"), shell("touch new")), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.COMPLETED
    assert files(tmp_path) == ["kept", "new"]
    assert "A hook refused this call: no deleting" in agent.told()


async def test_a_hook_protects_a_file_that_the_prompt_refers_to(tmp_path: Path, wire: GeminiWire) -> None:
    (tmp_path / ".env").write_text("TOKEN=hidden", encoding="utf-8")
    (tmp_path / "open.txt").write_text("shown", encoding="utf-8")
    agent = harness(tmp_path, wire, claude(PROTECTS, "Read"))
    wire.add(Reply.of(Say("done")))
    assert (await agent.prompt("compare @.env with @open.txt")).state is TaskState.COMPLETED
    sent = json.dumps(agent.body())
    assert "TOKEN=hidden" not in sent
    assert "shown" in sent


@pytest.mark.parametrize("name", [".env", "sub/../.env", "./.env"])
@pytest.mark.parametrize("key", ["file_path", "path"])
async def test_a_hook_of_claude_code_protects_files_however_their_path_is_given(
    tmp_path: Path, wire: GeminiWire, name: str, key: str
) -> None:
    agent = harness(tmp_path, wire, claude(PROTECTS, "Edit|Write"))
    wire.add(
        Reply.of(Call("write_file", {key: name, "content": "x"}), Call("write_file", {key: "y", "content": "x"})),
        Reply.of(Say("done")),
    )
    await agent.prompt("go")
    assert files(tmp_path) == ["y"]
    assert f"{tmp_path}/.env is protected" in agent.told()


async def test_a_hook_keeps_reading_from_the_model_too(tmp_path: Path, wire: GeminiWire) -> None:
    (tmp_path / ".env").write_text("the secret")
    agent = harness(tmp_path, wire, claude(PROTECTS, "Read"))
    wire.add(Reply.of(Call("read_file", {"file_path": ".env"})), Reply.of(Say("done")))
    await agent.prompt("go")
    assert "is protected" in agent.told()
    assert "the secret" not in agent.told()


async def test_a_hook_is_asked_once_and_before_the_user(tmp_path: Path, wire: GeminiWire) -> None:
    counts = gemini("echo x >> .out-count; echo '{}'")
    agent = harness(tmp_path, wire, counts, mode=ApprovalMode.DEFAULT)
    wire.add(Reply.of(shell("touch a"), Call("read_file", {"file_path": "missing"})), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.INPUT_REQUIRED
    assert (tmp_path / ".out-count").read_text() == "x\n"
    await agent.answer(agent.calls[0])
    assert (tmp_path / ".out-count").read_text() == "x\nx\n"


async def test_a_hook_that_asks_has_the_user_asked_in_yolo_or_the_call_refused(
    tmp_path: Path, wire: GeminiWire
) -> None:
    asks = claude(
        """echo '{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}}'"""
    )
    agent = harness(tmp_path, wire, asks)
    wire.add(Reply.of(shell("touch a")), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.INPUT_REQUIRED
    request = agent.calls[0].confirmation_request
    assert request is not None
    assert request.options[0].description == "sure?"
    await agent.answer(agent.calls[0])
    assert files(tmp_path) == ["a"]
    headless = harness(tmp_path, wire, asks, may_ask=False)
    wire.add(Reply.of(shell("touch b")), Reply.of(Say("done")))
    await headless.prompt("go")
    assert files(tmp_path) == ["a"]


async def test_what_a_hook_approves_is_asked_about_all_the_same(tmp_path: Path, wire: GeminiWire) -> None:
    approves = claude("""echo '{"hookSpecificOutput": {"permissionDecision": "allow"}, "decision": "approve"}'""")
    agent = harness(tmp_path, wire, approves, mode=ApprovalMode.DEFAULT)
    wire.add(Reply.of(shell("touch a")))
    assert (await agent.prompt("go")).state is TaskState.INPUT_REQUIRED


async def test_a_call_whose_arguments_a_hook_changes_is_made_again_by_the_model(
    tmp_path: Path, wire: GeminiWire
) -> None:
    changes = gemini("""echo '{"hookSpecificOutput": {"tool_input": {"command": "touch b"}}}'""")
    agent = harness(tmp_path, wire, changes)
    wire.add(Reply.of(shell("touch a")), Reply.of(shell("touch b")), Reply.of(Say("done")))
    await agent.prompt("go")
    assert files(tmp_path) == ["b"]
    assert "Nothing was run. A hook wants other arguments" in agent.told()


async def test_a_hook_hides_a_result_and_another_adds_to_it(tmp_path: Path, wire: GeminiWire) -> None:
    hides = gemini("""echo '{"decision": "deny", "reason": "not for you"}'""", "run_shell_command", AFTER)
    adds = claude("echo 'format the file' >&2; exit 2", "Write", AFTER)
    agent = harness(tmp_path, wire, hides, adds)
    write = Call("write_file", {"file_path": "y", "content": "x"})
    wire.add(Reply.of(shell("echo the-$((1+1))-secret"), write), Reply.of(Say("done")))
    await agent.prompt("go")
    assert "A hook hid this result: not for you" in agent.told()
    assert "the-2-secret" not in agent.told()
    assert "<hook_context>\\nformat the file\\n</hook_context>" in agent.told()
    assert files(tmp_path) == ["y"]


async def test_the_error_of_a_tool_is_hidden_too(tmp_path: Path, wire: GeminiWire) -> None:
    hides = gemini("""echo '{"decision": "deny", "reason": "not for you"}'""", "", AFTER)
    agent = harness(tmp_path, wire, hides)
    wire.add(Reply.of(shell("echo the-$((1+1))-secret; exit 1"), shell("sleep 5 & kill $$")), Reply.of(Say("done")))
    await agent.prompt("go")
    assert agent.told().count("not for you") == 2
    assert "the-2-secret" not in agent.told()


async def test_a_hook_stops_the_work_and_no_later_call_runs(tmp_path: Path, wire: GeminiWire) -> None:
    stops = gemini("""echo '{"continue": false, "stopReason": "enough"}'""", "run_shell_command")
    agent = harness(tmp_path, wire, stops)
    write = Call("write_file", {"file_path": "y", "content": "x"})
    wire.add(Reply.of(shell("touch a"), write))
    end = await agent.prompt("go")
    assert (end.state, end.error, end.reason) == (
        TaskState.FAILED,
        "A hook stopped the work: enough",
        "stopped_by_hook",
    )
    assert files(tmp_path) == []


async def test_a_hook_that_fails_is_shown_and_the_call_runs(tmp_path: Path, wire: GeminiWire) -> None:
    agent = harness(tmp_path, wire, claude("echo broken >&2; exit 1"))
    wire.add(Reply.of(shell("touch a")), Reply.of(Say("done")))
    await agent.prompt("go")
    assert files(tmp_path) == ["a"]
    said = [event.thought.subject for event in agent.events if isinstance(event, Thought)]
    assert said == ["Hook: hooks in f failed: broken"]


async def test_a_hook_sees_the_patch_of_another_tool_as_an_edit(tmp_path: Path, wire: GeminiWire) -> None:
    agent = harness(tmp_path, wire, claude("cat > .out-seen; exit 2", "Write"))
    patch = "*** Begin Patch\n*** Add File: .env\n+KEY=1\n*** End Patch\n"
    wire.add(Reply.of(Call("apply_patch", {"input": patch})), Reply.of(Say("done")))
    await agent.prompt("go")
    seen = json.loads((tmp_path / ".out-seen").read_text())
    assert (seen["tool_name"], seen["tool_input"]["file_path"]) == ("Write", f"{tmp_path}/.env")
    assert seen["tool_input"]["content"] == "KEY=1\n"
    assert files(tmp_path) == []
