"""Decides which parts of the file system a confined program sees, and which it may change. Sans-I/O.

The system is readable, the workspace and the policy's writable paths are writable. Home folders, /tmp and /run are
empty except for what is opened in them. Secrets are hidden wherever they would be visible, unless the policy names
them. The deeper path always wins.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import IntEnum
from pathlib import Path, PurePath
from typing import Protocol

from isthmus.record import record
from isthmus.sandbox import known_paths as known
from isthmus.sandbox.guarded_paths import GUARDED, Effect, effect_of, starting_files, starting_files_at_home
from isthmus.sandbox.policy import OpenPath, SandboxError, SandboxPolicy

MAXIMUM_ENTRIES = 10_000
"""Maximum number of entries of the workspace's own folder searched for files that other programs act on."""
_OWN_FOLDERS_OF_VERSION_CONTROL = frozenset({".git", ".hg", ".jj", ".svn"})
_FOLDERS_OF_GUARDED = frozenset(
    path.partition("/")[0] for paths in GUARDED.values() for path in paths if "/" in path.rstrip("/")
)
"""Folders of which other programs use some files: .github and the like."""


class MountKind(IntEnum):
    """Kind of a mount; if two mounts have the same path, the higher kind wins."""

    EMPTY = 0
    """Empty folder of the sandbox's own; it is removed with the sandbox."""
    READ_ONLY = 1
    WRITABLE = 2
    PROTECTED = 3
    """Read-only path within a writable one."""
    CLOSED = 4
    """File that cannot be opened, or folder that is empty and stays empty."""
    LISTED_READ_ONLY = 5
    LISTED_WRITABLE = 6
    """Writable path that the policy names."""
    LINK = 7
    """Symbolic link to a path that is opened elsewhere."""

    @property
    def hides(self) -> bool:
        """Whether the real content of the path cannot be seen."""
        return self in (MountKind.EMPTY, MountKind.CLOSED)


@record
class Mount:
    """A path without symbolic links, and how the sandbox mounts it. ``target`` is the destination of a LINK.

    ``is_missing``: nothing is at the path, so that an empty file or folder has to be made there to mount on.
    ``source`` is what is mounted there, if it is another path.
    """

    path: Path
    kind: MountKind
    is_folder: bool = True
    target: Path | None = None
    is_missing: bool = False
    source: Path | None = None


@record
class WorkspaceCopy:
    """A throw-away copy of a workspace, with paths in it that the program only reads.

    Of ``originals`` it sees the workspace's own, and of ``stand_ins`` other files in their place; None closes a path.
    """

    folder: Path
    originals: tuple[str, ...] = ()
    stand_ins: tuple[tuple[str, Path | None], ...] = ()
    around: tuple[str, ...] = ()
    """Words before the program that mount the copy, if it is an overlay."""


class Tree(Protocol):
    """The queries about the file system that a view needs."""

    def resolve(self, path: Path) -> Path:
        """Return the path without symbolic links; a path that does not exist is returned unchanged."""
        ...

    def is_folder(self, path: Path) -> bool | None:
        """Return whether the path is a folder; None if it does not exist."""
        ...

    def is_link(self, path: Path) -> bool:
        """Return whether the path is a symbolic link."""
        ...

    def is_socket(self, path: Path) -> bool:
        """Return whether the path is a socket, with which another sandbox stands for a missing file."""
        ...

    def can_write(self, folder: Path) -> bool:
        """Return whether this process may create files in a folder."""
        ...

    def entries(self, folder: Path) -> Iterable[str]:
        """Return the names of the entries of a folder."""
        ...


@record
class PrivatePlaces:
    """The user's home folder, and Isthmus's own folders, which are closed everywhere; the first has lock files."""

    home: Path
    own: tuple[Path, ...] = ()


@record
class SandboxView:
    """The file system of a confined program: mounts in the order in which they are made, parents first."""

    mounts: tuple[Mount, ...]

    def shows(self, path: Path) -> bool:
        """Return whether the content of a path without links can be seen."""
        return _shows(path, {mount.path: mount for mount in self.mounts})

    @property
    def missing(self) -> tuple[Mount, ...]:
        """The mounts for which an empty file or folder has to be made."""
        return tuple(mount for mount in self.mounts if mount.is_missing)

    def without(self, paths: Collection[Path]) -> "SandboxView":
        """Return the view without the mounts of some paths."""
        return SandboxView(tuple(mount for mount in self.mounts if mount.path not in paths))


