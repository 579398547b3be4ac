"""A tool that asks questions during its work, and an agent that calls it in a real engine over a real journal."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from isthmus.agent.approval.policy import Policy
from isthmus.agent.coding.coding_agent import CodingAgent
from isthmus.agent.options import AgentOptions
from isthmus.agent.resources import AgentResources
from isthmus.client import PromptMessage
from isthmus.development_tool import (
    ConfirmationDetails,
    ConfirmationOption,
    GenericDetails,
    ToolCall,
    ToolOutput,
)
from isthmus.engine import Engine
from isthmus.events import AgentEvent, StateChange, TaskState, ToolCallUpdate
from isthmus.journal.port.base import Journal
from isthmus.models.choose import choose, open_model
from isthmus.models.port.base import ChatModel
from isthmus.parts.hook_processes import HookProcesses
from isthmus.settings.rules.hooks import Hook
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.tool_set import ToolScope, ToolSet
from isthmus.tools.port.user_question import ModelPrompt, SamplingMessage, UserQuestion
from support.engines import engine_on, events, once
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say
from support.turns import all_of
from support.waiting import eventually_async

OPTIONS = (ConfirmationOption("accept", "Yes"), ConfirmationOption("always", "Always"), ConfirmationOption("no", "No"))


@dataclass
class AskingTool:
    """A tool that asks ``questions`` times, one after the other; ``log`` records the outcome of each of its calls."""

    name: str = "inquire"
    kind: ToolKind = ToolKind.OTHER
    questions: int = 1
    asks_model: bool = False
    log: list[str] = field(default_factory=list[str])
    withdrawals: list[asyncio.Future[str]] = field(default_factory=list[asyncio.Future[str]])
    """A future for each question; its result, the reason, withdraws the question."""
    description: str = "Asks."
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})

    def describe(self, arguments: Arguments) -> str:
        return "Ask"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        self.log.append("begun")
        context.progress("begun")
        try:
            for number in range(self.questions):
                self.withdrawals.append(asyncio.get_running_loop().create_future())
                reply = await context.ask(self._question(number), self.withdrawals[-1])
                self.log.append(str(getattr(reply, "option_id", None) or getattr(reply, "text", None) or reply))
        except asyncio.CancelledError:
            self.log.append("left")
            raise
        return ToolSucceeded(ToolOutput(text="done"), "done asking")

    def _question(self, number: int) -> UserQuestion:
        prompt = ModelPrompt("be brief", (SamplingMessage("user", "what is it?"),), 9)
        return UserQuestion(
            "sampling" if self.asks_model else "elicitation", "s", "s asks", GenericDetails(f"number {number}"),
            OPTIONS, frozenset({"accept", "always"}), {"server": "s", "number": number}, "always",
            prompt if self.asks_model else None,
        )  # fmt: skip


@dataclass
class Released:
    """Tools that count how often they were released."""

    tool_set: ToolSet
    count: int = 0

    async def tools(self, scope: ToolScope) -> ToolSet:
        return self.tool_set

    async def renewed(self, scope: ToolScope, tools: ToolSet) -> ToolSet:
        return tools

    async def release(self, scope: ToolScope) -> None:
        self.count += 1


@dataclass
class SuspendedCallsHarness:
    engine: Engine
    agent: CodingAgent
    tools: Released
    wire: GeminiWire
    task: str = ""
    seen: list[AgentEvent] = field(default_factory=list[AgentEvent])

    async def prompt(self, text: str = "go") -> StateChange:
        turn = await self.engine.prompt(PromptMessage(text, task_id=self.task or None))
        self.task = turn.task_id
        return self.take(events(await all_of(turn)))

    async def answer(self, option: str, call: ToolCall | None = None) -> StateChange:
        found = call or self.question
        turn = await self.engine.answer(self.task, once(found.tool_call_id, option), answered_by="test")
        return self.take(events(await all_of(turn)))

    async def ended(self, state: TaskState = TaskState.COMPLETED) -> None:
        """Wait until the task reaches a state by itself."""

        async def has_ended() -> bool:
            return (await self.engine.get(self.task)).state is state

        await eventually_async(has_ended)
        self.seen.clear()
        self.take(events(await all_of(await self.engine.follow(self.task, 0))))

    def take(self, found: list[AgentEvent]) -> StateChange:
        self.seen += found
        last = found[-1]
        assert isinstance(last, StateChange)
        return last

    @property
    def calls(self) -> dict[str, ToolCall]:
        return {e.tool_call.tool_call_id: e.tool_call for e in self.seen if isinstance(e, ToolCallUpdate)}

    def states(self, name: str) -> list[str]:
        found = [event for event in self.seen if isinstance(event, ToolCallUpdate) and not event.is_ephemeral]
        return [event.tool_call.status.name for event in found if event.tool_call.tool_name == name]

    @property
    def question(self) -> ToolCall:
        (found,) = [call for call in self.calls.values() if call.confirmation_request is not None]
        return found

    def told(self) -> str:
        return str(self.wire.model_requests[-1].json["contents"])


@asynccontextmanager
async def harness(
    path: Path,
    *tools: Any,
    seconds: float = 600,
    policy: Policy | None = None,
    replies: list[list[Call] | str] | None = None,
    takes_over: bool = True,
    hooks: tuple[Hook, ...] = (),
    journal: Journal | None = None,
) -> AsyncGenerator[SuspendedCallsHarness]:
    """Start an agent in an engine whose model calls the tools and then ends its turn."""
    called = [*(Call(tool.name, {}) for tool in tools)]
    script = [
        Reply.of(*(item if isinstance(item, list) else [Say(item)]))
        for item in ([called, "over", "over"] if replies is None else replies)
    ]
    with GeminiWire(script) as wire:
        environment = {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}
        model = await asyncio.to_thread(open_model, choose("gemini:test", None, environment), environment)

        async def opened(_: str | None) -> ChatModel:
            return model

        released = Released(replace(ToolSet.of(*tools), hooks=hooks))
        mode = policy or Policy(grants=frozenset())
        agent = CodingAgent(
            AgentResources(opened, released, hook_programs=HookProcesses()), AgentOptions(path / "outputs", {}, mode)
        )
        agent.suspended.seconds = seconds
        try:
            async with engine_on(path, agent, lease_seconds=1, takes_over=takes_over, journal=journal) as engine:
                yield SuspendedCallsHarness(engine, agent, released, wire)
        finally:
            await model.aclose()
