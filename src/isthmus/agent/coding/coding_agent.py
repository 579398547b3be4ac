"""The coding agent: its commands, its status, and its work on tasks.

It emits its events through its turn and keeps no state besides the Session, which is a fold of the same events. It can
therefore stop at a question and continue in another process. The loop of the model and its calls is in
:mod:`isthmus.agent.coding.task_work`.
"""

import asyncio
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.agent.approval.restricted_tools import UNREADABLE_SETTINGS
from isthmus.agent.calls.events import failed_calls
from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.agent.coding.model_requests import ModelRequests
from isthmus.agent.coding.status import session_status
from isthmus.agent.coding.task_work import TaskWork
from isthmus.agent.hooks.refusal import RefusedByHookError
from isthmus.agent.memory.memory import Memory
from isthmus.agent.options import AgentOptions
from isthmus.agent.references.reading import complete_references
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.session import ReadSession, Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import AgentSettings, SlashCommand
from isthmus.events import RetryNotice, StateChange, TaskState
from isthmus.models.port.base import (
    ModelError,
)
from isthmus.session_status import SessionStatus
from isthmus.slash_commands.tree import Completion
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import ToolScope, ToolSet

if TYPE_CHECKING:
    from isthmus.agent.commands.runner import CommandRunner

SETTINGS_ATTEMPTS = 25
"""Maximum number of times that work which goes on tries to read settings that cannot be read: for about 10 minutes."""
SETTINGS_WAIT_SECONDS = 30.0
"""Maximum time in seconds between two of these attempts."""


class CodingAgent:
    """Coding agent with a model and tools, run by the engine."""

    def __init__(self, resources: AgentResources, options: AgentOptions) -> None:
        self._resources = resources
        self._options = options
        self._memory = Memory(options.roots)
        self.suspended = SuspendedCalls()
        self._requests = ModelRequests(resources, options, self._memory)

    @cached_property
    def _commands(self) -> "CommandRunner":
        """Runner of commands, created at the first use, since most sessions have no commands."""
        from isthmus.agent.commands.runner import CommandRunner

        return CommandRunner(self._resources, self._memory, self.suspended)

    async def commands(self, workspace: Path, settings: AgentSettings | None, user: str = "") -> Sequence[SlashCommand]:
        """Return the slash commands for a user in a workspace."""
        servers = settings.mcp_servers if settings is not None else ()
        scope = ToolScope(workspace, mcp_servers=servers, user=user)
        return await self._commands.commands(scope, self._resources.home_of(user))

    def general_commands(self) -> Sequence[SlashCommand]:
        """Return the built-in slash commands."""
        return self._commands.general()

    def needs_folder(self, path: Sequence[str]) -> bool:
        """Return whether a built-in command can only be executed in a folder."""
        return self._commands.needs_folder(path)

    async def complete(
        self, session: ReadSession, workspace: Path, settings: AgentSettings | None, line: str, user: str = ""
    ) -> Sequence[Completion]:
        """Return the completions of a line that a user is typing in the session that ``session`` reads."""
        scope = ToolScope(workspace, mcp_servers=settings.mcp_servers if settings is not None else (), user=user)
        if line.startswith("/"):
            return await self._commands.complete(scope, self._resources.home_of(user), line, session)
        return await complete_references(
            line, self._resources.contents, scope, self._options.workspace_of(workspace, user)
        )

    async def status(self, session: Session) -> SessionStatus:
        """Return the mode, the model and its effort in a session, and how full its context is, as far as counted."""
        return await session_status(session, self._resources, self._options)

    async def advance(self, turn: AgentTurn) -> StateChange:
        """Work on the session's task up to its end or a question, and return that state."""
        session, scope = turn.session, _scope(turn.session)
        if session.command is not None and not session.workspace:
            end = await self._commands.run(turn, ToolSet(), None, self._options)
            return end or StateChange(TaskState.FAILED, "The model needs a folder; the session has none.", "no_folder")
        try:
            try:
                tools = await self._tools(turn, scope)
            except ToolFailure as failure:
                if session.state is TaskState.SUBMITTED:
                    await turn.emit(StateChange(TaskState.WORKING))
                message = failure.message_for(session.user)
                await turn.emit(*failed_calls(session, message))
                return StateChange(TaskState.FAILED, message, failure.category)
            if session.command is not None and not session.has_command_prompt:
                end = await self._commands.run(turn, tools, scope, self._options)
                if end is not None:
                    return end
            try:
                work = TaskWork(turn, scope, tools, self._resources, self._options, self._requests, self.suspended)
                return await work.run()
            except ModelError as error:
                return StateChange(TaskState.FAILED, str(error), f"model_{error.kind}")
            except RefusedByHookError as refused:
                return StateChange(TaskState.FAILED, str(refused), refused.reason)
        finally:
            # A call that waits for the user in the middle of its work delays the release.
            await self.suspended.end_segment(scope.task_id, partial(self._resources.tools.release, scope))

    async def _tools(self, turn: AgentTurn, scope: ToolScope) -> ToolSet:
        """Return the tools of a segment. Work that goes on waits for rules that cannot be read: an answer is kept.

        Raises:
            ToolFailure: there are none.
        """
        for attempt in range(1, SETTINGS_ATTEMPTS):
            try:
                return await self._resources.tools.tools(scope)
            except ToolFailure as failure:
                if failure.category != UNREADABLE_SETTINGS or not scope.goes_on:
                    raise
                delay = min(2.0 ** (attempt - 1), SETTINGS_WAIT_SECONDS)
                notice = RetryNotice(attempt, SETTINGS_ATTEMPTS, delay, failure.message_for(turn.session.user))
                await turn.emit(notice)
                await asyncio.sleep(delay)
        return await self._resources.tools.tools(scope)


def _scope(session: Session) -> ToolScope:
    servers = session.settings.mcp_servers if session.settings is not None else ()
    return ToolScope(
        Path(session.workspace),
        session.context_id,
        session.task_id,
        servers,
        session.user,
        goes_on=bool(session.calls.unsettled),
    )
