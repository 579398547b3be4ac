"""Tools that parts bring: who has the user's own, and that each fact to remember is asked about."""

from collections.abc import Callable
from pathlib import Path

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.memory.memory_part import MemoryPart
from isthmus.agent.part import AgentParts, PartBase, PartTools
from isthmus.agent.part_tools import ToolsOfParts
from isthmus.agent.personal_part import PersonalFiles, PersonalPart
from isthmus.agent.skills.finding import find_skills
from isthmus.events import TaskState
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.tool_set import FixedTools, ToolScope, ToolSet
from support.agent_harness import AgentHarness
from support.effect_tools import EffectTool
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

Harness = Callable[..., AgentHarness]
FACT = Call("save_memory", {"fact": "Tabs, not spaces."})


def personal(tmp_path: Path, source: ToolSet | None = None) -> ToolsOfParts:
    async def files(scope: ToolScope) -> PersonalFiles:
        return PersonalFiles() if scope.user else PersonalFiles(find_skills(tmp_path, None))

    parts = AgentParts((PersonalPart(files), MemoryPart(tmp_path / "GEMINI.md")))
    return ToolsOfParts(FixedTools(source or builtin_tools()), parts)


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


class Bringing(PartBase):
    """Part that brings tools with these names, whose calls are asked about each time."""

    def __init__(self, name: str, *tools: EffectTool) -> None:
        self.name = name
        self._tools = tools

    async def tools(self, scope: ToolScope) -> PartTools:
        return PartTools(self._tools, {tool.name: f"asked by {self.name}" for tool in self._tools})


async def test_a_name_stays_that_of_the_first_tool_which_has_it(tmp_path: Path) -> None:
    first, second, own = EffectTool("shared"), EffectTool("shared"), EffectTool("read_file")
    parts = AgentParts((Bringing("one", first), Bringing("two", second, own)))
    builtin = builtin_tools()
    found = await ToolsOfParts(FixedTools(builtin), parts).tools(ToolScope(tmp_path))
    assert found.tools["shared"] is first
    assert found.tools["read_file"] is builtin.tools["read_file"]
    assert found.always_asked == {"shared": "asked by one"}


async def test_the_instructions_of_each_part_stand_in_lines_of_their_own(tmp_path: Path) -> None:
    class Instructing(PartBase):
        name = "instructing"

        def __init__(self, text: str) -> None:
            self._text = text

        async def instructions(self, scope: ToolScope) -> str:
            return self._text

    parts = AgentParts(tuple(Instructing(text) for text in ("Use tabs.", "", "\n# Servers\n")))
    given = await parts.instructions(ToolScope(tmp_path))
    assert given == [("instructing", "\nUse tabs.\n"), ("instructing", "\n# Servers\n")]


async def test_a_part_is_asked_for_its_tools_once_in_a_turn(tmp_path: Path) -> None:
    class Counting(PartBase):
        name = "counting"
        asked = 0

        async def tools(self, scope: ToolScope) -> PartTools:
            self.asked += 1
            return PartTools((EffectTool(f"tool_{self.asked}"),))

    counting = Counting()
    source = ToolsOfParts(FixedTools(builtin_tools()), AgentParts((counting,)))
    scope = ToolScope(tmp_path, "context", "task")
    first = await source.tools(scope)
    assert await source.renewed(scope, first) is first
    assert counting.asked == 1
    assert "tool_2" in (await source.tools(scope)).tools
