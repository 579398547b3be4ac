"""A user who types slash commands: the real agent in the real engine over its journal, with the real Gemini provider.

``home`` is the user's ``~/.gemini``, ``workspace`` the session's folder. The wire records requests to the model.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

from isthmus.agent.approval.policy import Policy
from isthmus.agent.coding.coding_agent import CodingAgent
from isthmus.agent.options import AgentOptions
from isthmus.agent.part import AgentParts
from isthmus.agent.resources import AgentResources, FolderTrust
from isthmus.checkpoints.store import CheckpointStore
from isthmus.client import CommandMessage, CommandScope, Execution, PromptMessage, TaskSnapshot, Turn
from isthmus.development_tool import CommandExecutionStatus, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.engine.users.day_use import DayUse
from isthmus.events import AgentEvent, StateChange, TaskState, TextContent, ToolCallUpdate
from isthmus.journal.port.base import Journal
from isthmus.journal.port.saved_chats import ChatPlace
from isthmus.mcp_host.contents import HostContents
from isthmus.mcp_host.host import McpHost
from isthmus.models.catalogue.facts import ModelOverride
from isthmus.models.choose import choose, open_agents_model
from isthmus.parts.hook_processes import HookProcesses
from isthmus.parts.model_directory import ModelDirectory
from isthmus.parts.servers import ServersPart
from isthmus.settings.rules.hooks import Hook
from isthmus.settings.rules.permissions import PermissionRule
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.servers import ToolServers
from isthmus.tools.port.tool_set import FixedTools
from support.gemini_wire import GeminiWire
from support.journals import journal_at
from support.scripted_wire import Reply


@dataclass
class Ran:
    """Events of a command or a prompt so far."""

    task_id: str
    context_id: str
    events: list[AgentEvent]
    status: CommandExecutionStatus | None = None

    @property
    def text(self) -> str:
        """All text sent to the user."""
        return "".join(event.text for event in self.events if isinstance(event, TextContent))

    @property
    def end(self) -> StateChange:
        """The last state change: the end, or a question."""
        last = self.events[-1]
        assert isinstance(last, StateChange), last
        return last

    @property
    def state(self) -> TaskState:
        return self.end.state

    @property
    def calls(self) -> list[ToolCall]:
        """The last state of each call."""
        return list(
            {e.tool_call.tool_call_id: e.tool_call for e in self.events if isinstance(e, ToolCallUpdate)}.values()
        )

    def statuses(self) -> list[ToolCallStatus]:
        """Return every state that calls went through, without progress."""
        return [e.tool_call.status for e in self.events if isinstance(e, ToolCallUpdate) and not e.is_ephemeral]


@dataclass
class CommandHarness:
    """An engine with its journal, model, workspace and home."""

    engine: Engine
    wire: GeminiWire
    workspace: Path
    home: Path
    replies: list[Reply] = field(default_factory=list[Reply])
    """The model's next replies, where the fixture's own replies are used."""
    opened_journal: Journal | None = None

    @property
    def journal(self) -> Journal:
        """The journal of the engine, where the harness has opened it."""
        assert self.opened_journal is not None
        return self.opened_journal

    @property
    def chats_here(self) -> ChatPlace:
        """The place of the local user's saved chats in the workspace."""
        return ChatPlace("", str(self.workspace))

    def of(self, user: str) -> "CommandHarness":
        """Return the same harness for another user of the server."""
        return replace(self, engine=cast("Engine", self.engine.for_user(user)))

    async def execute(self, line: str, context_id: str | None = None, **settings: Any) -> Execution:
        """Start a command without waiting for its end; ``settings`` are AgentSettings."""
        path, _, args = line.removeprefix("/").partition(" ")
        scope = CommandScope(context_id=context_id, settings=settings or None)
        return await self.engine.execute(CommandMessage((path,), args, scope))

    async def run(self, line: str, context_id: str | None = None, **settings: Any) -> Ran:
        """Run a command up to its end or a question."""
        execution = await self.execute(line, context_id, **settings)
        assert execution.turn is not None, execution.message
        return await self._ran(execution.turn, execution.status)

    async def prompt(self, text: str, context_id: str | None = None, **settings: Any) -> Ran:
        message = PromptMessage(text, context_id=context_id, settings=settings or None)
        return await self._ran(await self.engine.prompt(message))

    async def answer(self, ran: Ran, option: str = "proceed_once", call: ToolCall | None = None) -> Ran:
        """Answer a call, the first waiting one if none is given."""
        if call is None:
            call = (await self.engine.get(ran.task_id)).pending[0]
        answers = [ToolCallConfirmation(call.tool_call_id, option)]
        return await self._ran(await self.engine.answer(ran.task_id, answers, answered_by="test"))

    async def replay(self, ran: Ran) -> Ran:
        """Return the whole task from its first event."""
        return await self._ran(await self.engine.follow(ran.task_id, 0))

    def system(self, request: int = -1) -> str:
        """Return the system prompt of a model request."""
        return "".join(part["text"] for part in self.wire.model_requests[request].json["systemInstruction"]["parts"])

    def said(self, request: int = -1) -> str:
        """Return the conversation of a model request."""
        return json.dumps(self.wire.model_requests[request].json["contents"], ensure_ascii=False)

    def last_user_text(self, request: int = -1) -> str:
        """Return the last text of the user in a model request."""
        contents = self.wire.model_requests[request].json["contents"]
        texts = [
            part["text"] for item in contents if item["role"] == "user" for part in item["parts"] if "text" in part
        ]
        return texts[-1]

    async def _ran(self, turn: Turn, status: CommandExecutionStatus | None = None) -> Ran:
        async with asyncio.timeout(60):
            found = [delivery.event async for delivery in turn.deliveries]
        return Ran(turn.task_id, turn.context_id, found, status)


