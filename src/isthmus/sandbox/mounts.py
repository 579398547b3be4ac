"""Decides what of the file system a confined program sees, and what it may change. No I/O: it is told what there is.

The system can be read, the workspace and the policy's writable paths changed; home folders, /tmp and /run are empty
but for what is opened in them; secrets are closed wherever they would be seen, unless the policy names them. The
deeper path always wins. Deliberately not here: how bubblewrap is told (:mod:`isthmus.sandbox.bubblewrap`).
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path, PurePath
from typing import Protocol

from isthmus.sandbox import known_paths as known
from isthmus.sandbox.guarded_paths import GUARDED, effect_of
from isthmus.sandbox.policy import OpenPath, SandboxError, SandboxPolicy

_OWN_FOLDERS_OF_VERSION_CONTROL = frozenset({".git", ".hg", ".jj", ".svn"})
_FOLDERS_OF_GUARDED = frozenset(
    path.partition("/")[0] for paths in GUARDED.values() for path in paths if "/" in path.rstrip("/")
)
"""Folders that others act on in part: .github and the like."""


class MountKind(IntEnum):
    """What is done with a path; of two for the same path the higher one counts."""

    EMPTY = 0
    """An empty folder of the sandbox's own; what is written there is gone at its end."""
    READ_ONLY = 1
    WRITABLE = 2
    PROTECTED = 3
    """Read-only, in what is writable."""
    CLOSED = 4
    """A file that cannot be opened, a folder that is empty and stays so."""
    LISTED_READ_ONLY = 5
    LISTED_WRITABLE = 6
    """The policy names it."""
    LINK = 7
    """A symbolic link to what is opened elsewhere."""

    @property
    def hides(self) -> bool:
        """Whether what really lies there cannot be seen."""
        return self in (MountKind.EMPTY, MountKind.CLOSED)


@dataclass(frozen=True, slots=True)
class Mount:
    """What is done with a path, which has no links in it. ``target`` is where a LINK leads."""

    path: Path
    kind: MountKind
    is_folder: bool = True
    target: Path | None = None


class Tree(Protocol):
    """The file system, as far as it is asked."""

    def resolve(self, path: Path) -> Path:
        """Return the path without symbolic links; what does not exist stays as it is."""
        ...

    def is_folder(self, path: Path) -> bool | None:
        """None: there is nothing."""
        ...

    def can_write(self, folder: Path) -> bool:
        """Return whether this process may make files in a folder."""
        ...

    def entries(self, folder: Path) -> Iterable[str]:
        """Return the names of what is in a folder."""
        ...


@dataclass(frozen=True, slots=True)
class PrivatePlaces:
    """The user's home folder, and our own folders, which are closed everywhere."""

    home: Path
    own: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class SandboxView:
    """What a confined program sees: mounts in the order in which they are made, parents first."""

    mounts: tuple[Mount, ...]

    def shows(self, path: Path) -> bool:
        """Return whether what lies at a path, without links, can be seen."""
        return _shows(path, self.mounts)


def _nearest(path: Path, mounts: Iterable[Mount]) -> Mount | None:
    above = {path, *path.parents}
    around = (mount for mount in mounts if mount.path in above)
    return max(around, key=lambda mount: len(mount.path.parts), default=None)


def _shows(path: Path, mounts: Iterable[Mount]) -> bool:
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
) -> SandboxView:
    """What a program that works in `workspace` sees.

    `programs` are the folders that programs are looked for in; `readable` can be read besides, though closed.

    Raises:
        SandboxError: the policy names what is not there, or opens everything.
    """
    workspace = tree.resolve(workspace)
    if workspace == Path("/"):
        raise SandboxError("the workspace is /, which a sandbox cannot confine anything to; work in a folder below it")
    listed = [_listed(path, private.home, workspace, tree) for path in policy.paths]
    view = _Builder(tree)
    home = tree.resolve(private.home)
    for folder in (*known.HOMES, *known.TEMPORARY, known.RUN, str(home)):
        view.add(Path(folder), MountKind.EMPTY)
    for path in (*known.RUN_READABLE, *known.KERNEL_SETTINGS):
        view.add(Path(path), MountKind.READ_ONLY)
    view.add(workspace, MountKind.WRITABLE)
    for path in readable:
        view.add(path, MountKind.LISTED_READ_ONLY)
    for mount in listed:
        view.put(mount)
    for path in (*(home / name for name in known.HOME_TOOLS), *programs):
        if not view.shows(path):  # what can be written stays so
            view.add(path, MountKind.READ_ONLY, within=home)
    _protect(view, workspace, home)
    secrets = (*map(Path, known.SYSTEM_SECRETS), *(home / name for name in known.HOME_SECRETS), *private.own)
    view.drop_what_nobody_listed_in({tree.resolve(path) for path in secrets} - {workspace, *workspace.parents})
    for path in secrets:
        if view.shows(path):
            view.add(path, MountKind.CLOSED)
    view.drop_files_in_writable_folders()
    for wanted, mount in zip(policy.paths, listed, strict=True):
        view.link(_absolute(wanted, private.home, workspace), mount.path)
    return view.view()


