"""Lets an agent work in repositories: each session in a worktree of its own, which goes with it to other machines.

The workspace of a session in a repository is ``/git:NAME``, the same on every machine. Here it is given a folder of
this machine; changed files are kept in the repository before the event that says so is stored. Not here: git, see
`isthmus.worktrees`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.agent.hosted import AgentFailedError
from isthmus.agent.session.moved_paths import move_paths
from isthmus.agent.session.session import ReadSession, Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import AgentSettings, SlashCommand
from isthmus.engine.port.agents import CompletingAgent, GeneralCommandAgent, ObservableAgent, SuspendingAgent
from isthmus.engine.port.workspaces import REPOSITORY
from isthmus.errors import IsthmusError
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    ArtifactPart,
    ArtifactUpdate,
    StateChange,
    TaskState,
    ToolCallUpdate,
)
from isthmus.internal_events import WorktreeUsed
from isthmus.session_status import SessionStatus
from isthmus.slash_commands.tree import Completion
from isthmus.worktrees.errors import SessionMovedError

if TYPE_CHECKING:
    from isthmus.worktrees.session_worktree import SessionWorktree

ATTEMPTS = 3
"""Maximum number of attempts to keep the files after a call."""
PAUSE_SECONDS = 2.0
"""Pause in seconds between them."""
_READING = frozenset(
    ("list_directory", "read_file", "read_many_files", "grep_search", "glob", "google_web_search", "write_todos")
)
"""Tools after whose calls no files are kept. Tools for commands in the background are left out: their results tell of
files."""

log = logging.getLogger(__name__)


class KeptWorktree:
    """The worktree of a session, whose files can be kept for other machines."""

    def __init__(self, worktree: "SessionWorktree") -> None:
        self.worktree = worktree
        self._mark: str | None = None
        """Mark of the worktree before its last checkpoint; None before the first."""

    async def keep(self, about: str) -> None:
        """Keep the files so that another machine can go on with them, if they have changed; raises IsthmusError."""
        if await self.worktree.is_unchanged(self._mark):
            return
        mark, self._mark = self.worktree.head_mark(), None
        try:
            await self.worktree.checkpoint(about)
        except SessionMovedError as error:
            raise AgentFailedError(f"another server has gone on with this session: {error}") from error
        self._mark = mark


OpenWorktree = Callable[[str, Session], AbstractAsyncContextManager[KeptWorktree]]
"""Function that opens the worktree of a session in the repository of this name for a time; raises IsthmusError."""


FindFolder = Callable[[str, str, str], Path | None]
"""Function that returns the folder here of a session in the repository of this name; None if it has none (yet).

