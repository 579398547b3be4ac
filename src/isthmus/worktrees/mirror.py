"""The mirror of a repository: a bare clone on this machine, brought up to date when a session begins.

Only one process changes a mirror at a time. Git inherits the lock, so that a lock file of git's that is found under the
lock was left by a process that was killed, and is removed.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from isthmus.files.locations import make_private_directory
from isthmus.record import record
from isthmus.text.visible import visible_line
from isthmus.worktrees.errors import GitFailedError, SessionMovedError, WorktreeError
from isthmus.worktrees.git_output import (
    REF_FORMAT,
    KnownCommit,
    is_object_id,
    read_commits,
    read_refused,
    read_remote_refs,
)
from isthmus.worktrees.git_program import LOCAL_SECONDS, NETWORK_SECONDS, Git
from isthmus.worktrees.repository_url import RepositoryUrl
from isthmus.worktrees.work_files import remove_folder

_EXACT_FILES = "* -text -eol -ident -filter -working-tree-encoding -merge\n"
"""Attributes of all files, which win over the repository's: bytes as they are stored, through no program."""
FOLDER = "repositories"
"""Folder of the mirrors and worktrees in the data folder."""
_FETCHED_HEAD = "refs/isthmus/fetched/HEAD"
_REFSPECS = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")