def _listed(wanted: OpenPath, home: Path, workspace: Path, tree: Tree) -> Mount:
    named = _absolute(wanted, home, workspace)
    path = tree.resolve(named)
    if not path.is_relative_to(workspace) and Path(os.path.normpath(named)).is_relative_to(workspace):
        # A command may have put a link there.
        raise SandboxError(f"sandbox.paths: {wanted.path} is a link that leads out of the workspace, to {path}")
    is_folder = tree.is_folder(path)
    if is_folder is None:
        raise SandboxError(f"sandbox.paths: {wanted.path} does not exist ({path}); make it, or take it off the list")
    if path == Path("/") and wanted.is_writable:
        raise SandboxError("sandbox.paths: / would open everything; name the folders that are needed")
    return Mount(path, MountKind.LISTED_WRITABLE if wanted.is_writable else MountKind.LISTED_READ_ONLY, is_folder)


def _absolute(wanted: OpenPath, home: Path, workspace: Path) -> Path:
    if wanted.path == "~" or wanted.path.startswith("~/"):
        return home / wanted.path[2:]
    return workspace / wanted.path


def _protect(view: "_Builder", workspace: Path, home: Path) -> None:
    # What is a mount of its own cannot be renamed, and another one with other hooks be put in its place. A file there
    # names another folder, and could be made to name any.
    git = workspace / ".git"
    view.add(git, MountKind.WRITABLE if view.is_usable_folder(git) else MountKind.PROTECTED, within=workspace)
    for name in known.WORKSPACE_RULES:
        path = workspace / name
        must_be = name in known.WORKSPACE_RULE_FOLDERS and view.is_usable_folder(path.parent)
        view.add(path, MountKind.PROTECTED, must_be=must_be, within=workspace)
    if workspace != home:
        for path in _guarded(view, workspace):
            view.add(path, MountKind.PROTECTED, within=workspace)
    for name in known.HOME_STARTUP:
        if view.is_writable(home / name):
            view.add(home / name, MountKind.PROTECTED, within=home)


def _guarded(view: "_Builder", workspace: Path) -> Iterator[Path]:
    """Files and folders in the workspace's own folder that others act on by themselves, and those one level below.

    Deeper ones are not looked for. git and its like write their own folders, of which :func:`_protect` takes care.
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

    def add(self, path: Path, kind: MountKind, *, must_be: bool = False, within: Path | None = None) -> None:
        """Do something with a path, if it is there; what `must_be` is closed when it is not.

        A link that leads to `within` itself or out of it is left alone: what can be written may hold any link, and
        must not open what it leads to.
        """
        path = self._tree.resolve(path)
        if within is not None and within not in path.parents:
            return
        is_folder = self._tree.is_folder(path)
        if is_folder is not None:
            self.put(Mount(path, kind, is_folder))
        elif must_be:
            self.put(Mount(path, MountKind.CLOSED))

    def put(self, mount: Mount) -> None:
        """Add a mount, unless there is a stronger one."""
        before = self._mounts.get(mount.path)
        if before is None or before.kind < mount.kind:
            self._mounts[mount.path] = mount

    def link(self, name: Path, target: Path) -> None:
        """Let a path by which the user knows what was opened lead there, where the sandbox has nothing else."""
        path = self._tree.resolve(name.parent) / name.name
        if path != target and path not in self._mounts and not _shows(path, self._mounts.values()):
            self.put(Mount(path, MountKind.LINK, target=target))

    def entries(self, folder: Path) -> Iterable[str]:
        return self._tree.entries(folder)

    def is_usable_folder(self, path: Path) -> bool:
        return self._tree.is_folder(path) is True and self._tree.can_write(path)

    def shows(self, path: Path) -> bool:
        """Return whether what a path leads to can be seen."""
        return _shows(self._tree.resolve(path), self._mounts.values())

    def is_writable(self, path: Path) -> bool:
        """Return whether the sandbox would let a path be written, on the machine's own disk."""
        nearest = _nearest(path, self._mounts.values())
        return nearest is not None and nearest.kind in (MountKind.WRITABLE, MountKind.LISTED_WRITABLE)

    def drop_what_nobody_listed_in(self, secrets: set[Path]) -> None:
        """A link to what is in a secret folder, under a name that is opened, does not open it."""
        for path, mount in list(self._mounts.items()):
            if mount.kind < MountKind.CLOSED and not secrets.isdisjoint(path.parents):
                del self._mounts[path]

    def drop_files_in_writable_folders(self) -> None:
        """Programs replace files by renaming others over them, which a mount would not let them."""
        for path, mount in list(self._mounts.items()):
            if mount.kind is MountKind.LISTED_WRITABLE and not mount.is_folder and self.is_writable(path.parent):
                del self._mounts[path]

    def view(self) -> SandboxView:
        return SandboxView(tuple(sorted(self._mounts.values(), key=lambda mount: (len(mount.path.parts), mount.path))))
