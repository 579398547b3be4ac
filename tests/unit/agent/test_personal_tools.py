"""Tools that belong to the user: who has them, and that each fact to remember is asked about."""

from collections.abc import Callable
from pathlib import Path

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.personal_tools import PersonalFiles, PersonalTools
from isthmus.agent.skills.finding import find_skills
from isthmus.events import TaskState
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.tool_set import FixedTools, ToolScope, ToolSet
from support.agent_harness import AgentHarness
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

Harness = Callable[..., AgentHarness]
FACT = Call("save_memory", {"fact": "Tabs, not spaces."})


def personal(tmp_path: Path, source: ToolSet | None = None) -> PersonalTools:
    async def files(scope: ToolScope) -> PersonalFiles:
        return PersonalFiles() if scope.user else PersonalFiles(find_skills(tmp_path, None))

    return PersonalTools(FixedTools(source or builtin_tools()), files, tmp_path / "GEMINI.md")


async def test_only_the_local_user_has_memory_and_skills(tmp_path: Path) -> None:
    (tmp_path / ".gemini/skills/a").mkdir(parents=True)
    (tmp_path / ".gemini/skills/a/SKILL.md").write_text("---\nname: a\ndescription: b\n---\nc", "utf-8")
    source = personal(tmp_path)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    # In a workspace that has the skills itself, ignore files decide what is read.
    assert (await personal(tmp_path).tools(ToolScope(tmp_path))).readable_folders == ()
    own = await source.tools(ToolScope(workspace))
    assert {"save_memory", "activate_skill"} <= own.tools.keys()
    assert own.readable_folders == (tmp_path.resolve() / ".gemini/skills/a",)
    assert await source.renewed(ToolScope(workspace), own) is own
    others = await source.tools(ToolScope(workspace, user="alice"))
    assert others.tools.keys().isdisjoint({"save_memory", "activate_skill"})
    assert others.readable_folders == ()


@pytest.mark.parametrize("mode", [ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT, ApprovalMode.YOLO])
async def test_a_fact_is_remembered_when_the_user_has_allowed_it(
    harness: Harness, tmp_path: Path, mode: ApprovalMode
) -> None:
    tools = await personal(tmp_path).tools(ToolScope(tmp_path))
    at = harness([Reply.of(FACT), Reply.of(Say("Noted."))], policy=Policy(mode), tools=tools)
    assert (await at.prompt("Remember: tabs.")).state is TaskState.INPUT_REQUIRED
    assert not (tmp_path / "GEMINI.md").exists()
    asked = at.calls[0].confirmation_request
    assert asked is not None
    assert [option.id for option in asked.options] == ["proceed_once", "cancel"]
    assert (await at.answer(at.calls[0])).state is TaskState.COMPLETED
    assert (tmp_path / "GEMINI.md").read_text("utf-8") == "## Gemini Added Memories\n- Tabs, not spaces.\n"


async def test_without_a_user_nothing_is_remembered_nor_offered(harness: Harness, tmp_path: Path) -> None:
    tools = await personal(tmp_path).tools(ToolScope(tmp_path))
    policy = Policy(ApprovalMode.YOLO, may_ask=False)
    at = harness([Reply.of(FACT), Reply.of(Say("I cannot."))], policy=policy, tools=tools)
    await at.prompt("Remember: tabs.")
    assert "save_memory" not in str(at.body(0)["tools"])
    assert not (tmp_path / "GEMINI.md").exists()
