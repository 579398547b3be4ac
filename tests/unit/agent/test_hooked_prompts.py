"""Hooks of the settings before the agent works on a prompt, with real programs."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.events import TaskState
from isthmus.parts.hook_processes import HookProcesses
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent
from isthmus.tools.builtin import builtin_tools
from support.agent_harness import AgentHarness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

REFUSES_SECRETS = "case $(cat) in *password*) echo 'no secrets' >&2; exit 2;; esac"


def hook(dialect: HookDialect, command: str) -> Hook:
    name = "BeforeAgent" if dialect is HookDialect.GEMINI else "UserPromptSubmit"
    return Hook(dialect, HookEvent.PROMPT, name, command, "hooks in f", "*", seconds=20)


@pytest.fixture
def wire() -> Iterator[GeminiWire]:
    with GeminiWire() as wire:
        yield wire


def harness(tmp_path: Path, wire: GeminiWire, *hooks: Hook, mode: ApprovalMode = ApprovalMode.YOLO) -> AgentHarness:
    tools = replace(builtin_tools(), hooks=hooks)
    return AgentHarness(tmp_path, wire, Policy(mode), tools=tools, hook_programs=HookProcesses())


@pytest.mark.parametrize("dialect", HookDialect)
async def test_a_refused_prompt_ends_its_task_and_never_reaches_the_model(
    tmp_path: Path, wire: GeminiWire, dialect: HookDialect
) -> None:
    agent = harness(tmp_path, wire, hook(dialect, REFUSES_SECRETS))
    wire.add(Reply.of(Say("hello")), Reply.of(Say("again")))
    await agent.prompt("first question")
    end = await agent.prompt("the password is 123")
    assert (end.state, end.error) == (TaskState.FAILED, "A hook refused the prompt: no secrets")
    assert len(wire.model_requests) == 1
    await agent.prompt("second question")
    assert "password" not in agent.told()
    assert "first question" in agent.told()
    assert "second question" in agent.told()


@pytest.mark.parametrize(
    ("dialect", "command"),
    [
        (HookDialect.GEMINI, """echo '{"hookSpecificOutput": {"additionalContext": "from a hook"}}'"""),
        (HookDialect.CLAUDE, """echo '{"hookSpecificOutput": {"additionalContext": "from a hook"}}'"""),
        (HookDialect.CLAUDE, "echo from a hook"),
    ],
)
async def test_a_hook_adds_text_to_the_prompt_once(
    tmp_path: Path, wire: GeminiWire, dialect: HookDialect, command: str
) -> None:
    agent = harness(tmp_path, wire, hook(dialect, command))
    read = Call("read_file", {"file_path": "missing"})
    wire.add(Reply.of(read), Reply.of(Say("done")))
    await agent.prompt("go")
    assert agent.told().count("from a hook") == 1


async def test_a_hook_gets_the_prompt_and_can_stop_the_work(tmp_path: Path, wire: GeminiWire) -> None:
    stops = """cat > seen; echo '{"continue": false, "stopReason": "enough"}'"""
    agent = harness(tmp_path, wire, hook(HookDialect.CLAUDE, stops))
    end = await agent.prompt("the question")
    assert (end.state, end.error, end.reason) == (
        TaskState.FAILED,
        "A hook stopped the work: enough",
        "stopped_by_hook",
    )
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen.pop("session_id")
    assert seen == {
        "transcript_path": "",
        "cwd": str(tmp_path),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "the question",
        "permission_mode": "bypassPermissions",
    }


async def test_a_hook_is_not_asked_again_after_a_question_of_a_call(tmp_path: Path, wire: GeminiWire) -> None:
    counts = hook(HookDialect.GEMINI, "echo x >> .out-count; echo '{}'")
    agent = harness(tmp_path, wire, counts, mode=ApprovalMode.DEFAULT)
    wire.add(Reply.of(Call("run_shell_command", {"command": "touch a"})), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.INPUT_REQUIRED
    await agent.answer(agent.calls[0])
    assert (tmp_path / ".out-count").read_text() == "x\n"
