"""Hooks at the start of a session, before a question and when the agent has answered, with real programs."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.coding.coding_agent import MAXIMUM_CONTINUATIONS
from isthmus.events import TaskState, Thought
from isthmus.parts.hook_processes import HookProcesses
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent
from isthmus.tools.builtin import builtin_tools
from support.agent_harness import AgentHarness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

NAMES = {
    (HookDialect.GEMINI, HookEvent.END): "AfterAgent",
    (HookDialect.CLAUDE, HookEvent.END): "Stop",
    (HookDialect.GEMINI, HookEvent.SESSION_START): "SessionStart",
    (HookDialect.CLAUDE, HookEvent.SESSION_START): "SessionStart",
    (HookDialect.CLAUDE, HookEvent.PERMISSION): "PermissionRequest",
}
NEEDS_TESTS = """
cat >> .out-seen
grep -q TESTED .out-state 2>/dev/null && exit 0
echo TESTED > .out-state
echo 'run the tests' >&2
exit 2
"""


def hook(dialect: HookDialect, event: HookEvent, command: str, matcher: str = "") -> Hook:
    return Hook(dialect, event, NAMES[dialect, event], command, "hooks in f", matcher, seconds=20)


@pytest.fixture
def wire() -> Iterator[GeminiWire]:
    with GeminiWire() as wire:
        yield wire


def harness(tmp_path: Path, wire: GeminiWire, *hooks: Hook, mode: ApprovalMode = ApprovalMode.YOLO) -> AgentHarness:
    tools = replace(builtin_tools(), hooks=hooks)
    return AgentHarness(tmp_path, wire, Policy(mode), tools=tools, hook_programs=HookProcesses())


@pytest.mark.parametrize("dialect", HookDialect)
async def test_a_hook_makes_the_agent_go_on_once(tmp_path: Path, wire: GeminiWire, dialect: HookDialect) -> None:
    agent = harness(tmp_path, wire, hook(dialect, HookEvent.END, NEEDS_TESTS))
    wire.add(Reply.of(Say("All done.")), Reply.of(Say("Now they pass.")))
    assert (await agent.prompt("fix it")).state is TaskState.COMPLETED
    assert len(wire.model_requests) == 2
    assert "You are not done: run the tests" in agent.told()
    first, second = [
        json.loads(text) for text in (tmp_path / ".out-seen").read_text().replace("}{", "}\n{").splitlines()
    ]
    assert (first["stop_hook_active"], second["stop_hook_active"]) == (False, True)
    if dialect is HookDialect.GEMINI:
        assert (first["prompt"], first["prompt_response"]) == ("fix it", "All done.")
        assert second["prompt_response"] == "Now they pass."
    else:
        assert (first["hook_event_name"], first["last_assistant_message"]) == ("Stop", "All done.")
        assert first["permission_mode"] == "bypassPermissions"


@pytest.mark.parametrize(
    "command",
    ["""echo '{"decision": "block", "reason": "never"}'""", """echo '{"decision": "deny", "reason": "never"}'"""],
)
async def test_a_hook_that_is_never_content_does_not_keep_the_agent_for_ever(
    tmp_path: Path, wire: GeminiWire, command: str
) -> None:
    agent = harness(tmp_path, wire, hook(HookDialect.GEMINI, HookEvent.END, command))
    wire.add(*(Reply.of(Say(f"answer {number}")) for number in range(MAXIMUM_CONTINUATIONS + 1)))
    assert (await agent.prompt("go")).state is TaskState.COMPLETED
    assert len(wire.model_requests) == MAXIMUM_CONTINUATIONS + 1


async def test_a_hook_that_ends_the_work_or_fails_lets_the_answer_stand(tmp_path: Path, wire: GeminiWire) -> None:
    stops = """echo '{"continue": false, "decision": "block", "reason": "x", "stopReason": "enough"}'"""
    agent = harness(
        tmp_path,
        wire,
        hook(HookDialect.CLAUDE, HookEvent.END, stops),
        hook(HookDialect.CLAUDE, HookEvent.END, "echo broken >&2; exit 1"),
    )
    wire.add(Reply.of(Say("Done.")))
    assert (await agent.prompt("go")).state is TaskState.COMPLETED
    shown = [event.thought.subject for event in agent.events if isinstance(event, Thought)]
    assert shown == ["Hook: hooks in f failed: broken"]


@pytest.mark.parametrize(
    ("dialect", "command"),
    [
        (HookDialect.GEMINI, """echo '{"hookSpecificOutput": {"additionalContext": "the rota"}}'"""),
        (HookDialect.CLAUDE, "echo the rota"),
    ],
)
async def test_a_session_begins_with_what_a_hook_says(
    tmp_path: Path, wire: GeminiWire, dialect: HookDialect, command: str
) -> None:
    agent = harness(
        tmp_path,
        wire,
        hook(dialect, HookEvent.SESSION_START, command, "startup"),
        hook(dialect, HookEvent.SESSION_START, "echo never", "resume"),
        hook(dialect, HookEvent.SESSION_START, "echo not a refusal >&2; exit 2"),
    )
    wire.add(Reply.of(Say("one")), Reply.of(Say("two")))
    assert (await agent.prompt("first")).state is TaskState.COMPLETED
    assert agent.told().count("the rota") == 1
    assert "never" not in agent.told()
    await agent.prompt("second")
    assert agent.told().count("the rota") == 1


async def test_a_hook_refuses_before_the_user_is_asked_and_allows_nothing(tmp_path: Path, wire: GeminiWire) -> None:
    answers = """case $(cat) in
        *forbidden*) echo '{"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "not that"}}}';;
        *) echo '{"hookSpecificOutput": {"decision": {"behavior": "allow"}}}';;
    esac"""
    asks = hook(HookDialect.CLAUDE, HookEvent.PERMISSION, answers, "Bash")
    agent = harness(tmp_path, wire, asks, mode=ApprovalMode.DEFAULT)
    forbidden, other = (Call("run_shell_command", {"command": f"touch {name}"}) for name in ("forbidden", "other"))
    wire.add(Reply.of(forbidden), Reply.of(other), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.INPUT_REQUIRED
    assert "A hook refused this call: not that" in agent.told()
    assert not (tmp_path / "forbidden").exists()
    assert not (tmp_path / "other").exists()
    await agent.answer(agent.calls[1])
    assert (tmp_path / "other").exists()