def _nearest(path: Path, mounts: Mapping[Path, Mount]) -> Mount | None:
    return next((mounts[place] for place in (path, *path.parents) if place in mounts), None)


def _shows(path: Path, mounts: Mapping[Path, Mount]) -> bool:
    nearest = _nearest(path, mounts)
    return nearest is None or not nearest.kind.hides


def view_of(
    policy: SandboxPolicy,
    private: PrivatePlaces,
    workspace: Path,
    tree: Tree,
    *,
    programs: Iterable[Path] = (),
    readable: Iterable[Path] = (),
    copy: "WorkspaceCopy | None" = None,
) -> SandboxView:
    """Return the view for a program that works in `workspace`.

    `programs` are the folders in which programs are looked up; `readable` are further readable paths, even if closed.
    With a `copy` the program sees it in place of the workspace, and of other folders the system's alone.

    Raises:
        SandboxError: the policy names a path that does not exist, or opens everything.
    """
    workspace = tree.resolve(workspace)
    if workspace == Path("/"):
        raise SandboxError("the workspace is /, so a sandbox would confine nothing; work in a folder below it")
    listed = [_listed(path, private.home, workspace, tree) for path in policy.paths]
    view = _Builder(tree)
    home = tree.resolve(private.home)
    if copy is None:
        _refuse_links(workspace, home, tree, {_absolute(path, private.home, workspace) for path in policy.paths})
    else:
        view.close_all_but_system()
    for folder in (*known.HOMES, *known.TEMPORARY, known.RUN, str(home)):
        view.add(Path(folder), MountKind.EMPTY)
    for path in (*known.RUN_READABLE, *known.KERNEL_SETTINGS):
        view.add(Path(path), MountKind.READ_ONLY)
    if copy is None:
        view.add(workspace, MountKind.WRITABLE)
    for path in readable:
        view.add(path, MountKind.LISTED_READ_ONLY)
    for mount in listed:
        view.put(mount)
    tools = [home / name for name in known.HOME_TOOLS if copy is None or name not in known.HOME_SETTINGS]
    for path in (*tools, *programs):
        if not view.shows(path):  # a writable path stays writable
            is_free = copy is not None and path not in tools and not _meets(tree.resolve(path), (home, workspace))
            view.add(path, MountKind.READ_ONLY, within=None if is_free else home)
    if copy is None:
        _protect(view, workspace, home)
    secrets = (*map(Path, known.SYSTEM_SECRETS), *(home / name for name in known.HOME_SECRETS), *private.own)
    view.drop_unlisted_mounts_in({tree.resolve(path) for path in secrets} - {workspace, *workspace.parents})
    for path in secrets:
        if view.shows(path):
            view.add(path, MountKind.CLOSED)
    if copy is not None:
        view.put_copy(workspace, copy)
    view.drop_files_in_writable_folders()
    for wanted, mount in zip(policy.paths, listed, strict=True):
        view.link(_absolute(wanted, private.home, workspace), mount.path)
    return view.view()


def _meets(path: Path, folders: Iterable[Path]) -> bool:
    """Return whether a path is in one of some folders, or around it."""
    return any(path.is_relative_to(folder) or folder.is_relative_to(path) for folder in folders)


def _listed(wanted: OpenPath, home: Path, workspace: Path, tree: Tree) -> Mount:
    named = _absolute(wanted, home, workspace)
    path = tree.resolve(named)
    if not path.is_relative_to(workspace) and Path(os.path.normpath(named)).is_relative_to(workspace):
        # A command may have created a link there.
        raise SandboxError(f"sandbox.paths: {wanted.path} is a link that leads out of the workspace, to {path}")
    is_folder = tree.is_folder(path)
    if is_folder is None:
        raise SandboxError(
            f"sandbox.paths: {wanted.path} does not exist ({path}); create it, or remove it from the list"
        )
    if path == Path("/") and wanted.is_writable:
        raise SandboxError("sandbox.paths: / would open everything; name the folders that are needed")
    return Mount(path, MountKind.LISTED_WRITABLE if wanted.is_writable else MountKind.LISTED_READ_ONLY, is_folder)