Its other arguments are the session's context id and user.
"""


class FullAgent(GeneralCommandAgent, ObservableAgent, SuspendingAgent, CompletingAgent, Protocol):
    """An agent with commands, completion, a state and suspended calls, as ours is."""


class RepositoryAgent:
    """``agent``, which also works in the repositories that ``open_worktree`` opens.

    A session without its worktree has the commands and the state of an ``empty`` folder.
    """

    def __init__(self, agent: FullAgent, open_worktree: OpenWorktree, find_folder: FindFolder, empty: Path) -> None:
        self._agent = agent
        self._open_worktree = open_worktree
        self._find_folder = find_folder
        self._empty = empty

    @property
    def suspended(self) -> SuspendedCalls:
        """Calls that are waiting for an answer in the middle of their work."""
        return self._agent.suspended

    def place(self, workspace: Path, context_id: str | None, user: str) -> Path:
        """Return the folder of a user's session here: its worktree, or an empty one if it has none on this machine."""
        named = str(workspace)
        if context_id and named.startswith(REPOSITORY):
            return self._find_folder(named.removeprefix(REPOSITORY), context_id, user) or self._empty
        return self._folder(workspace)

    async def commands(self, workspace: Path, settings: AgentSettings | None, user: str = "") -> Sequence[SlashCommand]:
        """Return the slash commands for a user in a workspace."""
        return await self._agent.commands(self._folder(workspace), settings, user)

    def general_commands(self) -> Sequence[SlashCommand]:
        """Return the slash commands of every folder."""
        return self._agent.general_commands()

    def needs_folder(self, path: Sequence[str]) -> bool:
        """Return whether one of them can only be executed in a folder."""
        return self._agent.needs_folder(path)

    async def complete(
        self, session: ReadSession, workspace: Path, settings: AgentSettings | None, line: str, user: str = ""
    ) -> Sequence[Completion]:
        """Return the completions of a line that a user is typing."""
        return await self._agent.complete(session, self._folder(workspace), settings, line, user)

    async def status(self, session: Session) -> SessionStatus:
        """Return the state of a session."""
        session.workspace = str(self.place(Path(session.workspace), session.context_id, session.user))
        return await self._agent.status(session)

    async def advance(self, turn: AgentTurn) -> StateChange:
        """Work on the session's task in its worktree, if its workspace is a repository."""
        session = turn.session
        named = "" if session.settings is None else session.settings.workspace_path
        if not named.startswith(REPOSITORY):
            return await self._agent.advance(turn)
        async with AsyncExitStack() as stack:
            try:
                kept = await stack.enter_async_context(self._open_worktree(named.removeprefix(REPOSITORY), session))
            except IsthmusError as error:
                raise AgentFailedError(f"the workspace {named} cannot be opened: {error}") from error
            return await self._advance_in(kept, turn)

    async def _advance_in(self, kept: KeptWorktree, turn: AgentTurn) -> StateChange:
        session = turn.session
        folder = str(kept.worktree.folder)
        move_paths(session, session.choices.worktrees, folder)
        session.workspace = folder
        if session.choices.worktrees[-1:] != (folder,):
            await turn.emit(WorktreeUsed(folder))

        async def keep(event: AgentEvent) -> None:
            call = event.tool_call if isinstance(event, ToolCallUpdate) else None
            if call is not None and call.status.is_final and call.tool_name not in _READING:
                # Before the event: whoever goes on after it finds the files as it says.
                await _keep(kept, f"{call.tool_name} {call.tool_call_id}")
            await turn.keep(event)

        end = await self._agent.advance(turn.passing(keep))
        if problem := await _keep(kept, str(end.state)):
            await turn.emit(AgentMessage(f"files of {session.task_id}", problem))
        if end.state is TaskState.COMPLETED:
            await self._show_result(turn, kept.worktree)
        return end

    async def _show_result(self, turn: AgentTurn, worktree: "SessionWorktree") -> None:
        """Emit the branch with the work, and a patch of it, as an artifact."""
        try:
            found = await worktree.result(turn.session.prompt)
        except IsthmusError as error:
            log.warning("the work of task %s has no branch: %s", turn.session.task_id, error)
            await turn.emit(AgentMessage(f"result of {turn.session.task_id}", f"The work has no branch: {error}"))
            return
        if found is not None:
            text = f"The work is on the branch {found.branch}.{f' Note: {found.notice}.' if found.notice else ''}"
            parts = [ArtifactPart(text=text)]
            if found.patch is not None:
                parts.append(ArtifactPart(text=found.patch, media_type="text/x-diff", filename="work.patch"))
            artifact = f"work-{turn.session.task_id}"
            about = "The work of the session"
            await turn.emit(ArtifactUpdate(artifact, tuple(parts), name=found.branch, description=about))

    def _folder(self, workspace: Path) -> Path:
        return self._empty if str(workspace).startswith(REPOSITORY) else workspace


async def _keep(kept: KeptWorktree, about: str) -> str:
    """Keep the files; return why that is impossible, after some attempts, for the user."""
    problem = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            await asyncio.sleep(PAUSE_SECONDS)
        try:
            await kept.keep(about)
        except AgentFailedError:
            raise
        except IsthmusError as error:
            log.warning("the files in %s could not be kept in the repository: %s", kept.worktree.folder, error)
            problem = f"The files could not be kept in the repository; they are on one machine alone: {error}"
        else:
            return ""
    return problem
