"""The slash commands of a user's sessions: which there are, their completion, and their execution as tasks."""

import asyncio
import contextlib
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from isthmus.client import (
    CommandMessage,
    CommandScope,
    Execution,
    LimitReached,
    TaskError,
    TaskSnapshot,
    Turn,
    UserLimits,
)
from isthmus.development_tool import (
    AgentSettings,
    CommandExecutionStatus,
    SlashCommand,
    decode_agent_settings,
    merge_agent_settings,
)
from isthmus.encoding.codec import JsonObject, well_formed
from isthmus.engine.followers.snapshots import Snapshots
from isthmus.engine.port.agents import CommandAgent, CompletingAgent, GeneralCommandAgent, PlacingAgent
from isthmus.engine.port.workspaces import KEY, NO_FOLDER
from isthmus.engine.requests.asking import title_of
from isthmus.engine.requests.command_execution import (
    format_command,
    refusal,
    refusal_without_folder,
    resolve_command,
    start_status,
)
from isthmus.engine.requests.repeated_messages import digest_of_command, snapshot_at
from isthmus.engine.runs.runner import Runner
from isthmus.engine.users.session_state import folded_session, session_state
from isthmus.engine.users.task_access import TaskAccess
from isthmus.events import Command, Prompt, StateChange, TaskState
from isthmus.journal.port.base import RepeatedMessage
from isthmus.journal.port.task_rows import NewTask
from isthmus.session_status import SessionStatus
from isthmus.slash_commands.tree import Completion

BEGIN_SECONDS = 2.0
"""Time in seconds after which a command that has not yet printed anything counts as started."""


class UserCommands:
    """The commands of the user of ``access``."""

    def __init__(self, runner: Runner, access: TaskAccess, limits: UserLimits, snapshots: Snapshots) -> None:
        self._runner = runner
        self._journal = runner.journal
        self._access = access
        self._limits = limits
        self._snapshots = snapshots

    async def commands(self, scope: CommandScope) -> Sequence[SlashCommand]:
        """Return the commands that can be executed in a session."""
        context_id, workspace = await self._place(scope, needs_folder=False)
        return await self._tree(context_id, workspace, scope.settings)

    async def complete(self, scope: CommandScope, line: str) -> Sequence[Completion]:
        """Return the completions of a command line, as whole lines."""
        agent = self._runner.agent
        if not isinstance(agent, CompletingAgent):
            return ()
        context_id, workspace = await self._place(scope)
        merged = decode_agent_settings({**(scope.settings or {}), "workspace_path": workspace})
        session = partial(folded_session, self._runner, self._access.user, context_id, workspace, scope.settings)
        return await agent.complete(session, self._folder(workspace, context_id), merged, line, self._access.user)

    async def session_status(self, scope: CommandScope) -> SessionStatus:
        """Return the state of a session."""
        context_id, workspace = await self._place(scope)
        return await session_state(self._runner, self._access.user, context_id, workspace, scope.settings)

    async def execute(self, command: CommandMessage) -> Execution:
        """Execute a command as a task of its own; what prevents that is in the status.

        A message that has been executed before, by whichever process, begins nothing: its task is returned.
        """
        command = well_formed(command)
        try:
            may_have_none = isinstance(self._runner.agent, GeneralCommandAgent)
            context_id, workspace = await self._place(command.scope, needs_folder=not may_have_none)
        except TaskError as error:
            return Execution(CommandExecutionStatus.FAILED_TO_START, str(error))
        tree = await self._tree(context_id, workspace, command.scope.settings)
        command = resolve_command(command, tree)
        if (problem := refusal(command, tree)) is not None:
            return Execution(CommandExecutionStatus.FAILED_TO_START, problem)
        if workspace == NO_FOLDER and self._needs_folder(command.path):
            return Execution(CommandExecutionStatus.FAILED_TO_START, refusal_without_folder(command))
        settings = None if workspace == NO_FOLDER else {**(command.scope.settings or {}), KEY: workspace}
        title = title_of(format_command(command))
        task = NewTask(
            str(uuid.uuid4()),
            context_id or str(uuid.uuid4()),
            workspace,
            title,
            self._access.user,
            command.message_id,
            digest_of_command(command) if command.message_id else "",
        )
        event = Command(
            command.message_id or str(uuid.uuid4()), command.path, command.args, settings, command.extension
        )
        try:
            taken = await self._runner.create(task, [event], self._limits, is_whole_session=context_id is None)
        except LimitReached as error:
            return Execution(CommandExecutionStatus.FAILED_TO_START, str(error))
        except RepeatedMessage as repeated:
            row = await self._access.row(repeated.task_id)
            return await self._begun(snapshot_at(self._snapshots.of(row), TaskState.SUBMITTED, 1, row.created_at))
        return await self._begun(self._snapshots.of(taken.row))

    async def _begun(self, snapshot: TaskSnapshot) -> Execution:
        turn = Turn(snapshot, self._runner.deliver(snapshot.task_id, 0, 1), is_new=True)
        return Execution(await self._first_state(snapshot.task_id), turn=turn)

    async def _place(self, scope: CommandScope, *, needs_folder: bool = True) -> tuple[str | None, str]:
        """Return the session and the workspace of a command; NO_FOLDER where there is none and none is needed."""
        context_id, known = scope.context_id, None
        if scope.task_id is not None:
            row = await self._access.row(scope.task_id, scope.context_id)
            context_id, known = row.context_id, row.workspace or None
        if known is None and context_id is not None:
            known = await self._journal.workspace_of(context_id, self._access.user)
        if not needs_folder and known is None and scope.settings is None and self._access.workspaces.default is None:
            return context_id, NO_FOLDER
        workspace = self._access.workspaces.choose(scope.settings, known, required=False)
        await self._access.check_settings(scope.settings, workspace)
        return context_id, workspace

    async def _tree(
        self, context_id: str | None, workspace: str, settings: JsonObject | None
    ) -> Sequence[SlashCommand]:
        """Return the commands of a session with its AgentSettings, changed by ``settings``."""
        agent = self._runner.agent
        if workspace == NO_FOLDER:
            return agent.general_commands() if isinstance(agent, GeneralCommandAgent) else ()
        if not isinstance(agent, CommandAgent):
            return ()
        merged: AgentSettings | None = None
        events = () if context_id is None else await self._journal.session(context_id, self._access.user)
        for _, delivery in events:
            if isinstance(delivery.event, Prompt | Command) and delivery.event.settings is not None:
                merged = merge_agent_settings(merged, delivery.event.settings)
        merged = merge_agent_settings(merged, {**(settings or {}), "workspace_path": workspace})
        return await agent.commands(self._folder(workspace, context_id), merged, self._access.user)

    def _needs_folder(self, path: Sequence[str]) -> bool:
        agent = self._runner.agent
        return not isinstance(agent, GeneralCommandAgent) or agent.needs_folder(path)

    def _folder(self, workspace: str, context_id: str | None) -> Path:
        agent, folder = self._runner.agent, Path(workspace)
        return agent.place(folder, context_id, self._access.user) if isinstance(agent, PlacingAgent) else folder

    async def _first_state(self, task_id: str) -> CommandExecutionStatus:
        """Return the status of a command's task, which counts as started after :data:`BEGIN_SECONDS`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEGIN_SECONDS):
                async for delivery in self._runner.deliver(task_id, 0, 1):
                    event = delivery.event
                    if isinstance(event, StateChange) and event.state is not TaskState.SUBMITTED:
                        return start_status(event.state, (await self._access.row(task_id)).pending)
        return CommandExecutionStatus.STARTED
