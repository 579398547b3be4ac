"""The worktree of one session of a mirrored repository: its checkpoints, its result and its removal.

The hidden ref of the session in the remote repository decides who goes on: a checkpoint is pushed only if the ref still
is what this machine left there.
"""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from isthmus.files.atomic import read_regular
from isthmus.record import record
from isthmus.text.units import show_size
from isthmus.worktrees.errors import GitFailedError, SessionMovedError, WorktreeError
from isthmus.worktrees.git_output import CheckpointNote, KnownCommit, is_object_id, read_checkpoint_note
from isthmus.worktrees.git_program import Git
from isthmus.worktrees.lock import held
from isthmus.worktrees.mirror import Mirror, fetched_ref
from isthmus.worktrees.names import BRANCHES, branch_at, result_branch, result_branches, result_ref, session_ref
from isthmus.worktrees.patch import MAXIMUM_PATCH_BYTES, patch_between
from isthmus.worktrees.work_files import WorkFiles, remove_folder

LOCK_SECONDS = 600.0
"""Maximum wait in seconds for another operation on the same session."""

IsDeleted: TypeAlias = Callable[[], Awaitable[bool]]
"""Function that returns whether a session has been deleted; it may raise errors of its own."""


@record
class WorktreeCheckpoint:
    """A kept state of the files. ``is_new`` is False if nothing had changed. ``left_out`` names files not in it."""

    commit: str
    is_new: bool
    left_out: tuple[str, ...] = ()


@record
class SessionResult:
    """The work of a session: a branch in the remote repository, and a patch, None if it is too large.

    ``notice`` says what is missing in it; empty if nothing is.
    """

    branch: str
    commit: str
    patch: str | None
    notice: str = ""


@record
class _Known:
    """The commits of a session that its refs in the mirror name."""

    base: KnownCommit | None
    last: KnownCommit | None
    result: KnownCommit | None
    pushed: str | None
    remote: str | None
    """The last checkpoint that was fetched."""
    remote_result: str | None


