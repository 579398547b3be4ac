"""The agent of another author that speaks ACP, as the engine runs one: tasks are its turns, questions are ours.

A turn waits in the memory of this process while it asks; its task waits as rows, as every task does. If the agent's
process ends meanwhile the question is lost: its call fails, and the task with it. Nothing is sent to an agent twice.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from isthmus.acp.host.agent_link import AgentLaunch, LoginRequiredError
from isthmus.acp.host.agent_session import NO_EXTRAS, SessionExtras, TurnRunningError
from isthmus.acp.host.commands import command_tree, prompt_text
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.host.prompt_blocks import context_block, prompt_blocks
from isthmus.acp.host.prompt_turn import PromptTurn
from isthmus.acp.host.usage import StatedUsage
from isthmus.acp.served.files import WorkspaceFiles
from isthmus.acp.served.segment import (
    AGENT_LOST,
    LOST_QUESTION,
    AcpSegment,
    Work,
    login_required,
    open_calls,
)
from isthmus.acp.served.sessions import AcpSessions, OpenedSession, SessionKey
from isthmus.acp.v1.content import ContentBlock, TextBlock
from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.agent.session.interruption import begins_sentence
from isthmus.agent.session.session import Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import AgentSettings, ErrorDetails, SlashCommand, ToolCallStatus
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, AgentMessage, Prompt, StateChange, TaskState, ToolCallUpdate
from isthmus.internal_events import AgentRecord
from isthmus.record import record
from isthmus.session_status import SessionStatus

INTERRUPTED = "{} while this call ran; whether it had an effect is not known."
LOST = (
    "{} in the middle of the agent's work, which was not repeated. Send another message in this conversation to go on."
)
"""Texts that begin with the reason why the work broke off."""

ContextOfEditor: TypeAlias = Callable[[Path], Awaitable[str | None]]
"""Returns what the user's editor shows of a folder, as text for a model."""

log = logging.getLogger(__name__)


@record
class Kept:
    """The agent's session of a conversation, as it is kept in an AgentRecord.

    ``sent`` is the id of the last message that the agent received; ``notes`` are what it must be told with the next.
    ``usage`` is what it has stated last about the session's context and cost.
    """

    agent: str
    session: str = ""
    sent: str = ""
    notes: tuple[str, ...] = ()
    usage: StatedUsage | None = None

    @classmethod
    def of(cls, record: JsonObject | None, agent: str) -> "Kept":
        """Return what a record keeps for an agent; nothing if it is another agent's."""
        value: dict[str, Any] = dict(record or {})
        if value.get("acp") != agent:
            return cls(agent)
        usage = StatedUsage.of_kept(value.get("usage"))
        return cls(agent, value["session"], value["sent"], tuple(value["notes"]), usage)

    @property
    def record(self) -> AgentRecord:
        """The event that keeps it."""
        usage = {} if self.usage is None else {"usage": self.usage.kept}
        about = {"acp": self.agent, "session": self.session, "sent": self.sent, "notes": list(self.notes)}
        return AgentRecord({**about, **usage})


