"""A hosted ACP agent behind a real A2A server in the test's event loop, and clients of it."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from isthmus.a2a import RemoteAgent
from isthmus.acp.host.agent_link import AgentLaunch
from isthmus.acp.host.known_agent import UNKNOWN, KnownAgent, agent_environment
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.served.agent import AcpAgent, ContextOfEditor
from isthmus.client import AgentClient, PromptMessage, Turn
from isthmus.development_tool import ModifiedFileDetails, ToolCall, ToolCallConfirmation
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.placement import EVERY_TASK, Placement
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import TaskState, TextContent
from isthmus.task_view import TaskView
from support.a2a_serving import TOKEN, RawClient, serving
from support.journals import journal_at
from support.remote_agents import remote_agent
from support.turns import all_of, view_of
from support.waiting import eventually_async

PROGRAM = Path(__file__).with_name("acp_agent_program.py")
LIMITS = HostLimits(initialize_seconds=30, session_seconds=30, load_seconds=30, cancel_seconds=0.5, exit_seconds=0.3)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client saw of a task until its stream ended."""

    task_id: str
    context_id: str
    view: TaskView

    @property
    def state(self) -> TaskState:
        """The last state."""
        return self.view.state

    @property
    def text(self) -> str:
        """Everything that the agent said."""
        return "".join(message.text for message in self.view.messages.values())

    @property
    def question(self) -> ToolCall:
        """The only call that waits for an answer."""
        (question,) = self.view.questions
        return question.call

    def call(self, call_id: str) -> ToolCall:
        """Return a call."""
        return self.view.calls[call_id].call


@dataclass(frozen=True, slots=True)
class AcpHosting:
    """A server of a hosted agent, and a client of it."""

    engine: Engine
    server: RawClient
    agent: RemoteAgent
    workspace: Path

    async def prompt(self, text: str, context_id: str | None = None, task_id: str | None = None) -> Seen:
        """Send a message, and return the task at the end of its turn."""
        return await seen_of(self.agent, await self.turn(text, context_id, task_id))

    async def turn(self, text: str, context_id: str | None = None, task_id: str | None = None) -> Turn:
        """Send a message, and return its turn."""
        settings = {"workspace_path": str(self.workspace)} if context_id is None and task_id is None else None
        return await self.agent.prompt(PromptMessage(text, task_id=task_id, context_id=context_id, settings=settings))

    async def whole(self, task_id: str) -> Seen:
        """Return a task with all its events, up to its end."""
        turn, view = await self.engine.follow(task_id, 0), TaskView()
        for delivery in await all_of(turn):
            view.apply(delivery)
        return Seen(task_id, turn.snapshot.context_id, view)

    async def answer(self, seen: Seen, option: str, edited: str | None = None) -> Seen:
        """Answer the only question of a task as another client of the server, and return the task afterwards."""
        details = None if edited is None else ModifiedFileDetails(edited)
        confirmation = ToolCallConfirmation(seen.question.tool_call_id, option, details)
        async with remote_agent(self.server.url, TOKEN) as other:
            return await seen_of(other, await other.answer(seen.task_id, [confirmation], answered_by="another client"))


async def seen_of(agent: AgentClient, turn: Turn) -> Seen:
    """Follow a turn to its end."""
    view = await view_of(turn)
    snapshot = await agent.get(turn.snapshot.task_id)
    return Seen(snapshot.task_id, snapshot.context_id, view)


def received() -> Sequence[Mapping[str, Any]]:
    """Return every message that the scripted agents of this test received."""
    path = Path(os.environ["HOME"]) / "acp-received.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    # A line that is being written is seen in part.
    return [json.loads(line) for line in lines if line.endswith("\n")]


def prompts() -> Sequence[str]:
    """Return the text of every prompt that the scripted agents of this test received."""
    blocks = [item["params"]["prompt"] for item in received() if item.get("method") == "session/prompt"]
    return ["\n\n".join(block["text"] for block in block_list) for block_list in blocks]


async def ended(hosting: AcpHosting, task_id: str) -> None:
    """Wait until a task has ended."""

    async def has_ended() -> bool:
        return (await hosting.agent.get(task_id)).state.is_terminal

    await eventually_async(has_ended, what="the end of the task")


async def text_of(turn: Turn, text: str) -> str:
    """Return the text of a turn once it has a part; the turn is not read further."""
    async with asyncio.timeout(30):
        async for delivery in turn.deliveries:
            if isinstance(delivery.event, TextContent) and text in delivery.event.text:
                return delivery.event.text
    raise AssertionError(text)


def running_agents() -> Sequence[int]:
    """Return the process ids of the scripted agents of this test, which have its HOME."""
    found: list[int] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(PROGRAM) in process.cmdline() and process.environ().get("HOME") == os.environ["HOME"]:
                found.append(process.pid)
    return found


@asynccontextmanager
async def acp_hosting(
    folder: Path,
    *start: str,
    agent: KnownAgent = UNKNOWN,
    limits: HostLimits = LIMITS,
    command: Sequence[str] | None = None,
    variables: Sequence[str] = (),
    editor_context: ContextOfEditor | None = None,
    placement: Placement = EVERY_TASK,
) -> AsyncGenerator[AcpHosting]:
    """Serve the scripted agent, or the agent of another command; the journal stays in ``folder``."""
    words = tuple(command or (sys.executable, str(PROGRAM), *start))
    launch = AgentLaunch(words, agent_environment(os.environ, agent, variables), agent)
    hosted = AcpAgent("scripted", launch, limits, editor_context=editor_context)
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    journal = await journal_at(folder / "journal.sqlite", agent=("scripted",))
    engine = Engine(hosted, journal, EngineOptions(WorkspaceRule(workspace, (workspace,)), placement=placement))
    await engine.start()
    try:
        async with serving(engine) as server, remote_agent(server.url, TOKEN) as client:
            yield AcpHosting(engine, server, client, workspace)
    finally:
        await hosted.aclose()