def _absolute(wanted: OpenPath, home: Path, workspace: Path) -> Path:
    if wanted.path == "~" or wanted.path.startswith("~/"):
        return home / wanted.path[2:]
    return workspace / wanted.path


def _effects(workspace: Path, home: Path) -> Iterable[Effect]:
    """Return the effects that count in a workspace: in a home folder the other files are the user's own tools."""
    return (Effect.AGENT,) if workspace == home else Effect


def _refuse_links(workspace: Path, home: Path, tree: Tree, listed: Collection[Path]) -> None:
    """Raise SandboxError if a file that starts programs is a link, which a command could replace: no mount keeps it."""
    for name, _ in starting_files(_effects(workspace, home)):
        path = workspace / name
        if path not in listed and tree.is_link(path):
            raise SandboxError(
                f"{path} is a symbolic link, and a sandbox cannot keep a command from replacing it by something that "
                f'starts programs. Put its target in its place, or add "{name}" to sandbox.paths to allow that'
            )


def _protect(view: "_Builder", workspace: Path, home: Path) -> None:
    # A mount cannot be renamed, so that a command cannot replace it by a folder with other hooks. A file named .git
    # refers to another folder, and could be changed to refer to any.
    git = workspace / ".git"
    is_repository = view.is_usable_folder(git) and view.exists(git / "HEAD")
    if is_repository:
        view.add(git, MountKind.WRITABLE, within=workspace)
        for name in known.GIT_RULES:
            may_make = name != known.GIT_COMMON_FOLDER
            view.protect(workspace / name, workspace, is_folder=name == known.GIT_HOOKS, may_make=may_make)
    present, can_make = frozenset(view.entries(workspace)), view.is_usable_folder(workspace)
    for name, is_folder in starting_files(_effects(workspace, home)):
        if len(name.parts) == 1 and name.name not in present and len(present) < MAXIMUM_ENTRIES:
            if can_make:  # most of them, so their paths are not looked up one by one
                view.put(Mount(workspace / name, MountKind.PROTECTED, is_folder, is_missing=True))
        elif not (is_repository and name == PurePath(".git")):
            view.protect(workspace / name, workspace, is_folder=is_folder)
    if workspace != home:
        for path in _guarded(view, workspace):
            view.protect(path, workspace, is_folder=False, may_make=False)
    for name, is_folder in starting_files_at_home():
        if view.is_writable(home / name):
            view.protect(home / name, home, is_folder=is_folder)


def _guarded(view: "_Builder", workspace: Path) -> Iterator[Path]:
    """Yield the files and folders that other programs act on, in the workspace's own folder and one level below.

    Deeper ones are not searched for. Repositories (git and others) are handled by :func:`_protect`.
    """
    for name in view.entries(workspace):
        if name.lower() in _OWN_FOLDERS_OF_VERSION_CONTROL:
            continue
        if effect_of(PurePath(name)) is not None:
            yield workspace / name
        elif name in _FOLDERS_OF_GUARDED:
            yield from (
                workspace / name / entry
                for entry in view.entries(workspace / name)
                if effect_of(PurePath(name, entry)) is not None
            )