class AcpAgent:
    """Runs the turns of an ACP agent. ``name`` tells its records from other agents' records.

    ``passes_servers``: the MCP servers of its clients are passed on to it; they may be commands. ``editor_context``
    returns what the local user's editor shows, which the agent gets with each prompt.
    """

    def __init__(
        self,
        name: str,
        launch: AgentLaunch,
        limits: HostLimits | None = None,
        *,
        passes_servers: bool = False,
        editor_context: ContextOfEditor | None = None,
    ) -> None:
        self._name = name
        self._editor_context = editor_context
        self._passes_servers = passes_servers
        self._launch = launch
        self._limits = limits or HostLimits()
        self._sessions = AcpSessions(launch, self._limits)
        self._work: dict[str, Work] = {}
        """The turns that work or wait, by task."""
        self._untold: dict[SessionKey, tuple[str, ...]] = {}
        """Notes of turns that were cancelled before the notes were stored."""
        self.suspended = SuspendedCalls(self._limits.answer_seconds, asks_only_here=True)

    async def commands(self, workspace: Path, settings: AgentSettings | None, user: str = "") -> Sequence[SlashCommand]:
        """Return the agent's slash commands, as far as it has named them; it is started if it has not run yet."""
        if not workspace.is_absolute():
            return ()  # the session's folder is not known yet
        return command_tree(await self._sessions.ask_for_commands(user, workspace, self._extras(settings)))

    async def status(self, session: Session) -> SessionStatus:
        """Return how full the context of a session is and what it has cost, as far as the agent states it."""
        usage = Kept.of(session.record, self._name).usage
        live = self._sessions.find((session.user, session.context_id))
        usage = (live.usage if live is not None else None) or usage
        if usage is None:
            return SessionStatus()
        window = usage.size or None
        return SessionStatus(None, usage.used if window is not None else None, window, cost=usage.cost)

    async def advance(self, turn: AgentTurn) -> StateChange:
        """Work on the session's task up to its end or a question, and return that state."""
        session = turn.session
        news: tuple[AgentEvent, ...] = ()
        if session.state is TaskState.SUBMITTED:
            await turn.emit(StateChange(TaskState.WORKING))
            begun = await self._begin(turn)
            if isinstance(begun, StateChange):
                return begun
            work, news = begun
        elif (found := self._work.get(session.task_id)) is not None and not found.turn.is_abandoned:
            work = found
        else:
            return await self._lost(turn)
        keep = partial(self._keep_notes, turn), partial(self._keep_usage, turn)
        segment = AcpSegment(turn, work, self.suspended, *keep)
        try:
            await turn.emit(*news)
            await segment.pass_on_answers()
            end = await segment.follow()
        except BaseException:
            work.end()
            raise
        if end.state is not TaskState.INPUT_REQUIRED:
            work.end()
        return end

    async def aclose(self) -> None:
        """End every process of the agent."""
        await self._sessions.aclose()

    async def _keep_notes(self, turn: AgentTurn, notes: Sequence[str]) -> None:
        kept = Kept.of(turn.session.record, self._name)
        await turn.emit(replace(kept, notes=(*kept.notes, *notes)).record)

    async def _keep_usage(self, turn: AgentTurn, usage: StatedUsage) -> None:
        kept = Kept.of(turn.session.record, self._name)
        if usage != kept.usage:
            await turn.emit(replace(kept, usage=usage).record)

    def _extras(self, settings: AgentSettings | None) -> SessionExtras:
        if settings is None:
            return NO_EXTRAS
        servers = (server for server in settings.mcp_servers if server.is_own) if self._passes_servers else ()
        return SessionExtras(tuple(servers), tuple(map(Path, settings.additional_directories)))

    def _let_go(self, turn: PromptTurn, key: SessionKey) -> None:
        self._work.pop(turn.task_id, None)
        if notes := turn.take_notes():
            self._untold[key] = (*self._untold.get(key, ()), *notes)
        self._sessions.rest(key)

    async def _begin(self, turn: AgentTurn) -> tuple[Work, tuple[AgentEvent, ...]] | StateChange:
        """Send the task's message to the agent, and return what is to be emitted; or the end of the task."""
        session = turn.session
        key, folder = (session.user, session.context_id), Path(session.workspace)
        await self.suspended.discard(session.task_id)
        self._work.pop(session.task_id, None)
        live = self._sessions.find(key)
        if live is not None and live.turn is not None and live.turn.task_id == session.task_id:
            live.abandon(live.turn)
        kept = Kept.of(session.record, self._name)
        kept = replace(kept, notes=(*kept.notes, *self._untold.pop(key, ())))
        try:
            if live is not None:
                live.require_free()
            more = self._extras(session.settings)
            opened = await self._sessions.open(key, folder, kept.session or None, more)
            blocks, sent = self._message(session, opened, kept)
            blocks = (*await self._context_of_editor(session, opened), *blocks)
            await turn.emit(sent.record)
            prompted = opened.session.prompt(session.task_id, blocks)
        except LoginRequiredError as error:
            if session.message is not None:
                await turn.emit(replace(kept, sent=session.message.message_id).record)  # the user sends it again
            return login_required(error, self._launch.agent.login)
        except IsthmusError as error:
            await turn.emit(kept.record)  # the agent still has to be told the notes
            reason = "agent_busy" if isinstance(error, TurnRunningError) else "agent_error"
            return StateChange(TaskState.FAILED, str(error), reason)
        on_end = partial(self._let_go, prompted, key)
        files = WorkspaceFiles(folder, more.folders)
        work = self._work[session.task_id] = Work(opened.session, prompted, files, on_end)
        if not opened.loss:
            return work, ()
        text = (
            f"The agent could not continue its earlier session ({opened.loss}). It has begun a new one, and does"
            " not know what was said before."
        )
        return work, (AgentMessage(f"loss-{opened.session.session_id}", text),)

    def _message(self, session: Session, opened: OpenedSession, kept: Kept) -> tuple[tuple[ContentBlock, ...], Kept]:
        """Return the blocks of the messages that the agent has not received, and what is kept afterwards."""
        kept = replace(kept, session=opened.session.session_id)
        if (command := session.command) is not None:
            text = prompt_text(command.path, command.args, opened.session.commands)
            return (TextBlock(text),), replace(kept, sent=command.message_id)
        prompts = _unsent(session.new_prompts, kept.sent)
        parts = [part for prompt in prompts for part in prompt.content]
        before = "\n\n".join(kept.notes)
        blocks = prompt_blocks(parts, opened.session.capabilities.prompt_capabilities, before)
        return blocks, replace(kept, sent=prompts[-1].message_id if prompts else kept.sent, notes=())

    async def _context_of_editor(self, session: Session, opened: OpenedSession) -> tuple[ContentBlock, ...]:
        """Return a block with what the local user's editor shows; none for commands and other users."""
        if self._editor_context is None or session.user or session.command is not None:
            return ()
        shown = await self._editor_context(Path(session.workspace))
        return (context_block(shown, opened.session.capabilities.prompt_capabilities),) if shown else ()

    async def _lost(self, turn: AgentTurn) -> StateChange:
        """End a task whose turn was in the memory of a process that has ended."""
        reason = begins_sentence(turn.broken_off)
        for call in open_calls(turn.session):
            text = (LOST_QUESTION if call.confirmation_request is not None else INTERRUPTED).format(reason)
            ended = replace(call, status=ToolCallStatus.FAILED, confirmation_request=None, live_content=None)
            await turn.emit(ToolCallUpdate(replace(ended, error=ErrorDetails(text, "interrupted"))))
        return StateChange(TaskState.FAILED, LOST.format(reason), AGENT_LOST)


def _unsent(prompts: Sequence[Prompt], sent: str) -> Sequence[Prompt]:
    ids = [prompt.message_id for prompt in prompts]
    return prompts[ids.index(sent) + 1 :] if sent in ids else prompts
