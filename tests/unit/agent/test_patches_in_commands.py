"""A patch that a model hands to the shell is a call of the tool for patches, with its question and its checks."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.approval.restricted_tools import restrict
from isthmus.development_tool import ToolCallStatus
from isthmus.events import TaskState
from isthmus.settings.rules.rules import ToolEntry, ToolList, ToolRules
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.tool_set import ToolSet
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

PATCH = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** Add File: b.txt\n+two\n*** End Patch"


def shell(command: str, **arguments: Any) -> Call:
    return Call("run_shell_command", {"command": command, **arguments})


async def test_it_is_asked_about_as_an_edit_with_its_diff(harness: Any, workspace: Path) -> None:
    (workspace / "src").mkdir()
    at = harness([Reply.of(shell(f"apply_patch <<'EOF'\n{PATCH}\nEOF", dir_path="src")), Reply.of(Say("done"))])
    assert (await at.prompt("go")).state is TaskState.INPUT_REQUIRED
    first, second = at.calls
    assert [call.tool_name for call in (first, second)] == ["apply_patch"] * 2
    assert first.confirmation_request is not None
    assert first.confirmation_request.file_edit_details.file_path == str(workspace / "src" / "a.txt")
    await at.answer(first)
    await at.answer(second, "cancel")
    assert [path.name for path in (workspace / "src").iterdir()] == ["a.txt"]


async def test_a_permission_for_commands_does_not_count_for_it(harness: Any, workspace: Path) -> None:
    policy = Policy(ApprovalMode.AUTO_EDIT, may_ask=False)
    patch = "*** Begin Patch\n*** Add File: .claude/settings.json\n+{}\n*** End Patch"
    at = harness([Reply.of(shell(f"apply_patch <<'EOF'\n{patch}\nEOF")), Reply.of(Say("done"))], policy=policy)
    await at.prompt("go")
    assert not (workspace / ".claude").exists()
    assert at.calls[0].status is ToolCallStatus.FAILED


def without_patches() -> ToolSet:
    entry = ToolEntry("apply_patch", "apply_patch")
    return restrict(builtin_tools(), ToolRules(excluded=(ToolList("tools.exclude", "s", (entry,)),)))


async def test_where_the_tool_is_excluded_nothing_is_done(harness: Any, workspace: Path) -> None:
    policy = Policy(ApprovalMode.YOLO)
    at = harness(
        [Reply.of(shell(f"apply_patch <<'EOF'\n{PATCH}\nEOF")), Reply.of(Say("done"))],
        policy=policy,
        tools=without_patches(),
    )
    await at.prompt("go")
    assert list(workspace.glob("*.txt")) == []
    assert at.calls[0].error.type == "invalid_arguments"
    assert "apply_patch is not a command here" in at.told()


async def test_what_the_shell_would_change_is_refused_with_the_way_to_write_it(harness: Any, workspace: Path) -> None:
    policy = Policy(ApprovalMode.YOLO)
    command = "apply_patch <<EOF\n*** Begin Patch\n*** Add File: a.txt\n+$HOME\n*** End Patch\nEOF"
    at = harness([Reply.of(shell(command)), Reply.of(Say("done"))], policy=policy)
    await at.prompt("go")
    assert list(workspace.glob("*.txt")) == []
    assert "apply_patch <<'EOF'" in at.told()