class _Builder:
    """Collects the mounts of a view."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._mounts: dict[Path, Mount] = {}

    def close_all_but_system(self) -> None:
        """Close the root folders that are neither the system's nor the program's own."""
        root = Path("/")
        own = {*known.HOMES, *known.TEMPORARY, known.RUN}
        for name in self._tree.entries(root):
            if name not in known.SYSTEM and f"/{name}" not in own and not self._tree.is_link(root / name):
                self.add(root / name, MountKind.CLOSED)

    def put_copy(self, workspace: Path, copy: WorkspaceCopy) -> None:
        """Mount a copy in place of the workspace, and in it what is not copied, read-only."""
        for path in [path for path in self._mounts if workspace in (path, *path.parents)]:
            del self._mounts[path]
        self.put(Mount(workspace, MountKind.WRITABLE, source=copy.folder))
        for name in copy.originals:
            path = workspace / name
            is_folder = self._tree.is_folder(path)
            if is_folder is not None and not self._tree.is_link(path):
                self.put(Mount(path, MountKind.PROTECTED, is_folder))
        for name, source in copy.stand_ins:
            path = workspace / name
            is_folder = self._tree.is_folder(path)
            if is_folder is not None and self._tree.resolve(path) == path:
                kind = MountKind.CLOSED if source is None else MountKind.PROTECTED
                self.put(Mount(path, kind, is_folder, source=source))

    def add(self, path: Path, kind: MountKind, *, within: Path | None = None) -> None:
        """Mount a path if it exists.

        A link that leads to `within` itself or out of it is ignored: a writable folder may hold any link, and must
        not open its target.
        """
        path = self._tree.resolve(path)
        if within is not None and within not in path.parents:
            return
        is_folder = self._tree.is_folder(path)
        if is_folder is not None:
            self.put(Mount(path, kind, is_folder))

    def protect(self, path: Path, within: Path, *, is_folder: bool, may_make: bool = True) -> None:
        """Make a path read-only; a missing one as an empty folder or file, if `may_make` and its folder is writable.

        The folders around it are mounted, too: a mount cannot be renamed, but a folder with a mount in it can.
        """
        path = self._tree.resolve(path)
        if within not in path.parents:
            return
        exists = None if self._tree.is_socket(path) else self._tree.is_folder(path)
        if exists is not None:
            self.put(Mount(path, MountKind.PROTECTED, exists))
        elif may_make and self.is_usable_folder(path.parent):
            self.put(Mount(path, MountKind.PROTECTED, is_folder, is_missing=True))
        else:
            return
        for folder in path.parents:
            if folder == within:
                return
            self.put(Mount(folder, MountKind.WRITABLE))

    def put(self, mount: Mount) -> None:
        """Add a mount, unless there is a stronger one at the path."""
        before = self._mounts.get(mount.path)
        if before is None or before.kind < mount.kind:
            self._mounts[mount.path] = mount

    def link(self, name: Path, target: Path) -> None:
        """Link the path by which the user knows an opened one to it, unless the sandbox has something there."""
        path = self._tree.resolve(name.parent) / name.name
        if path != target and path not in self._mounts and not _shows(path, self._mounts):
            self.put(Mount(path, MountKind.LINK, target=target))

    def entries(self, folder: Path) -> Iterable[str]:
        return self._tree.entries(folder)

    def exists(self, path: Path) -> bool:
        return self._tree.is_folder(path) is not None

    def is_usable_folder(self, path: Path) -> bool:
        return self._tree.is_folder(path) is True and self._tree.can_write(path)

    def shows(self, path: Path) -> bool:
        """Return whether the target of a path can be seen."""
        return _shows(self._tree.resolve(path), self._mounts)

    def is_writable(self, path: Path) -> bool:
        """Return whether the sandbox lets a path on the machine's own disk be written."""
        nearest = _nearest(path, self._mounts)
        return nearest is not None and nearest.kind in (MountKind.WRITABLE, MountKind.LISTED_WRITABLE)

    def drop_unlisted_mounts_in(self, secrets: set[Path]) -> None:
        """Remove links to secret folders from opened folders, so that a link does not open a secret."""
        for path, mount in list(self._mounts.items()):
            if mount.kind < MountKind.CLOSED and not secrets.isdisjoint(path.parents):
                del self._mounts[path]

    def drop_files_in_writable_folders(self) -> None:
        """Remove mounts of files in writable folders: programs replace files by renaming, which a mount prevents."""
        for path, mount in list(self._mounts.items()):
            if mount.kind is MountKind.LISTED_WRITABLE and not mount.is_folder and self.is_writable(path.parent):
                del self._mounts[path]

    def view(self) -> SandboxView:
        return SandboxView(tuple(sorted(self._mounts.values(), key=lambda mount: (len(mount.path.parts), mount.path))))
