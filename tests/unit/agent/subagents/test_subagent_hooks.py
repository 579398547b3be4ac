"""Hooks before a subagent works and when it has answered, with real programs."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from isthmus.events import TaskState
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent
from support.gemini_wire import GeminiWire
from support.scripted_wire import Reply, Say
from support.subagents import TwoModels, delegate, delegation

pytestmark = pytest.mark.anyio

NEEDS_LINES = """
cat >> .seen
grep -q ASKED .state 2>/dev/null && exit 0
echo ASKED > .state
echo 'name the lines' >&2
exit 2
"""


def hook(event: HookEvent, command: str = NEEDS_LINES, matcher: str = "") -> Hook:
    names = {
        HookEvent.SUBAGENT_START: "SubagentStart",
        HookEvent.SUBAGENT_END: "SubagentStop",
        HookEvent.END: "Stop",
        HookEvent.PROMPT: "UserPromptSubmit",
    }
    return Hook(HookDialect.CLAUDE, event, names[event], command, "hooks in f", matcher, seconds=20)


@pytest.fixture
def models() -> TwoModels:
    return TwoModels(agent=[delegate(), Reply.of(Say("Thanks."))], subagent=[Reply.of(Say("In a.py."))])


@pytest.fixture
def wire(models: TwoModels) -> Generator[GeminiWire]:
    with GeminiWire(models) as server:
        yield server


def told(models: TwoModels, whose: str) -> str:
    return str([body["contents"] for asked, body in models.asked if asked == whose])


@pytest.mark.parametrize("matcher", ["", "gener.*", "generalist", "codebase_investigator|generalist"])
async def test_a_hook_makes_a_subagent_go_on_once(
    tmp_path: Path, wire: GeminiWire, models: TwoModels, matcher: str
) -> None:
    models.subagent.append(Reply.of(Say("In a.py:7.")))
    async with delegation(tmp_path, wire, hooks=(hook(HookEvent.SUBAGENT_END, matcher=matcher),)) as at:
        assert (await at.prompt()).state is TaskState.COMPLETED
        seen = (at.workspace / ".seen").read_text("utf-8").replace("}{", "}\n{").splitlines()
        first, second = (json.loads(text) for text in seen)
        assert {name: first[name] for name in ("hook_event_name", "agent_id", "agent_type", "cwd")} == {
            "hook_event_name": "SubagentStop",
            "agent_id": at.child_id,
            "agent_type": "generalist",
            "cwd": str(at.workspace),
        }
    assert (first["stop_hook_active"], first["last_assistant_message"]) == (False, "In a.py.")
    assert (second["stop_hook_active"], second["last_assistant_message"]) == (True, "In a.py:7.")
    assert "You are not done: name the lines" in told(models, "subagent")
    assert "name the lines" not in told(models, "agent")
    assert "In a.py:7." in told(models, "agent")


async def test_a_hook_for_another_subagent_does_not_run(tmp_path: Path, wire: GeminiWire) -> None:
    other = hook(HookEvent.SUBAGENT_END, matcher="codebase_investigator")
    async with delegation(tmp_path, wire, hooks=(other,)) as at:
        assert (await at.prompt()).state is TaskState.COMPLETED
        assert not (at.workspace / ".seen").exists()


async def test_a_hook_for_the_agent_runs_when_it_has_answered_and_not_for_its_subagent(
    tmp_path: Path, wire: GeminiWire
) -> None:
    async with delegation(tmp_path, wire, hooks=(hook(HookEvent.END, "cat >> .seen"),)) as at:
        assert (await at.prompt()).state is TaskState.COMPLETED
        seen = json.loads((at.workspace / ".seen").read_text("utf-8"))
    assert (seen["hook_event_name"], seen["last_assistant_message"]) == ("Stop", "Thanks.")


ADDS = """cat >> .seen; echo '{"hookSpecificOutput": {"additionalContext": "follow the style guide"}}'"""


@pytest.mark.parametrize("matcher", ["", "generalist", "gen.*"])
async def test_a_hook_at_the_start_adds_text_for_the_subagent_alone(
    tmp_path: Path, wire: GeminiWire, models: TwoModels, matcher: str
) -> None:
    async with delegation(tmp_path, wire, hooks=(hook(HookEvent.SUBAGENT_START, ADDS, matcher),)) as at:
        assert (await at.prompt()).state is TaskState.COMPLETED
        seen = json.loads((at.workspace / ".seen").read_text("utf-8"))
        assert {name: seen[name] for name in ("hook_event_name", "agent_id", "agent_type", "cwd")} == {
            "hook_event_name": "SubagentStart",
            "agent_id": at.child_id,
            "agent_type": "generalist",
            "cwd": str(at.workspace),
        }
    assert "follow the style guide" in told(models, "subagent")
    assert "follow the style guide" not in told(models, "agent")


async def test_a_hook_at_the_start_of_another_subagent_or_that_refuses_changes_nothing(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    other = hook(HookEvent.SUBAGENT_START, ADDS, "codebase_investigator")
    refusing = hook(HookEvent.SUBAGENT_START, "echo no >&2; exit 2")
    of_prompt = hook(HookEvent.PROMPT, 'grep -q "Write it" && touch .seen; exit 0')
    async with delegation(tmp_path, wire, hooks=(other, refusing, of_prompt)) as at:
        assert (await at.prompt()).state is TaskState.COMPLETED
        assert not (at.workspace / ".seen").exists()
    assert "In a.py." in told(models, "agent")
