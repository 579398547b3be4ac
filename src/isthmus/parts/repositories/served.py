"""The repositories in which the sessions of a server work: ``--repository NAME=git+URL``."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from isthmus.agent.hosted import AgentFailedError
from isthmus.agent.session.session import Session
from isthmus.engine.port.retention import DeleteFiles
from isthmus.engine.port.workspaces import REPOSITORY
from isthmus.journal.port.base import Journal
from isthmus.mcp_host.config.folder_trust import FolderTrust, stated_trust
from isthmus.parts.repositories.agent import FullAgent, KeptWorktree, RepositoryAgent
from isthmus.parts.repositories.pruning import WorktreePruning
from isthmus.worktrees.mirror import FOLDER
from isthmus.worktrees.repositories import Repositories
from isthmus.worktrees.repository_url import RepositoryUrl


class ServedRepositories:
    """Repositories by name, with their mirrors below ``data_dir``. ``environment`` has what git logs in with.

    ``journal_name`` is the name of the journal for operators: worktrees of other journals' sessions are left alone.
    """

    def __init__(
        self,
        data_dir: Path,
        environment: Mapping[str, str],
        by_name: Mapping[str, RepositoryUrl],
        journal_name: str,
    ) -> None:
        self._root = (data_dir / FOLDER).resolve()
        self._by_name = by_name
        self._repositories = Repositories(data_dir, environment)
        self._pruning = WorktreePruning(self._repositories, tuple(by_name.values()), journal_name)

    def __bool__(self) -> bool:
        """Return whether there is a repository."""
        return bool(self._by_name)

    @property
    def workspaces(self) -> tuple[str, ...]:
        """The workspaces of their sessions."""
        return tuple(f"{REPOSITORY}{name}" for name in self._by_name)

    def agent(self, agent: FullAgent, journal: Journal) -> RepositoryAgent:
        """Return an agent that also works in the repositories."""
        empty = self._root / "empty"
        empty.mkdir(mode=0o700, parents=True, exist_ok=True)
        return RepositoryAgent(agent, partial(self.open, journal), self.find_folder, empty)

    def find_folder(self, name: str, context_id: str, user: str) -> Path | None:
        """Return the worktree here of a session in the repository of this name; None if there is none."""
        if (repository := self._by_name.get(name)) is None:
            return None
        folder = self._repositories.folder(repository, self._pruning.owner(user, context_id).session)
        return folder if folder.is_dir() else None

    def is_worktree(self, folder: Path) -> bool:
        """Return whether a folder belongs to a repository, whose content anybody may have written. Blocking."""
        return folder.resolve().is_relative_to(self._root)

    def trust(self, trusts: FolderTrust, home: Path) -> FolderTrust:
        """Return the trust ``trusts``, but worktrees are trusted only by rules for folders of repositories.

        A user who trusts their home folder has not thought of what others write to a repository.
        """

        def trusts_folder(folder: Path) -> bool:
            return stated_trust(home, folder, self._root) is True if self.is_worktree(folder) else trusts(folder)

        return trusts_folder

    def has_commands(self, trusts: FolderTrust) -> FolderTrust:
        """Return whether commands of a folder are offered: a worktree's only if it is trusted."""
        return lambda folder: not self.is_worktree(folder) or trusts(folder)

    def deleting(self, delete_files: DeleteFiles) -> DeleteFiles:
        """Return a function that deletes other files of tasks, and soon the worktrees of sessions without tasks."""

        async def delete(task_ids: Sequence[str]) -> None:
            await delete_files(task_ids)
            self._pruning.look_soon()

        return delete

    @asynccontextmanager
    async def pruned(self, journal: Journal) -> AsyncGenerator[None]:
        """Remove worktrees of deleted sessions in the background."""
        task = asyncio.create_task(self._pruning.run(journal), name="isthmus-worktrees") if self._by_name else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def open(self, journal: Journal, name: str, session: Session) -> AsyncGenerator[KeptWorktree]:
        """Open the worktree of a session in the repository of this name, with its files as they were left.

        Raises:
            AgentFailedError: there is no such repository.
            WorktreeError: it cannot be reached, or git failed.
        """
        if (repository := self._by_name.get(name)) is None:
            known = ", ".join(self._by_name) or "none"
            raise AgentFailedError(f"this server has no repository {name[:100]!r}; it has: {known}")
        owner = self._pruning.owner(session.user, await _main_context(journal, session))
        with self._pruning.in_use(owner.session):
            opened = await self._repositories.open(repository, owner.session, owner)
            yield KeptWorktree(opened.worktree)


async def _main_context(journal: Journal, session: Session) -> str:
    """Return the context id of a session; for a subagent's session, the id of the session which began it."""
    context, subagent = session.context_id, session.subagent
    parent = "" if subagent is None else subagent.parent_task_id
    while parent and (row := await journal.task(parent)) is not None:
        context, parent = row.context_id, row.parent
    return context
