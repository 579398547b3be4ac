"""The repositories of a data folder, and the worktrees of sessions in them."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from isthmus.record import record
from isthmus.worktrees.errors import GitFailedError
from isthmus.worktrees.git_environment import EXACT
from isthmus.worktrees.git_program import NETWORK_SECONDS, Git
from isthmus.worktrees.lock import held
from isthmus.worktrees.mirror import Mirror, repository_folder
from isthmus.worktrees.names import result_ref, session_ref
from isthmus.worktrees.repository_url import RepositoryUrl
from isthmus.worktrees.session_worktree import SessionWorktree


@record
class OpenedWorktree:
    """A worktree that a session can work in. ``was_taken_over``: its files are those that another machine left."""

    worktree: SessionWorktree
    was_taken_over: bool


@record
class Repositories:
    """The mirrors and worktrees below ``data_dir``. ``environment`` has the variables with which git logs in."""

    data_dir: Path
    environment: Mapping[str, str]

    async def open(self, repository: RepositoryUrl, session: str) -> OpenedWorktree:
        """Return the worktree of a session, with the files as they were left on whichever machine was the last.

        A new session begins at the ref of the repository. ``session`` is what :func:`names.session_name` returns.

        Raises:
            WorktreeError: the repository cannot be reached, or git failed; the text says what to do.
        """
        mirror = await self._mirror(repository)
        async with held(mirror.lock, NETWORK_SECONDS) as lock:
            mirror = replace(mirror, git=replace(mirror.git, lock=lock))
            await mirror.update((session_ref(session), result_ref(session)))
            taken = await SessionWorktree(mirror, session).begin()
        return OpenedWorktree(await self.at(repository, session), taken)

    async def at(self, repository: RepositoryUrl, session: str) -> SessionWorktree:
        """Return the worktree of a session that was opened before; nothing is fetched.

        Raises:
            WorktreeError: git is missing.
        """
        return SessionWorktree(await self._mirror(repository), session)

    async def remove(self, repository: RepositoryUrl, session: str) -> None:
        """Remove the worktree of a deleted session, and its hidden refs here and in the remote repository.

        Raises:
            WorktreeError: the repository cannot be reached, or git failed.
        """
        mirror = await self._mirror(repository)
        async with held(mirror.lock, NETWORK_SECONDS):
            if mirror.path.is_dir():
                await SessionWorktree(mirror, session).remove()

    async def prune(self, repository: RepositoryUrl, kept: Collection[str]) -> tuple[str, ...]:
        """Remove the worktrees of all sessions of this machine but those to be kept, and return their names.

        What the remote repository has of them stays: another machine may use it.

        Raises:
            WorktreeError: git failed.
        """
        mirror = await self._mirror(repository)
        removed: list[str] = []
        async with held(mirror.lock, NETWORK_SECONDS):
            if not mirror.path.is_dir():
                return ()
            for name in sorted(await asyncio.to_thread(_sessions_of, mirror.folder)):
                if name not in kept:
                    await SessionWorktree(mirror, name).remove(in_remote=False)
                    removed.append(name)
            await mirror.run("worktree", "prune")
        return tuple(removed)

    async def _mirror(self, repository: RepositoryUrl) -> Mirror:
        folder = await asyncio.to_thread(repository_folder, self.data_dir, repository)
        git = await Git.find(self.environment, EXACT, folder)
        # Not the configuration of a repository around the data folder.
        git = replace(git, variables={**git.variables, "GIT_CEILING_DIRECTORIES": str(folder.parent)})
        if repository.uses_ssh:
            with suppress(GitFailedError):  # none is configured
                git = replace(git, ssh=await git.text("config", "--get", "core.sshCommand", folder=folder) or "ssh")
        return Mirror(git, repository, folder)


def _sessions_of(folder: Path) -> set[str]:
    try:
        return {path.name for path in (folder / "worktrees").iterdir() if not path.name.startswith(".")}
    except FileNotFoundError:
        return set()
