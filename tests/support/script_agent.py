"""The scripts of :mod:`support.memory_agent`, run by the real engine: an Agent that plays steps instead of a model."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from isthmus.a2a.options import ServerOptions
from isthmus.agent.session.turn import AgentTurn
from isthmus.client import PromptMessage
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import StateChange, TaskState, TextContent, ToolCallUpdate
from isthmus.internal_events import ToolResultRecorded
from isthmus.models.port.base import Text, ToolRequest
from support.a2a_serving import RawClient, serving
from support.agent_behind import behind
from support.agents import reply
from support.journals import journal_at
from support.memory_agent import Ask, MemoryAgent, Progress, Script, Step, Wait, conversation, decided

MODEL = "scripted"


class ScriptAgent:
    """An implementation of the engine's Agent port that plays a script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._steps: dict[str, list[Step]] = {}
        self._texts: dict[str, dict[str, str]] = {}

    async def advance(self, turn: AgentTurn) -> StateChange:
        """Play steps to the next question or the end."""
        session = turn.session
        if session.state is TaskState.SUBMITTED:
            text = "".join(part.text for part in session.messages[-1].parts if isinstance(part, Text))
            self._steps[session.task_id] = list(self._script(PromptMessage(text)))
            self._texts[session.task_id] = {}
            await turn.emit(StateChange(TaskState.WORKING))
        await self._decide(turn)
        if session.calls.waiting:
            return StateChange(TaskState.INPUT_REQUIRED)
        steps = self._steps[session.task_id]
        texts = self._texts[session.task_id]
        while steps:
            match steps.pop(0):
                case Ask(calls):
                    requests = [ToolRequest(call.tool_call_id, call.tool_name, call.input_parameters) for call in calls]
                    await turn.emit(replace(reply("asking", *requests), model=MODEL))
                    for call in calls:
                        await turn.emit(ToolCallUpdate(call))
                    return StateChange(TaskState.INPUT_REQUIRED)
                case Wait(event):
                    await event.wait()
                case Progress(event):
                    await turn.emit(event)
                case Exception() as error:
                    return StateChange(TaskState.FAILED, str(error), "scripted")
                case TextContent(message_id, text) as event:
                    texts[message_id] = texts.get(message_id, "") + text
                    await turn.emit(event)
                case event:
                    await turn.emit(event)
        for message_id, text in texts.items():
            await turn.emit(replace(reply(message_id, Text(text)), model=MODEL))
        return StateChange(TaskState.COMPLETED)

    async def _decide(self, turn: AgentTurn) -> None:
        for item in turn.session.calls.unsettled:
            if item.call is not None and item.confirmation is not None:
                for event in decided(item.call, item.confirmation):
                    await turn.emit(event)
                await turn.emit(ToolResultRecorded(item.call.tool_call_id, "done"))


class Serve(Protocol):
    """A function that serves a script to a raw client."""

    def __call__(
        self, script: Script = conversation, options: ServerOptions | None = None
    ) -> AbstractAsyncContextManager[RawClient]: ...


def serve_with(kind: str, folder: Path) -> Serve:
    """Return a function that serves scripts with the agent in memory, or with the real engine in ``folder``."""

    @asynccontextmanager
    async def serve(script: Script = conversation, options: ServerOptions | None = None) -> AsyncGenerator[RawClient]:
        if kind == "memory":
            async with serving(MemoryAgent(script, default_workspace=str(folder)), options) as client:
                yield client
        else:
            async with engine_playing(script, folder) as engine, serving(engine, options) as client:
                yield client

    return serve


@asynccontextmanager
async def engine_playing(script: Script, folder: Path, *roots: Path) -> AsyncGenerator[Engine]:
    """Start a real engine over a journal in ``folder``, which is also its default workspace; its server closes it.

    Tasks may work below ``roots``, or anywhere if none are given.
    """
    yield await engine_for(script, folder, WorkspaceRule(folder, roots))


async def engine_for(script: Script, folder: Path, rule: WorkspaceRule) -> Engine:
    """Return a started engine that plays a script, with its journal in ``folder``."""
    journal = await journal_at(folder / "journal.sqlite")
    engine = Engine(behind(ScriptAgent(script)), journal, EngineOptions(rule, lambda: MODEL))
    await engine.start()
    return engine
