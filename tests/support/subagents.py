"""A coding agent with subagents in a real engine, and a model that knows the agent and its subagents apart."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from isthmus.agent.approval.policy import Policy
from isthmus.agent.coding.coding_agent import CodingAgent
from isthmus.agent.memory.memory_part import MemoryPart
from isthmus.agent.options import AgentOptions
from isthmus.agent.part import AgentParts
from isthmus.agent.part_tools import ToolsOfParts
from isthmus.agent.personal_part import PersonalFiles, PersonalPart
from isthmus.agent.resources import AgentResources
from isthmus.agent.subagents.child_tasks import child_task_id
from isthmus.agent.subagents.finding import find_subagents
from isthmus.checkpoints.store import CheckpointStore
from isthmus.client import PromptMessage, TaskSnapshot
from isthmus.development_tool import ToolCallConfirmation
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import TaskState
from isthmus.models.catalogue.facts import ModelOverride
from isthmus.models.choose import choose, open_model
from isthmus.models.port.base import ChatModel
from isthmus.models.streaming import StreamOptions
from isthmus.parts.hook_processes import HookProcesses
from isthmus.settings.rules.hooks import Hook
from isthmus.task_view import TaskView
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.tool_set import FixedTools, ToolScope
from support.gemini_wire import GeminiWire
from support.journals import journal_at
from support.scripted_wire import Call, Reply, Script
from support.turns import all_of
from support.waiting import eventually_async
from support.wire_server import WireRequest

IS_SUBAGENT = "You are a subagent of Isthmus"


def delegate(agent: str = "generalist", prompt: str = "Write it.", call_id: str = "call-1") -> Reply:
    """Return a reply that gives work to a subagent."""
    return Reply.of(Call("invoke_agent", {"agent_name": agent, "prompt": prompt}, id=call_id))


def write(name: str, text: str = "Hello.\n") -> Reply:
    """Return a reply that writes a file."""
    return Reply.of(Call("write_file", {"file_path": name, "content": text}, id=f"write-{name}"))


@dataclass
class TwoModels:
    """Replies of the agent's model and of its subagents' in turn; a request shows by its prompt whose it is."""

    agent: list[Script] = field(default_factory=list[Script])
    subagent: list[Script] = field(default_factory=list[Script])
    asked: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    """Each request: ``agent`` or ``subagent``, and its body."""

    def __call__(self, request: WireRequest) -> Script:
        body = request.json
        whose = "subagent" if IS_SUBAGENT in body["systemInstruction"]["parts"][0]["text"] else "agent"
        self.asked.append((whose, body))
        return (self.subagent if whose == "subagent" else self.agent).pop(0)

    def tools_of(self, whose: str) -> set[str]:
        """Return the names of the tools in the last request of the agent or of a subagent."""
        body = next(body for asked, body in reversed(self.asked) if asked == whose)
        return {tool["name"] for group in body.get("tools", []) for tool in group["functionDeclarations"]}


@dataclass
class Delegation:
    """An engine with a task whose agent has begun a subagent by its call ``call-1``."""

    engine: Engine
    workspace: Path
    task_id: str = ""

    @property
    def child_id(self) -> str:
        """The id of the subagent's task."""
        return child_task_id(self.task_id, "call-1")

    async def prompt(self, text: str = "Do it.", **settings: Any) -> TaskSnapshot:
        """Send a prompt and return the task once it is at rest."""
        sent = {"workspace_path": str(self.workspace), **settings}
        turn = await self.engine.prompt(PromptMessage(text, settings=sent))
        self.task_id = turn.task_id
        await all_of(turn)
        return await self.engine.get(self.task_id)

    async def answer(self, task_id: str, option: str = "proceed_once", call_id: str | None = None) -> None:
        """Answer the question of a task, and return at once."""
        asked = call_id or (await self.engine.get(task_id)).pending[0].tool_call_id
        await self.engine.answer(task_id, [ToolCallConfirmation(asked, option)], answered_by="test")

    async def at_rest(self, task_id: str, *states: TaskState) -> TaskSnapshot:
        """Return a task once it is in one of these states."""

        async def found() -> bool:
            return (await self.engine.get(task_id)).state in states

        await eventually_async(found, what=f"{task_id} in {states}")
        return await self.engine.get(task_id)

    async def view(self, task_id: str) -> TaskView:
        """Return the view of a task at rest."""
        view = TaskView()
        for delivery in await self.engine.journal.events(task_id, 0, 10_000):
            view.apply(delivery)
        return view


@asynccontextmanager
async def delegation(
    folder: Path,
    wire: GeminiWire,
    *,
    policy: Policy | None = None,
    task_id: str = "",
    home: Path | None = None,
    takes_over: bool = True,
    hooks: tuple[Hook, ...] = (),
    price: Decimal | None = None,
) -> AsyncGenerator[Delegation]:
    """Run an engine over the journal in ``folder``, with a model behind ``wire``; close both at the end.

    ``price`` is the model's, in US dollars for a million tokens of any kind.
    """
    environment = {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}
    overrides = {"test": ModelOverride(100_000, None, price, price, price)} if price is not None else {}
    options = StreamOptions(sleep=lambda _: asyncio.sleep(0), overrides=overrides)
    model = await asyncio.to_thread(open_model, choose("gemini:test", None, environment), environment, options)
    workspace = folder / "work"
    workspace.mkdir(exist_ok=True)

    async def opened(name: str | None) -> ChatModel:
        return model

    async def personal(scope: ToolScope) -> PersonalFiles:
        return PersonalFiles(subagents=find_subagents(home, None))

    parts = AgentParts((PersonalPart(personal, lambda: engine.child_tasks), MemoryPart(folder / "GEMINI.md")))
    tools = ToolsOfParts(FixedTools(replace(builtin_tools(), hooks=hooks)), parts)
    checkpoints = CheckpointStore(folder / "checkpoints.sqlite")
    agent = CodingAgent(
        AgentResources(
            opened,
            tools,
            checkpoints=checkpoints,
            personal=personal,
            hook_programs=HookProcesses(),
        ),
        AgentOptions(folder / ".outputs", {"PATH": "/usr/bin:/bin"}, policy or Policy()),
    )
    rule = WorkspaceRule(workspace, (workspace,))
    journal = await journal_at(folder / "journal.sqlite")
    engine = Engine(agent, journal, EngineOptions(rule, takes_over=takes_over))
    await engine.start()
    try:
        yield Delegation(engine, workspace, task_id)
    finally:
        await engine.aclose()
        await checkpoints.aclose()
        await model.aclose()