OpenHarness: TypeAlias = Callable[..., AbstractAsyncContextManager[CommandHarness]]
"""The fixture that opens harnesses: replies of the model, and the options of :func:`command_harness`."""


@asynccontextmanager
async def command_harness(
    folder: Path,
    wire: GeminiWire,
    *,
    policy: Policy | None = None,
    servers: ToolServers | None = None,
    context_files: tuple[str, ...] = (),
    trusts: FolderTrust | None = None,
    environment: Mapping[str, str] | None = None,
    mcp: McpHost | None = None,
    sandbox: str = "none",
    may_include_folders: bool = False,
    permissions: tuple[PermissionRule, ...] = (),
    hooks: tuple[Hook, ...] = (),
    has_workspace: bool = True,
    prices: Mapping[str, tuple[str, str, str]] | None = None,
) -> AsyncGenerator[CommandHarness]:
    """Start a harness whose journal, workspace and home are below ``folder``; opened again, it continues with these.

    Without ``has_workspace`` sessions may work in the workspace, but have to name it. ``prices`` are those of models in
    US dollars for a million tokens: input, output, and input from the cache.
    """
    workspace, home, data = folder / "workspace", folder / "home" / ".gemini", folder / "data"
    for each in (workspace, home, data):
        each.mkdir(parents=True, exist_ok=True)
    provider = {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}
    overrides = {
        name: ModelOverride(100_000, None, Decimal(read), Decimal(written), Decimal(cached))
        for name, (read, written, cached) in (prices or {}).items()
    }
    open_priced = partial(open_agents_model, overrides=overrides)
    model = ModelDirectory(choose("gemini:test", None, provider), provider, open_priced, overrides)
    journal = await journal_at(data / "journal.sqlite")
    checkpoints = CheckpointStore(data / "checkpoints.sqlite")

    async def tasks(task_id: str) -> Sequence[TaskSnapshot]:
        return await engine.tasks()

    contents = None if mcp is None else HostContents(mcp)
    resources = AgentResources(
        open_model=model.open,
        tools=FixedTools(replace(builtin_tools(), permissions=permissions, hooks=hooks)) if mcp is None else mcp,
        servers=servers if mcp is None else mcp,
        contents=contents,
        parts=AgentParts() if contents is None else AgentParts((ServersPart(contents),)),
        home=home,
        checkpoints=checkpoints,
        tasks=tasks,
        chats=journal.chats,
        day_use=DayUse(journal).today,
        trusts=trusts,
        model_names=model.names,
        hook_programs=HookProcesses(),
    )
    variables = {"PATH": "/usr/bin:/bin", **(environment or {})}
    options = AgentOptions(
        data / "outputs",
        variables,
        policy or Policy(),
        context_files=context_files,
        sandbox=sandbox,
        may_include_folders=may_include_folders,
    )
    rule = WorkspaceRule(workspace if has_workspace else None, (workspace,))
    engine = Engine(CodingAgent(resources, options), journal, EngineOptions(rule))
    await engine.start()
    try:
        yield CommandHarness(engine, wire, workspace, home, opened_journal=journal)
    finally:
        await engine.aclose()
        await checkpoints.aclose()
        await model.aclose()
