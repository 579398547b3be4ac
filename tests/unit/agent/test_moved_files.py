"""A patch that moves a file: two questions, the second after the answer to the first; both paths are guarded."""

from pathlib import Path
from typing import Any, cast

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.calls.call_rules import ruling_of
from isthmus.development_tool import FileDiff
from isthmus.events import TaskState
from isthmus.settings.rules.permissions import PathFolders, parse_rule
from isthmus.settings.rules.rule_decision import RuleDecision
from isthmus.tools.edits.apply_patch import ApplyPatch
from isthmus.tools.port.tool_set import ToolSet
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio


def move(source: str, target: str) -> Call:
    patch = f"*** Begin Patch\n*** Update File: {source}\n*** Move to: {target}\n*** End Patch\n"
    return Call("apply_patch", {"input": patch})


@pytest.fixture
def moving(harness: Any, workspace: Path) -> Any:
    (workspace / "a.txt").write_text("one\n", encoding="utf-8")
    return harness([Reply.of(move("a.txt", "b.txt")), Reply.of(Say("done"))])


async def test_a_file_is_removed_only_after_its_text_was_written(moving: Any, workspace: Path) -> None:
    assert (await moving.prompt("move it")).state is TaskState.INPUT_REQUIRED
    assert [call.description for call in moving.calls] == ["Move a.txt to b.txt"]
    assert (await moving.answer(moving.calls[0])).state is TaskState.INPUT_REQUIRED
    assert moving.calls[1].description == "Delete a.txt, which was moved to b.txt"
    assert (await moving.answer(moving.calls[1])).state is TaskState.COMPLETED
    assert (workspace / "b.txt").read_text(encoding="utf-8") == "one\n"
    assert not (workspace / "a.txt").exists()


async def test_a_file_stays_if_the_user_rejects_its_new_place(moving: Any, workspace: Path) -> None:
    await moving.prompt("move it")
    assert (await moving.answer(moving.calls[0], "cancel")).state is TaskState.COMPLETED
    assert [path.name for path in workspace.iterdir()] == ["a.txt"]
    assert "a.txt stays: b.txt does not have its text" in moving.told()


async def test_edits_without_a_question_move_a_file_at_once(harness: Any, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n", encoding="utf-8")
    policy = Policy(ApprovalMode.AUTO_EDIT)
    at = harness([Reply.of(move("a.txt", "b.txt")), Reply.of(Say("done"))], policy=policy)
    assert (await at.prompt("move it")).state is TaskState.COMPLETED
    assert [path.name for path in workspace.iterdir()] == ["b.txt"]


@pytest.mark.parametrize(
    ("source", "target"), [(".env", "b.txt"), ("link", "b.txt"), ("a.txt", ".claude/settings.json")]
)
async def test_a_guarded_file_at_either_end_is_asked_about(
    harness: Any, workspace: Path, source: str, target: str
) -> None:
    if source == "link":
        (workspace / "link").symlink_to(".env")
    (workspace / source).write_text("KEY=1\n", encoding="utf-8")
    policy = Policy(ApprovalMode.AUTO_EDIT)
    at = harness([Reply.of(move(source, target)), Reply.of(Say("done"))], policy=policy)
    assert (await at.prompt("move it")).state is TaskState.INPUT_REQUIRED
    assert not (workspace / target).exists()


@pytest.mark.parametrize(("rule", "is_decided"), [("Edit(secrets/**)", True), ("Edit(open/**)", False)])
def test_rules_on_paths_see_both_ends_of_a_move(workspace: Path, rule: str, is_decided: bool) -> None:
    folders = PathFolders(workspace, workspace / "home", (workspace,))
    tools = ToolSet(permissions=(parse_rule(rule, RuleDecision.ASK, "ask", folders),))
    change = FileDiff("b.py", str(workspace / "b.py"), "")
    arguments = cast("dict[str, Any]", move("secrets/a.py", "b.py").arguments)
    assert (ruling_of(tools, ApplyPatch(), arguments, change, Policy(), workspace) is not None) is is_decided