@record
class SessionWorktree:
    """The worktree of a session; ``session`` is the name that :func:`names.session_name` returns."""

    mirror: Mirror
    session: str

    @property
    def folder(self) -> Path:
        """Folder in which the session works."""
        return self.mirror.folder / "worktrees" / self.session

    @property
    def branch(self) -> str:
        """Name of the branch that is checked out."""
        return f"{BRANCHES}{self.session}"

    @property
    def _admin(self) -> Path:
        return self.mirror.path / "worktrees" / self.session

    @property
    def _index(self) -> Path:
        return self.mirror.folder / "indexes" / self.session

    @property
    def _lock(self) -> Path:
        return self._index.with_name(f"{self.session}.session")

    @property
    def _pushed(self) -> str:
        return f"refs/isthmus/pushed/{self.session}"

    @property
    def _base(self) -> str:
        return f"refs/isthmus/bases/{self.session}"

    @property
    def _ref(self) -> str:
        return session_ref(self.session)

    @asynccontextmanager
    async def hold(self) -> AsyncGenerator[Git]:
        """Hold the lock of the session, and yield a git that inherits it."""
        self._index.parent.mkdir(mode=0o700, exist_ok=True)
        async with held(self._lock, LOCK_SECONDS) as lock:
            self._files(self.mirror.git).forget_broken_index()
            yield replace(self.mirror.git, lock=lock)

    def _files(self, git: Git) -> WorkFiles:
        return WorkFiles(git, self.mirror.path, self.folder, self._index)

    # --- Begin -------------------------------------------------------------------------------------------------------

    async def begin(self) -> bool:
        """Make or bring up to date the worktree; return whether another machine's files took the place of its own.

        The caller holds the mirror's lock, and has brought the mirror up to date. A new session begins at the commit
        that the repository's URL names.

        Raises:
            WorktreeError: git failed.
        """
        async with self.hold() as git:
            known = await self._refs()
            remote, local, pushed = known.remote, None if known.last is None else known.last.commit, known.pushed
            if known.remote_result is not None:
                await self.mirror.set_refs({result_ref(self.session): known.remote_result})
            if remote is not None and remote not in (local, pushed):
                note = await self._restore(git, remote, remote)
                # So that a machine that had the session before can no longer push to it.
                taken = await self._commit_checkpoint(git, f"{remote}^{{tree}}", note, remote, "Go on elsewhere")
                await self._push(git, taken, remote)
                return True
            if remote is not None:
                if remote != pushed:
                    await self.mirror.set_refs({self._pushed: remote})
            elif pushed is not None:
                await self.mirror.set_refs({self._pushed: None})
            if self._is_attached() and known.base is not None:
                return False
            if local is not None:
                await self._restore(git, local, remote)
                return False
            begin_at = await self.mirror.begin_at()
            await self._attach(git, begin_at)
            await self._checkout(git, begin_at, begin_at)
            await self.mirror.set_refs({self._base: begin_at})
            return False

    async def _restore(self, git: Git, commit: str, pushed: str | None) -> CheckpointNote:
        note = await self._note(git, commit)
        await self._attach(git, note.head)
        await self._checkout(git, commit, note.head)
        await self.mirror.set_refs({self._base: note.base, self._ref: commit, self._pushed: pushed})
        return note

    def _is_attached(self) -> bool:
        try:
            stated = read_regular(self.folder / ".git", 4096, through_links=False)
        except OSError:
            return False
        return stated == f"gitdir: {self._admin}\n".encode() and (self._admin / "HEAD").is_file()

    async def _attach(self, git: Git, head: str) -> None:
        """Let the folder be a worktree of the mirror, on the session's branch at ``head``; its files stay."""
        if self._is_attached():
            (self._admin / "HEAD").write_text(f"ref: refs/heads/{self.branch}\n", "utf-8")
            (self._admin / "index.lock").unlink(missing_ok=True)
            await self.mirror.set_refs({f"refs/heads/{self.branch}": head})
            return
        made = self.mirror.folder / "worktrees" / ".new" / self.session
        await asyncio.to_thread(remove_folder, made)
        await asyncio.to_thread(remove_folder, self._admin)
        (self.mirror.path / f"refs/heads/{self.branch}.lock").unlink(missing_ok=True)
        made.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        options = ("--no-checkout", "--force", "--quiet", "-B", self.branch)
        await self.mirror.run("worktree", "add", *options, str(made), head, git=git)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if (self.folder / ".git").is_dir() and not (self.folder / ".git").is_symlink():
            await asyncio.to_thread(remove_folder, self.folder / ".git")
        (self._admin / "gitdir").write_text(f"{self.folder / '.git'}\n", "utf-8")
        (made / ".git").replace(self.folder / ".git")
        await asyncio.to_thread(remove_folder, made)

    async def _checkout(self, git: Git, commit: str, head: str) -> None:
        """Write the files of a commit, and let the worktree's own index be the one of ``head``."""
        await self._files(git).put_back(commit)
        if commit == head:
            await asyncio.to_thread(shutil.copyfile, self._index, self._admin / "index")
            return
        own = WorkFiles(git, self._admin, self.folder, self._admin / "index")
        await own.run("read-tree", "--reset", head)
        with suppress(GitFailedError):  # files differ from those of the commit
            await own.run("update-index", "-q", "--refresh")

    # --- Checkpoints -------------------------------------------------------------------------------------------------

    async def checkpoint(self, about: str = "") -> WorktreeCheckpoint:
        """Keep all files, except ignored ones, here and in the remote repository.

        Raises:
            SessionMovedError: another machine has gone on with the session.
            WorktreeError: git failed; the next checkpoint has these files, too.
        """
        async with self.hold() as git:
            return await self._checkpoint(git, about)

    def head_mark(self) -> str | None:
        """Return what the worktree's ``HEAD`` and its branch are, without git; None if that cannot be told so."""
        try:
            head = read_regular(self._admin / "HEAD", 4096, through_links=False).decode("ascii").strip()
            if not (ref := head.removeprefix("ref: ")).startswith("refs/heads/") or ref == head or ".." in ref:
                return None  # the agent has checked out something else
            commit = read_regular(self.mirror.path / ref, 4096, through_links=False).decode("ascii").strip()
        except (OSError, ValueError):
            return None
        return f"{ref} {commit}" if is_object_id(commit) else None

    async def is_unchanged(self, mark: str | None) -> bool:
        """Return whether a checkpoint has all files; one command of git at most.

        ``mark`` is what :meth:`head_mark` returned before that checkpoint, which succeeded.

        Raises:
            WorktreeError: git failed.
        """
        if mark is None or self.head_mark() != mark or not self.folder.is_dir():
            return False
        return not await self.has_unkept_changes()

    async def _checkpoint(self, git: Git, about: str) -> WorktreeCheckpoint:
        known, base = await self._begun()
        last = known.last
        head = await self._head(base.commit)
        tree, left_out = await self._files(git).take()
        note = CheckpointNote(base.commit, head)
        before = last or base
        noted = CheckpointNote(base.commit, base.commit) if last is None else read_checkpoint_note(last.message)
        is_new = tree != before.tree or noted is None or noted.head != head
        if not is_new and last is None:
            return WorktreeCheckpoint(base.commit, is_new=False, left_out=left_out)
        commit = await self._commit_checkpoint(git, tree, note, before.commit, about) if is_new else before.commit
        if commit != known.pushed:
            await self._push(git, commit, known.pushed)
        return WorktreeCheckpoint(commit, is_new, left_out)

    async def _commit_checkpoint(self, git: Git, tree: str, note: CheckpointNote, before: str, about: str) -> str:
        commit = await self._files(git).commit(tree, (before, note.head), note.message(about))
        await self.mirror.set_refs({self._ref: commit})
        return commit

    async def _push(self, git: Git, commit: str, expected: str | None) -> None:
        await self.mirror.push({self._ref: commit}, {self._ref: expected}, git)
        await self.mirror.set_refs({self._pushed: commit})

    async def _refs(self) -> _Known:
        here = (self._base, self._ref, result_ref(self.session))
        others = (self._pushed, fetched_ref(self._ref), fetched_ref(result_ref(self.session)))
        found = await self.mirror.commits(*here, *others)
        base, last, result = map(found.get, here)
        pushed, remote, remote_result = (None if (one := found.get(name)) is None else one.commit for name in others)
        return _Known(base, last, result, pushed, remote, remote_result)

    async def _begun(self) -> tuple[_Known, KnownCommit]:
        """Return the commits of the session, and the one at which it began."""
        known = await self._refs()
        if known.base is None or not self.folder.is_dir():
            raise WorktreeError(f"the session {self.session} has no worktree on this machine; open it again")
        return known, known.base

    async def _head(self, base: str) -> str:
        """Return the last commit that was made in the worktree; the first one if its ``HEAD`` is unusable."""
        try:
            arguments = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
            return await self.mirror.git.text(f"--git-dir={self._admin}", *arguments, folder=self.mirror.folder)
        except GitFailedError:
            return base

    async def _tree(self, commit: str) -> str:
        return await self.mirror.run("rev-parse", f"{commit}^{{tree}}")

    async def _note(self, git: Git, commit: str) -> CheckpointNote:
        note = read_checkpoint_note(await self.mirror.run("log", "-1", "--format=%B", commit, git=git))
        for known in () if note is None else (note.base, note.head):
            if await self.mirror.ref(f"{known}^{{commit}}") is None:
                note = None
                break
        if note is None:
            raise WorktreeError(
                f"{self._ref} in {self.mirror.shown} is not a checkpoint of Isthmus: somebody else wrote it; remove it"
                f" there, or start a new session"
            )
        return note

    async def restore(self, commit: str | None = None) -> None:
        """Give the files the content of a checkpoint, by default the last one; ignored files stay.

        Raises:
            WorktreeError: there is no such checkpoint, or git failed.
        """
        async with self.hold() as git:
            known, first = await self._begun()
            base = first.commit
            chosen = commit or (known.last or first).commit
            if await self.mirror.ref(f"{chosen}^{{commit}}") is None:
                raise WorktreeError(f"the session {self.session} has no checkpoint {chosen[:40]}")
            head = base if chosen == base else (await self._note(git, chosen)).head
            await self._attach(git, head)
            await self._checkout(git, chosen, head)

    # --- End ---------------------------------------------------------------------------------------------------------

    async def result(self, title: str, maximum: int = MAXIMUM_PATCH_BYTES) -> SessionResult | None:
        """Put the work on a branch of the remote repository, and return it; None if nothing was changed.

        A session has one branch, which its first ``title`` names, until somebody removes or changes it there.
        ``maximum`` is the maximum size of the patch in bytes.

        Raises:
            SessionMovedError: another machine has gone on, or somebody has changed the branch.
            WorktreeError: git failed.
        """
        async with self.hold() as git:
            kept = await self._checkpoint(git, title)
            known, base = await self._begun()
            last, before = known.last, known.result
            if last is None or last.tree == base.tree:
                return None
            commit = await self._head(base.commit)
            if await self._tree(commit) != last.tree:
                commit = await self._work_commit(git, last.tree, commit, title, before)
            is_new = before is None or commit != before.commit
            there: dict[str, str] = {}
            try:
                there = await self.mirror.remote_refs(result_ref(self.session), result_branches(self.session))
            except WorktreeError:
                if is_new:
                    raise
            held = None if before is None else branch_at(there, before.commit)
            branch = held or result_branch(self.session, title)
            if is_new:
                names = (f"refs/heads/{branch}", result_ref(self.session))
                expected = {name: before.commit if before and name in there else None for name in names}
                await self.mirror.push(dict.fromkeys(names, commit), expected, git)
                await self.mirror.set_refs({result_ref(self.session): commit})
            patch = await patch_between(self.mirror, git, base.commit, commit, maximum)
            notices = [f"left out: {', '.join(kept.left_out)}"] if kept.left_out else []
            if patch is None:
                notices.append(f"the patch is larger than {show_size(maximum)}; the branch has all of it")
            return SessionResult(branch, commit, patch, "; ".join(notices))

    async def _work_commit(self, git: Git, tree: str, head: str, title: str, before: KnownCommit | None) -> str:
        """Return a commit of the files behind the last one of the worktree; the former result if it is that."""
        if before is not None and before.tree == tree and await self.mirror.ref(f"{before.commit}^1") == head:
            return before.commit
        subject = " ".join(title.split())[:72] or "Work of a session of Isthmus"
        return await self._files(git).commit(tree, (head,), f"{subject}\n")

    async def has_unkept_changes(self) -> bool:
        """Return whether there are files, other than ignored ones, that the last checkpoint does not have.

        Raises:
            WorktreeError: git failed.
        """
        if not self.folder.is_dir():
            return False
        async with self.hold() as git:
            return await self._files(git).has_changes()

    async def remove(self, is_deleted: IsDeleted) -> bool:
        """Remove the worktree of a session, and its hidden refs here and in the remote repository, if it is deleted.

        The branch with the result stays, and so do hidden refs that another machine has set meanwhile. The caller holds
        the mirror's lock. ``is_deleted`` is called after the remote refs were read and before anything is removed: a
        session that begins again later changes its refs, so that they are not removed.

        Returns:
            whether the session is deleted.

        Raises:
            WorktreeError: the remote repository or git failed; the files are removed as far as possible, and what is
                left when this is called again.
        """
        async with self.hold() as git:
            names = (self._ref, result_ref(self.session))
            unreachable: WorktreeError | None = None
            found: dict[str, str] = {}
            try:
                found = await self.mirror.remote_refs(*names)
            except WorktreeError as error:
                unreachable = error
            if not await is_deleted():
                return False
            await self._remove_here()
            if unreachable is not None:
                raise unreachable
            there: dict[str, str | None] = {name: found[name] for name in names if name in found}
            if there:
                with suppress(SessionMovedError):
                    await self.mirror.push(dict.fromkeys(there, ""), there, git)
        self._lock.unlink(missing_ok=True)
        return True

    async def _remove_here(self) -> None:
        try:
            await asyncio.to_thread(remove_folder, self.folder)
            await asyncio.to_thread(remove_folder, self._admin)
        except OSError as error:
            raise WorktreeError(f"{self.folder} cannot be removed: {error.strerror}") from error
        if self.mirror.path.is_dir():
            refs = (self._ref, result_ref(self.session))
            own = (*refs, self._pushed, self._base, f"refs/heads/{self.branch}")
            await self.mirror.set_refs(dict.fromkeys((*own, *map(fetched_ref, refs))))
        self._index.unlink(missing_ok=True)
