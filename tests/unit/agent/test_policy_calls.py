"""Rules of policy files in a session of the agent: what is refused, asked about and run."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.approval.restricted_tools import restrict
from isthmus.events import TaskState
from isthmus.settings.rules.rule_decision import RuleDecision
from isthmus.settings.rules.rules import PolicyRule, ToolRules, in_order
from isthmus.tools.builtin import builtin_tools
from support.agent_harness import AgentHarness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

DENY, ASK, ALLOW = RuleDecision.DENY, RuleDecision.ASK, RuleDecision.ALLOW


def rule(decision: RuleDecision, tool: str = "*", priority: float = 1, **more: Any) -> PolicyRule:
    return PolicyRule(decision, priority, "rule 1 of p.toml", tool, **more)


def touch(name: str) -> Call:
    return Call("run_shell_command", {"command": f"touch {name}"})


@pytest.fixture
def wire() -> Iterator[GeminiWire]:
    with GeminiWire() as wire:
        yield wire


def harness(
    tmp_path: Path,
    wire: GeminiWire,
    *rules: PolicyRule,
    mode: ApprovalMode = ApprovalMode.DEFAULT,
    may_ask: bool = True,
) -> AgentHarness:
    tools = restrict(builtin_tools(), ToolRules(), in_order(rules))
    return AgentHarness(tmp_path, wire, Policy(mode, may_ask=may_ask), tools=tools)


async def test_a_denied_call_is_refused_in_yolo_with_the_message_of_the_rule(tmp_path: Path, wire: GeminiWire) -> None:
    denied = rule(DENY, "run_shell_command", prefix="touch x", message="leave x alone")
    agent = harness(tmp_path, wire, denied, mode=ApprovalMode.YOLO)
    wire.add(Reply.of(touch("x"), touch("y")), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.COMPLETED
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["y"]
    assert "leave x alone" in agent.told()


async def test_a_call_that_a_rule_asks_about_is_asked_in_yolo_and_runs_once_allowed(
    tmp_path: Path, wire: GeminiWire
) -> None:
    agent = harness(tmp_path, wire, rule(ASK, "run_shell_command"), mode=ApprovalMode.YOLO)
    wire.add(Reply.of(touch("x")), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.INPUT_REQUIRED
    request = agent.calls[0].confirmation_request
    assert request is not None
    assert [option.id for option in request.options] == ["proceed_once", "cancel"]
    assert request.options[0].description == "rule 1 of p.toml asks about it"
    assert (await agent.answer(agent.calls[0])).state is TaskState.COMPLETED
    assert (tmp_path / "x").exists()


async def test_a_call_that_a_rule_asks_about_is_refused_where_nobody_can_be_asked(
    tmp_path: Path, wire: GeminiWire
) -> None:
    agent = harness(tmp_path, wire, rule(ASK, "run_shell_command"), mode=ApprovalMode.YOLO, may_ask=False)
    wire.add(Reply.of(touch("x")), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.COMPLETED
    assert not (tmp_path / "x").exists()
    assert "No user can be asked here" in agent.told()


async def test_reading_is_refused_and_asked_about_too_also_in_plan_mode(tmp_path: Path, wire: GeminiWire) -> None:
    (tmp_path / "secret").write_text("the secret text")
    (tmp_path / "open").write_text("the open text")
    rules = rule(DENY, "read_file", 2, pattern="secret"), rule(ASK, "read_file")
    agent = harness(tmp_path, wire, *rules, mode=ApprovalMode.PLAN)
    read = [Call("read_file", {"file_path": str(tmp_path / name)}) for name in ("secret", "open")]
    wire.add(Reply.of(*read), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.INPUT_REQUIRED
    assert [call.status.name for call in agent.calls] == ["FAILED", "PENDING"]
    await agent.answer(agent.calls[1])
    assert "the open text" in agent.told()
    assert "the secret text" not in agent.told()


async def test_an_allowed_call_runs_except_in_plan_mode_and_on_a_guarded_file(tmp_path: Path, wire: GeminiWire) -> None:
    rules = rule(ALLOW, "run_shell_command", prefix="touch x"), rule(ALLOW, "write_file")
    agent = harness(tmp_path, wire, *rules)
    write = Call("write_file", {"file_path": str(tmp_path / "y"), "content": "y"})
    wire.add(Reply.of(touch("x"), write), Reply.of(touch("z")))
    assert (await agent.prompt("go")).state is TaskState.INPUT_REQUIRED
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == ["x", "y"]
    guarded = harness(tmp_path, wire, *rules)
    wire.add(Reply.of(Call("write_file", {"file_path": str(tmp_path / "AGENTS.md"), "content": "y"})))
    assert (await guarded.prompt("go")).state is TaskState.INPUT_REQUIRED
    (tmp_path / "x").unlink()
    planning = harness(tmp_path, wire, *rules, mode=ApprovalMode.PLAN)
    wire.add(Reply.of(touch("x")), Reply.of(Say("done")))
    await planning.prompt("go")
    assert not (tmp_path / "x").exists()


async def test_a_rule_that_came_after_the_question_refuses_the_allowed_call(tmp_path: Path, wire: GeminiWire) -> None:
    agent = harness(tmp_path, wire)
    wire.add(Reply.of(touch("x")), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.INPUT_REQUIRED
    agent.tools = replace(agent.tools, policies=(rule(DENY, "run_shell_command", prefix="touch"),))
    assert (await agent.answer(agent.calls[0])).state is TaskState.COMPLETED
    assert not (tmp_path / "x").exists()
    assert agent.calls[0].status.name == "FAILED"


async def test_a_tool_of_which_all_calls_are_denied_is_not_offered(tmp_path: Path, wire: GeminiWire) -> None:
    agent = harness(tmp_path, wire, rule(DENY, "write_file"), mode=ApprovalMode.YOLO)
    write = Call("write_file", {"file_path": str(tmp_path / "y"), "content": "y"})
    wire.add(Reply.of(write), Reply.of(Say("done")))
    await agent.prompt("go")
    assert '"write_file"' not in str(agent.body(0)["tools"]).replace("'", '"')
    assert not (tmp_path / "y").exists()
    assert "rule 1 of p.toml forbids it" in agent.told()