@record
class Mirror:
    """The mirror of ``repository`` below ``folder``, of which everything else there depends on it, too."""

    git: Git
    repository: RepositoryUrl
    folder: Path

    @property
    def path(self) -> Path:
        """Path of the bare repository."""
        return self.folder / "mirror.git"

    @property
    def lock(self) -> Path:
        """Path of the lock for changes of the mirror."""
        return self.folder / "lock"

    async def run(self, *arguments: str, git: Git | None = None, seconds: float = LOCAL_SECONDS) -> str:
        """Run git on the mirror and return its output. Raises as :meth:`Git.text`."""
        where = f"--git-dir={self.path}"
        return await (git or self.git).text(where, *arguments, folder=self.folder, seconds=seconds)

    async def remote_refs(self, *names: str) -> dict[str, str]:
        """Return the objects of these refs in the remote repository, as far as they are there.

        Raises:
            WorktreeError: the repository cannot be reached.
        """
        try:
            listed = await self._remote("ls-remote", "--", self.repository.url, *names)
        except GitFailedError as error:
            raise self._unreachable(error) from error
        return read_remote_refs(listed)

    async def update(self, hidden: Sequence[str]) -> None:
        """Fetch branches, tags and the hidden refs that are there, as :func:`fetched_ref`.

        A mirror that is missing or broken is made anew. The caller holds the lock.

        Raises:
            WorktreeError: the repository cannot be reached.
        """
        if await self._is_sound():
            try:
                await self._fetch(self.path, hidden)
            except GitFailedError as error:
                if await self._is_whole():
                    raise self._unreachable(error) from error
            else:
                return
        await self._make(hidden)

    async def ref(self, name: str) -> str | None:
        """Return the object of a ref of the mirror; None if there is none."""
        try:
            found = await self.run("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        except GitFailedError:
            return None
        return found if is_object_id(found) else None

    async def commits(self, *refs: str) -> dict[str, KnownCommit]:
        """Return the commits of the refs that are there, by ref."""
        return read_commits(await self.run("for-each-ref", f"--format={REF_FORMAT}", *refs))

    async def set_refs(self, values: Mapping[str, str | None], git: Git | None = None) -> None:
        """Set refs of the mirror together, None removes one; also if a killed process left their locks.

        The caller holds the lock of the session.
        """
        for name in values:
            (self.path / f"{name}.lock").unlink(missing_ok=True)
        lines = (f"delete {name}\n" if value is None else f"update {name} {value}\n" for name, value in values.items())
        await (git or self.git).text(
            f"--git-dir={self.path}", "update-ref", "--stdin", folder=self.folder, given="".join(lines).encode()
        )

    async def begin_at(self) -> str:
        """Return the commit of the branch, tag or commit id behind the URL; without one the default branch's.

        Raises:
            WorktreeError: there is none.
        """
        ref = self.repository.ref
        if ref is None:
            names: tuple[str, ...] = (_FETCHED_HEAD,)
        else:
            names = (f"refs/remotes/origin/{ref}", f"refs/tags/{ref}", *((ref,) if is_object_id(ref) else ()))
        for name in names:
            if (found := await self.ref(f"{name}^{{commit}}")) is not None:
                return found
        raise WorktreeError(f"the repository {self.shown} has no branch, tag or commit {ref}; correct what is behind #")

    async def push(self, values: Mapping[str, str], expected: Mapping[str, str | None], git: Git | None = None) -> None:
        """Set refs of the remote repository, all or none, if they still are as expected; an empty value removes one.

        A ref that is not as expected is set, too, if its commit is in the history of the new one: an earlier push came
        through, but not its answer.

        Raises:
            SessionMovedError: another machine, or somebody, has set one of them.
            WorktreeError: the push failed for another reason.
        """
        try:
            await self._push(values, expected, git)
        except GitFailedError as error:
            refused = read_refused(error.text)
            there = await self.remote_refs(*values) if refused else {}
            moved = [name for name in values if refused and there.get(name) != expected[name]]
            if not moved:
                reasons = "; ".join(visible_line(f"{one.ref} {one.reason}") for one in refused)
                raise WorktreeError(f"the push to {self.shown} failed: {reasons or error.output}") from error
            if not all([await self._is_in_history(there.get(name), values[name]) for name in moved]):
                raise self._moved(moved) from error
            try:
                await self._push(values, {name: there.get(name) for name in values}, git)
            except GitFailedError as again:
                raise self._moved(moved) from again

    async def _push(self, values: Mapping[str, str], expected: Mapping[str, str | None], git: Git | None) -> None:
        leases = [f"--force-with-lease={name}:{expected[name] or ''}" for name in values]
        names = [f"{value}:{name}" for name, value in values.items()]
        options = ("--porcelain", "--no-verify", "--quiet", *(("--atomic",) if len(values) > 1 else ()))
        where = f"--git-dir={self.path}"
        await self._remote(where, "push", *options, *leases, "--", self.repository.url, *names, git=git)

    def _moved(self, names: Sequence[str]) -> SessionMovedError:
        return SessionMovedError(
            f"{', '.join(names)} in {self.shown} is no longer what this machine left there: another one has gone on, or"
            " somebody changed it. Nothing was overwritten"
        )

    async def _is_in_history(self, commit: str | None, of: str) -> bool:
        if commit is None or not of:
            return False
        try:
            await self.run("merge-base", "--is-ancestor", commit, of)
        except GitFailedError:
            return False
        return True

    @property
    def shown(self) -> str:
        """The URL for messages."""
        return visible_line(self.repository.url)

    async def _remote(self, *arguments: str, git: Git | None = None) -> str:
        return await (git or self.git).text(*arguments, folder=self.folder, seconds=NETWORK_SECONDS, uses_network=True)

    async def _fetch(self, mirror: Path, hidden: Sequence[str]) -> None:
        # A pattern, so that a ref that is not there yet does not make the fetch fail.
        specs = [*_REFSPECS, *(f"+{name}*:{fetched_ref(name)}*" for name in hidden)]
        if self.repository.ref is None:
            specs.append(f"+HEAD:{_FETCHED_HEAD}")
        options = ("--prune", "--no-tags", "--no-write-fetch-head", "--quiet")
        await self._remote(f"--git-dir={mirror}", "fetch", *options, "--", self.repository.url, *specs)

    async def _is_sound(self) -> bool:
        """Return whether there is a mirror; locks that killed processes left in it are removed."""
        if not (self.path / "HEAD").is_file():
            return False
        await asyncio.to_thread(_remove_stale_locks, self.path)
        try:
            return await self.run("rev-parse", "--is-bare-repository") == "true"
        except GitFailedError:
            return False

    async def _is_whole(self) -> bool:
        """Return whether all objects of the mirror are there, after a fetch failed."""
        try:
            await self.run("fsck", "--connectivity-only", "--no-dangling", "--no-progress")
        except GitFailedError:
            return False
        return True

    async def _make(self, hidden: Sequence[str]) -> None:
        made = self.folder / "mirror.new"
        await asyncio.to_thread(remove_folder, made)
        await self.git.text("init", "--bare", "--quiet", "--template=", str(made), folder=self.folder)
        (made / "info").mkdir(exist_ok=True)
        (made / "info" / "attributes").write_text(_EXACT_FILES, "utf-8")
        url = self.repository.url.replace("\\", "\\\\").replace('"', '\\"')
        with (made / "config").open("a", encoding="utf-8") as config:
            config.write(f'[remote "origin"]\n\turl = "{url}"\n\tfetch = {_REFSPECS[0]}\n[gc]\n\tauto = 0\n')
            config.write("[core]\n\thooksPath = /dev/null\n")
        try:
            await self._fetch(made, hidden)
        except GitFailedError as error:
            raise self._unreachable(error) from error
        await asyncio.to_thread(remove_folder, self.path)
        made.rename(self.path)

    def _unreachable(self, error: GitFailedError) -> WorktreeError:
        if "couldn't find remote ref HEAD" in error.output:
            return WorktreeError(
                f"the repository {self.shown} has no commits, or no default branch: push a first commit, or name a"
                " branch behind #"
            )
        return WorktreeError(
            f"the repository {self.shown} cannot be read: {error.output}. Check the URL, and that git can log in"
            " without asking (a credential helper, or a key of ssh)"
        )


def fetched_ref(name: str) -> str:
    """Return the ref of the mirror that has what was fetched from a hidden ref."""
    return f"refs/isthmus/fetched/{name.removeprefix('refs/isthmus/')}"


def _remove_stale_locks(mirror: Path) -> None:
    for name in ("packed-refs.lock", "config.lock", "HEAD.lock", "shallow.lock"):
        (mirror / name).unlink(missing_ok=True)
    for begin in ("refs/remotes", "refs/tags", "refs/isthmus/fetched"):
        for folder, _, names in os.walk(mirror / begin):
            for name in names:
                if name.endswith(".lock"):
                    (Path(folder) / name).unlink(missing_ok=True)


def repository_folder(data_dir: Path, repository: RepositoryUrl) -> Path:
    """Return the folder of everything that is kept of a repository, and create it with access for this user alone.

    Raises:
        WorktreeError: it cannot be created.
    """
    folder = data_dir / FOLDER / repository.folder_name
    try:
        make_private_directory(folder)
    except OSError as error:
        raise WorktreeError(f"{folder} cannot be created: {error.strerror}") from error
    return folder
