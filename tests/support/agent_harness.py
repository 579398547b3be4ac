"""A user with an agent in a workspace: the real turn loop, a real provider over its wire, real files."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from typing_extensions import override

from isthmus.agent.approval.kept_approvals import KeptApprovals
from isthmus.agent.approval.policy import Policy
from isthmus.agent.approval.session_policy import SettingsRule
from isthmus.agent.coding.coding_agent import CodingAgent
from isthmus.agent.hooks.tool_hooks import HookPrograms
from isthmus.agent.options import COMPACTION_SHARE, AgentOptions
from isthmus.agent.part import AgentParts, Part, PartBase, PartTurn
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.session import Session
from isthmus.agent.session.spending import Spending
from isthmus.agent.tool_search.loading import SearchOptions
from isthmus.checkpoints.base import Checkpoints
from isthmus.development_tool import ModifiedFileDetails, ToolCall, ToolCallConfirmation
from isthmus.events import (
    AgentEvent,
    ConfirmationAccepted,
    Prompt,
    StateChange,
    ToolCallUpdate,
    event_from_json,
    event_to_json,
)
from isthmus.models.choose import choose, open_model
from isthmus.models.port.base import ChatModel, ModelError, ModelErrorKind
from isthmus.models.streaming import StreamOptions
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.tool_set import FixedTools, ToolScope, ToolSet, ToolSource
from support.emitting import collecting_turn
from support.scripted_wire import Call, ScriptedWire


@dataclass
class FixedContext(PartBase):
    """Part that tells the model the same at each prompt."""

    text: str | None
    name = "editor"

    @override
    async def at_prompt(self, turn: PartTurn) -> str | None:
        return self.text


@dataclass
class AgentHarness:
    """A user with an agent in a workspace; ``events`` holds what happened, as the journal stores it."""

    workspace: Path
    wire: ScriptedWire
    policy: Policy = field(default_factory=Policy)
    limit: int = 20
    context: str | None = None
    environment: str | None = None
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    rule: SettingsRule = field(default_factory=SettingsRule)
    checkpoints: Checkpoints | None = None
    share: float = COMPACTION_SHARE
    tools: ToolSet = field(default_factory=builtin_tools)
    search: SearchOptions = field(default_factory=SearchOptions)
    approvals: KeptApprovals | None = None
    source: ToolSource | None = None
    """Where the tools come from in place of ``tools``, if they change in the middle of a turn."""
    home: Path | None = None
    """The folder of the user's own files of instructions."""
    parts: tuple[Part, ...] = ()
    instructions: str = ""
    """Text that the user of the program adds to the system prompt."""
    user: str = ""
    may_include_folders: bool = False
    included_folders: tuple[Path, ...] = ()
    tries_commands: bool = False
    fallback: ScriptedWire | None = None
    """The server of another model, `gemini:other`, which answers while the first is overloaded."""
    hook_programs: HookPrograms | None = None
    provider: str = "gemini"
    model: str = "test"
    variables: tuple[str, str] = ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL")
    """Variables of the provider's key and address."""
    address: str = ""
    """Address of a proxy in front of the server; empty for the server itself."""
    stream_options: StreamOptions = field(default_factory=lambda: StreamOptions(sleep=lambda _: asyncio.sleep(0)))
    spending: Spending | None = None
    events: list[AgentEvent] = field(default_factory=list[AgentEvent])

    async def prompt(self, text: str) -> StateChange:
        self.events.append(Prompt("m", text, {"workspace_path": str(self.workspace), **self.settings}))
        return await self.segment()

    async def answer(self, call: ToolCall, option: str = "proceed_once", content: str | None = None) -> StateChange:
        modified = None if content is None else ModifiedFileDetails(content)
        self.events.append(ConfirmationAccepted(ToolCallConfirmation(call.tool_call_id, option, modified), "test"))
        return await self.segment()

    async def segment(self) -> StateChange:
        """Run one segment in a new process that knows only what the journal stored."""
        session = Session("c", user=self.user)
        for event in self.events:
            session.apply(event_from_json(json.loads(json.dumps(event_to_json(event)))), "t")
        model = await self._model(f"{self.provider}:{self.model}", self.wire)
        options = AgentOptions(
            self.workspace / ".outputs",
            {"PATH": "/usr/bin:/bin"},
            self.policy,
            self.limit,
            settings_rule=self.rule,
            compaction_share=self.share,
            tool_search=self.search,
            may_include_folders=self.may_include_folders,
            included_folders=self.included_folders,
            tries_commands=self.tries_commands,
            fallback_models=("gemini:gone", "gemini:other") if self.fallback is not None else (),
            appended_prompt=self.instructions,
        )
        other = await self._model("gemini:other", self.fallback) if self.fallback is not None else model

        async def opened(name: str | None) -> ChatModel:
            if name == "gemini:gone":
                raise ModelError(ModelErrorKind.CONFIGURATION, "Gemini needs a key")
            return model if name is None else other

        async def environment(_: ToolScope) -> str:
            return self.environment or ""

        try:
            async with asyncio.timeout(60):
                resources = AgentResources(
                    opened,
                    self.source or FixedTools(self.tools),
                    parts=AgentParts((FixedContext(self.context), *self.parts)),
                    home=self.home,
                    environment=environment if self.environment is not None else None,
                    checkpoints=self.checkpoints,
                    approvals=self.approvals,
                    hook_programs=self.hook_programs,
                )
                turn = collecting_turn(session, self.events, spending=self.spending)
                end = await CodingAgent(resources, options).advance(turn)
                self.events.append(session.apply(end))
        finally:
            await model.aclose()
            await other.aclose()
        return end

    async def _model(self, name: str, wire: ScriptedWire) -> ChatModel:
        key, address = self.variables
        environment = {key: "test-key", address: self.address or wire.base_url}
        options = self.stream_options
        return await asyncio.to_thread(open_model, choose(name, None, environment), environment, options)

    @property
    def calls(self) -> list[ToolCall]:
        """Return the last state of each call, in the order of their announcement."""
        latest = {event.tool_call.tool_call_id: event.tool_call for event in self.events if is_update(event)}
        return list(latest.values())

    def states(self, name: str) -> list[str]:
        """Return the states that the calls of a tool went through, without progress."""
        updates = [event for event in self.events if is_update(event) and event.tool_call.tool_name == name]
        return [event.tool_call.status.name for event in updates if not event.is_ephemeral]

    def told(self, request: int = -1) -> str:
        """Return the text of a request to the model."""
        return json.dumps(self.body(request)["contents"], ensure_ascii=False)

    def body(self, request: int = -1) -> dict[str, Any]:
        return self.wire.model_requests[request].json


def is_update(event: AgentEvent) -> TypeGuard[ToolCallUpdate]:
    return isinstance(event, ToolCallUpdate)


def edit(path: Path, old: str, new: str) -> Call:
    return Call("replace", {"file_path": str(path), "old_string": old, "new_string": new})
