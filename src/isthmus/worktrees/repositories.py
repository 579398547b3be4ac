"""The repositories of a data folder, and the worktrees of sessions in them."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from isthmus.record import record
from isthmus.worktrees.errors import GitFailedError
from isthmus.worktrees.git_environment import EXACT
from isthmus.worktrees.git_program import NETWORK_SECONDS, Git
from isthmus.worktrees.lock import held
from isthmus.worktrees.mirror import FOLDER, Mirror, repository_folder
from isthmus.worktrees.names import result_ref, session_ref
from isthmus.worktrees.owners import OwnedWorktree, WorktreeOwner, forget_owner, owned_worktrees, write_owner
from isthmus.worktrees.repository_url import RepositoryUrl
from isthmus.worktrees.session_worktree import IsDeleted, SessionWorktree

OBJECTS_KEPT = "3.days.ago"
"""Time since which an object of the mirror was not needed before it is removed: a checkpoint may be about to use it."""


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

    async def open(self, repository: RepositoryUrl, session: str, owner: WorktreeOwner | None = None) -> OpenedWorktree:
        """Return the worktree of a session, with the files as they were left on whichever machine was the last.

        A new session begins at the ref of the repository. ``session`` is what :func:`names.session_name` returns, and
        ``owner`` is noted, so that the worktree can be removed when its session is deleted.

        Raises:
            WorktreeError: the repository cannot be reached, or git failed; the text says what to do.
        """
        mirror = await self._mirror(repository)
        async with held(mirror.lock, NETWORK_SECONDS) as lock:
            mirror = replace(mirror, git=replace(mirror.git, lock=lock))
            if owner is not None:
                await asyncio.to_thread(write_owner, mirror.folder, owner)
            await mirror.update((session_ref(session), result_ref(session)))
            taken = await SessionWorktree(mirror, session).begin()
        return OpenedWorktree(await self.at(repository, session), taken)

    async def at(self, repository: RepositoryUrl, session: str) -> SessionWorktree:
        """Return the worktree of a session that was opened before; nothing is fetched.

        Raises:
            WorktreeError: git is missing.
        """
        return SessionWorktree(await self._mirror(repository), session)

    async def remove(self, repository: RepositoryUrl, session: str, is_deleted: IsDeleted) -> bool:
        """Remove the worktree of a session with its hidden refs as :meth:`SessionWorktree.remove`, if it is deleted.

        No session of this repository is opened meanwhile. The note of its owner goes last.

        Raises:
            WorktreeError: the repository cannot be reached, or git failed; the files are removed as far as possible.
        """
        mirror = await self._mirror(repository)
        async with held(mirror.lock, NETWORK_SECONDS):
            is_gone = await SessionWorktree(mirror, session).remove(is_deleted)
            if is_gone:
                await asyncio.to_thread(forget_owner, mirror.folder, session)
        return is_gone

    async def owned(self, repository: RepositoryUrl) -> Sequence[OwnedWorktree]:
        """Return the worktrees of this machine whose owner is known, also if only the note of one is left."""
        return await asyncio.to_thread(owned_worktrees, self.data_dir / FOLDER / repository.folder_name)

    async def has_unkept_changes(self, repository: RepositoryUrl, session: str) -> bool:
        """Return whether the worktree of a session has files, other than ignored ones, that no checkpoint has.

        Raises:
            WorktreeError: git failed.
        """
        return await (await self.at(repository, session)).has_unkept_changes()

    def folder(self, repository: RepositoryUrl, session: str) -> Path:
        """Return the folder in which a session works on this machine, whether or not it is there."""
        return self.data_dir / FOLDER / repository.folder_name / "worktrees" / session

    async def drop_objects(self, repository: RepositoryUrl) -> None:
        """Remove objects of the mirror that no session and no branch has needed for :data:`OBJECTS_KEPT`.

        Raises:
            WorktreeError: git failed.
        """
        mirror = await self._mirror(repository)
        async with held(mirror.lock, NETWORK_SECONDS) as lock:
            if mirror.path.is_dir():
                git = replace(mirror.git, lock=lock)
                await mirror.run("prune", f"--expire={OBJECTS_KEPT}", git=git, seconds=NETWORK_SECONDS)

    async def _mirror(self, repository: RepositoryUrl) -> Mirror:
        folder = await asyncio.to_thread(repository_folder, self.data_dir, repository)
        git = await Git.find(self.environment, EXACT, folder)
        # Not the configuration of a repository around the data folder.
        git = replace(git, variables={**git.variables, "GIT_CEILING_DIRECTORIES": str(folder.parent)})
        if repository.uses_ssh:
            with suppress(GitFailedError):  # none is configured
                git = replace(git, ssh=await git.text("config", "--get", "core.sshCommand", folder=folder) or "ssh")
        return Mirror(git, repository, folder)
