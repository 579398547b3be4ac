"""Calls of the shell that are tried first, in the turn loop: unasked, asked, answered, and after a crash."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.grants import CommandGrant
from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.development_tool import CommandTrial, ToolCall
from isthmus.events import TaskState
from isthmus.tools.edits.write_file import WriteFile
from isthmus.tools.port.tool_set import ToolSet
from support.agent_harness import AgentHarness, is_update
from support.command_trials import TriedWorkspace
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio
MAKES_OUTPUT = "mkdir -p build && date +%s%N > build/now.txt && echo made"
WRITES = "date +%s%N > now.txt; echo written"


class Scene:
    """An agent that tries commands, with a script of calls."""

    def __init__(self, base: Path) -> None:
        self.place = TriedWorkspace(base)
        self.wires: list[GeminiWire] = []

    def agent(self, *commands: str, before: tuple[Call, ...] = (), **options: Any) -> AgentHarness:
        wire = GeminiWire([Reply((*before, *(shell(command) for command in commands))), Reply((Say("done"),))])
        wire.__enter__()
        self.wires.append(wire)
        tools = ToolSet.of(self.place.shell(), WriteFile())
        given: dict[str, Any] = {"tries_commands": True, "tools": tools, **options}
        return AgentHarness(self.place.root, wire, **given)

    def text(self, name: str) -> str | None:
        path = self.place.root / name
        return path.read_text() if path.exists() else None

    def kept(self) -> list[Path]:
        return list((self.place.root / ".outputs").rglob("trial-*.zip"))


def shell(command: str, **more: Any) -> Call:
    return Call("run_shell_command", {"command": command, **more})


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path / "scene")
    yield scene
    for wire in scene.wires:
        wire.__exit__(None, None, None)


def trial_of(call: ToolCall) -> CommandTrial | None:
    asked = call.confirmation_request
    assert asked is not None
    assert asked.execute_details is not None
    return asked.execute_details.trial


def options_of(call: ToolCall) -> list[str]:
    asked = call.confirmation_request
    return [] if asked is None else [option.name for option in asked.options]


async def asked(agent: AgentHarness) -> ToolCall:
    end = await agent.prompt("go")
    assert end.state is TaskState.INPUT_REQUIRED
    return agent.calls[-1]


async def test_nobody_is_asked_about_a_command_that_changes_build_outputs_alone(scene: Scene) -> None:
    agent = scene.agent(MAKES_OUTPUT)
    assert (await agent.prompt("go")).state is TaskState.COMPLETED
    assert agent.states("run_shell_command") == ["PENDING", "PENDING", "EXECUTING", "SUCCEEDED"]
    assert "made" in agent.told()
    assert scene.text("build/now.txt")
    assert scene.kept() == []


async def test_a_yes_applies_what_was_shown_and_runs_nothing_again(scene: Scene) -> None:
    agent = scene.agent(WRITES)
    call = await asked(agent)
    trial = trial_of(call)
    assert trial is not None
    assert scene.text("now.txt") is None
    assert "created now.txt" in trial.changes
    shown = next(line[1:] for line in trial.changes.split("\n") if line.startswith("+") and line[1:2].isdigit())
    assert options_of(call)[0] == "Allow these changes"
    assert (await agent.answer(call)).state is TaskState.COMPLETED
    assert scene.text("now.txt") == f"{shown}\n"
    assert "written" in agent.told()
    assert scene.kept() == []


async def test_a_no_throws_the_changes_away(scene: Scene) -> None:
    agent = scene.agent(WRITES)
    call = await asked(agent)
    assert len(scene.kept()) == 1
    await agent.answer(call, "cancel")
    assert (scene.text("now.txt"), scene.kept()) == (None, [])


async def test_nothing_is_applied_to_a_folder_that_changed_before_the_answer(scene: Scene) -> None:
    agent = scene.agent("echo x >> src/app.py; echo y > new.txt")
    call = await asked(agent)
    (scene.place.root / "src" / "app.py").write_text("of the user\n")
    await agent.answer(call)
    assert agent.states("run_shell_command")[-1] == "FAILED"
    assert "src/app.py changed since the command was tried; nothing was applied" in agent.told()
    assert (scene.text("src/app.py"), scene.text("new.txt")) == ("of the user\n", None)


@pytest.mark.parametrize("damage", ["removed", "other"])
async def test_changes_that_are_not_those_that_were_shown_are_not_applied(scene: Scene, damage: str) -> None:
    agent = scene.agent(WRITES)
    call = await asked(agent)
    (kept,) = scene.kept()
    if damage == "removed":
        kept.unlink()
    else:
        kept.write_bytes(kept.read_bytes() + b"x")
    await agent.answer(call)
    assert agent.states("run_shell_command")[-1] == "FAILED"
    assert "no longer kept" in agent.told()
    assert scene.text("now.txt") is None


async def test_after_the_end_of_a_process_in_a_trial_the_user_is_asked_plainly(scene: Scene) -> None:
    agent = scene.agent(MAKES_OUTPUT)
    await agent.prompt("go")
    announced = next(number for number, event in enumerate(agent.events) if is_update(event))
    del agent.events[announced + 1 :]
    (scene.place.root / "build" / "now.txt").unlink()
    assert (await agent.segment()).state is TaskState.INPUT_REQUIRED
    assert trial_of(agent.calls[-1]) is None
    assert scene.text("build/now.txt") is None


async def test_a_command_behind_a_question_is_tried_once_that_is_answered(scene: Scene) -> None:
    write = Call("write_file", {"file_path": "input.txt", "content": "from the edit\n"})
    agent = scene.agent("mkdir -p build; cat input.txt | tee build/copy", before=(write,))
    first = await asked(agent)
    assert [call.tool_name for call in agent.calls] == ["write_file"]
    assert (await agent.answer(first)).state is TaskState.COMPLETED
    assert scene.text("build/copy") == "from the edit\n"


async def test_another_permission_runs_the_command_itself(scene: Scene) -> None:
    agent = scene.agent(WRITES)
    await asked(agent)
    folder = str(scene.place.root)
    agent.policy = Policy(grants=frozenset({CommandGrant(WRITES, folder)}))
    assert (await agent.segment()).state is TaskState.COMPLETED
    assert scene.text("now.txt")


@pytest.mark.parametrize(
    ("command", "more", "options"),
    [
        (MAKES_OUTPUT, {"outside_trial": True}, {}),
        (MAKES_OUTPUT, {}, {"tries_commands": False}),
        ("cat .env", {}, {}),
        ("echo x > /tmp/x", {}, {}),
        ("git push", {}, {}),
    ],
)
async def test_a_command_is_asked_about_at_once(
    scene: Scene, command: str, more: dict[str, Any], options: dict[str, Any]
) -> None:
    agent = scene.agent(before=(shell(command, **more),), **options)
    call = await asked(agent)
    assert trial_of(call) is None
    assert agent.states("run_shell_command") == ["PENDING"]


async def test_a_command_that_the_settings_ask_about_each_time_is_not_tried(scene: Scene) -> None:
    tools = replace(ToolSet.of(scene.place.shell()), always_asked={"run_shell_command": "a setting"})
    assert trial_of(await asked(scene.agent(MAKES_OUTPUT, tools=tools))) is None


async def test_where_nobody_can_answer_or_all_is_refused_nothing_is_tried(scene: Scene) -> None:
    for policy in (Policy(may_ask=False), Policy(ApprovalMode.PLAN)):
        agent = scene.agent(MAKES_OUTPUT, policy=policy)
        await agent.prompt("go")
        assert agent.states("run_shell_command") == ["CANCELLED"] or "FAILED" in agent.states("run_shell_command")
    assert scene.text("build/now.txt") is None


async def test_a_question_says_why_what_a_command_does_is_not_known(scene: Scene) -> None:
    agent = scene.agent("python3 -c \"import os; os.makedirs('.vsc' + 'ode')\"")
    trial = trial_of(await asked(agent))
    assert trial is not None
    assert (trial.id, trial.files) == ("", ())
    assert "it would change a file that is asked about each time: .vscode" in trial.changes


async def test_a_command_that_runs_too_long_or_needs_too_large_a_copy_is_asked_about(scene: Scene) -> None:
    scene.place.seconds = 0.2
    trial = trial_of(await asked(scene.agent("sleep 31536777")))
    assert trial is not None
    assert "it ran for more than 0.2 s" in trial.changes
    scene.place.limits = replace(scene.place.limits, overlaid_entries=3)
    trial = trial_of(await asked(scene.agent("make")))
    assert trial is not None
    assert "too large to be copied" in trial.changes
