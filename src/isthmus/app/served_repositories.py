"""The repositories in which the sessions of a server work: ``--repository NAME=git+URL``."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from isthmus.agent.hosted import AgentFailedError
from isthmus.agent.session import Session
from isthmus.app.repository_agent import SCHEME, FullAgent, RepositoryAgent, Worktree
from isthmus.journal.base import Journal
from isthmus.record import record
from isthmus.worktrees.errors import SessionMovedError
from isthmus.worktrees.names import session_name
from isthmus.worktrees.repositories import Repositories
from isthmus.worktrees.repository_url import RepositoryUrl
from isthmus.worktrees.session_worktree import SessionWorktree

FOLDER = "repositories"
"""Folder of the mirrors and worktrees in the data folder."""


@record
class ServedRepositories:
    """Repositories by name, with their mirrors below ``data_dir``. ``environment`` has what git logs in with."""

    data_dir: Path
    environment: Mapping[str, str]
    by_name: Mapping[str, RepositoryUrl]

    @property
    def workspaces(self) -> tuple[str, ...]:
        """The workspaces of their sessions."""
        return tuple(f"{SCHEME}{name}" for name in self.by_name)

    def agent(self, agent: FullAgent, journal: Journal) -> RepositoryAgent:
        """Return an agent that also works in the repositories."""
        empty = self.data_dir / FOLDER / "empty"
        empty.mkdir(mode=0o700, parents=True, exist_ok=True)
        return RepositoryAgent(agent, partial(self.open, journal), empty)

    async def open(self, journal: Journal, name: str, session: Session) -> Worktree:
        """Open the worktree of a session in the repository of this name, with its files as they were left.

        Raises:
            AgentFailedError: there is no such repository.
            WorktreeError: it cannot be reached, or git failed.
        """
        if (repository := self.by_name.get(name)) is None:
            known = ", ".join(self.by_name) or "none"
            raise AgentFailedError(f"this server has no repository {name[:100]!r}; it has: {known}")
        key = session_name(session.user, await _main_context(journal, session))
        opened = await Repositories(self.data_dir, self.environment).open(repository, key)
        return _Kept(opened.worktree)


async def _main_context(journal: Journal, session: Session) -> str:
    """Return the context id of a session; for one of a subagent that of the session which began it."""
    context, subagent = session.context_id, session.subagent
    parent = "" if subagent is None else subagent.parent_task_id
    while parent and (row := await journal.task(parent)) is not None:
        context, parent = row.context_id, row.parent
    return context


@record
class _Kept:
    """The worktree of a session as its agent sees it."""

    worktree: SessionWorktree

    @property
    def folder(self) -> Path:
        return self.worktree.folder

    async def keep(self, about: str) -> None:
        try:
            await self.worktree.checkpoint(about)
        except SessionMovedError as error:
            raise AgentFailedError(f"another server has gone on with this session: {error}") from error

    async def result(self, title: str) -> tuple[str, str | None, str] | None:
        found = await self.worktree.result(title)
        return None if found is None else (found.branch, found.patch, found.notice)
