"""Copies a folder for a command that is tried, and finds what the command changed in the copy. Blocks.

What a user is asked about before it is read is not in the copy: files with secrets, and ignored files besides builds.
Links are not followed. Folders of packages are left out; their real ones are mounted read-only in the copy.
"""

import os
import stat
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path

from isthmus.errors import IsthmusError
from isthmus.files.atomic import require_regular
from isthmus.files.git_index import tracked_files
from isthmus.files.nofollow import folder_of, open_file
from isthmus.files.private_files import is_private
from isthmus.record import record
from isthmus.tools.port.workspace import Visibility, Workspace
from isthmus.tools.shell.trials.archive import MAXIMUM_BYTES, digest_of
from isthmus.tools.shell.trials.effect import (
    MAXIMUM_CHANGES,
    MAXIMUM_DEPTH,
    MOUNTED,
    PACKAGES,
    EntryState,
    Kind,
    TriedChange,
)

_CHUNK = 1024 * 1024
_PERMISSIONS = 0o777
_FILE_STAMP = ("mode", "inode", "size", "changed at")


class TrialError(IsthmusError):
    """Reason why a command cannot be tried, or why what it did in the copy does not count."""


@record
class CopyLimits:
    """Greatest copy that is made: bytes and entries, and the seconds that this may take.

    An overlay copies nothing: it has a limit of entries of its own, and one of ``hidden`` entries. Where it works, it
    is used from ``overlay_from`` entries or ``overlay_from_size`` bytes on, since it is quicker.
    """

    size: int = 256 * 1024 * 1024
    entries: int = 20_000
    seconds: float = 5.0
    overlaid_entries: int = 200_000
    hidden: int = 500
    overlay_from: int = 1_000
    overlay_from_size: int = 64 * 1024 * 1024


@record
class FolderCopy:
    """A copy: the states of the originals and of the copied entries, by their paths in the workspace.

    ``tracked`` are the files that git tracks, None if that is not known. ``mounted`` are the paths whose originals are
    mounted: folders of packages, and the repository. If ``is_overlay``, nothing was copied: ``place`` gets what is
    written, and ``hidden`` are the paths that must be closed. ``links`` are the symbolic links.
    """

    root: Path
    place: Path
    tracked: frozenset[str] | None = None
    originals: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    copied: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    mounted: list[str] = field(default_factory=list[str])
    is_overlay: bool = False
    hidden: list[str] = field(default_factory=list[str])
    links: set[str] = field(default_factory=set[str])

    @property
    def size(self) -> int:
        """Size in bytes of the original files."""
        return sum(stamp[2] for stamp in self.originals.values() if len(stamp) == len(_FILE_STAMP))


@record
class FoundChanges:
    """Changes in a copy, the links that it has now, and the old and new contents of changed files by path."""

    changes: tuple[TriedChange, ...]
    links: frozenset[str]
    contents: dict[str, tuple[bytes, bytes]]


def copy_of(workspace: Workspace, place: Path, limits: CopyLimits, *, is_overlay: bool = False) -> FolderCopy:
    """Copy the workspace's own folder to the new folder `place`; only look at it if an overlay shows it.

    Raises:
        TrialError: it is too large.
        OSError: it cannot be read, or the copy cannot be written.
    """
    access = replace(workspace.access, asked=(), asks_ignored=True)
    workspace = Workspace(workspace.root, access=access)
    copy = FolderCopy(workspace.root, place, tracked_files(workspace.root), is_overlay=is_overlay)
    # The history has the contents of tracked files, and every command of git would call those missing here removed.
    is_open = copy.tracked is not None and not any(is_private((path,)) for path in copy.tracked)
    end = time.monotonic() + limits.seconds
    visible = workspace.visibility(workspace.root, git=False, for_contents=True)
    waiting = [(workspace.root, "", visible)]
    if not is_overlay:
        place.mkdir(mode=0o700)
    most = limits.overlaid_entries if is_overlay else limits.entries
    size = 0
    while waiting:
        folder, relative, around = waiting.pop()
        with os.scandir(folder) as found:
            entries = list(found)
        inside = around.inside(folder, relative, frozenset(entry.name for entry in entries))
        for entry in entries:
            path = relative + entry.name
            status = entry.stat(follow_symlinks=False)
            if path == ".git" and is_open:
                _stand_in(copy, entry, status)
            elif _is_hidden(workspace, entry, path, inside):
                copy.hidden.append(path)
            else:
                size += 0 if is_overlay else status.st_size
                if len(copy.originals) >= most or size > limits.size or time.monotonic() > end:
                    raise TrialError("the folder is too large to be copied for a trial")
                _copy_entry(copy, entry, path, status, waiting, inside)
    for path in () if is_overlay else copy.originals:
        copy.copied[path] = _stamp((place / path).lstat())
    return copy


def _stand_in(copy: FolderCopy, entry: os.DirEntry[str], status: os.stat_result) -> None:
    """Make a place in the copy on which the repository is mounted."""
    target = copy.place / entry.name
    if copy.is_overlay:
        if entry.is_symlink():
            copy.hidden.append(entry.name)
            return
    elif stat.S_ISDIR(status.st_mode):
        target.mkdir(mode=0o700)
    elif stat.S_ISREG(status.st_mode):
        target.touch(mode=0o600)
    else:
        return
    copy.mounted.append(entry.name)
    copy.originals[entry.name] = _stamp(status)


def _is_hidden(workspace: Workspace, entry: os.DirEntry[str], path: str, visible: Visibility) -> bool:
    slash = "/" if entry.is_dir(follow_symlinks=False) else ""
    return visible.hides(path + slash, entry.name + slash) or (
        entry.path not in workspace.access.agreed and is_private((entry.path,))
    )


def _copy_entry(
    copy: FolderCopy,
    entry: os.DirEntry[str],
    path: str,
    status: os.stat_result,
    waiting: list[tuple[Path, str, Visibility]],
    visible: Visibility,
) -> None:
    target = copy.place / path
    if entry.is_symlink():
        copy.links.add(path)
    if copy.is_overlay:
        if entry.is_dir(follow_symlinks=False):
            _enter(copy, entry, path, waiting, visible)
        elif not entry.is_symlink() and not stat.S_ISREG(status.st_mode):
            copy.hidden.append(path)
            return
    elif entry.is_symlink():
        target.symlink_to(os.readlink(entry.path))  # noqa: PTH115 - the target as it is written
    elif stat.S_ISDIR(status.st_mode):
        target.mkdir(mode=0o700)
        target.chmod(stat.S_IMODE(status.st_mode) & _PERMISSIONS | 0o700)
        _enter(copy, entry, path, waiting, visible)
    elif stat.S_ISREG(status.st_mode):
        _copy_file(Path(entry.path), target, status)
    else:
        return
    copy.originals[path] = _stamp(status)


def _enter(
    copy: FolderCopy,
    entry: os.DirEntry[str],
    path: str,
    waiting: list[tuple[Path, str, Visibility]],
    visible: Visibility,
) -> None:
    if entry.name in MOUNTED:
        copy.mounted.append(path)
    else:
        waiting.append((Path(entry.path), f"{path}/", visible))


def is_package(folder: Path) -> bool:
    """Return whether a folder has packages: by its name, or because it is a virtual environment."""
    return folder.name in PACKAGES or (folder / "pyvenv.cfg").is_file()


def _copy_file(source: Path, target: Path, status: os.stat_result) -> None:
    reading = open_file(source, os.O_RDONLY | os.O_NONBLOCK)
    try:
        require_regular(os.fstat(reading))
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            left = status.st_size
            while left > 0 and (count := os.sendfile(writing, reading, None, min(left, _CHUNK))):
                left -= count
            os.fchmod(writing, stat.S_IMODE(status.st_mode) & _PERMISSIONS)
            os.utime(writing, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    """Return what changes whenever a file does: no program can set the time of the last change of its entry."""
    if stat.S_ISDIR(status.st_mode):
        return (stat.S_IFDIR, status.st_ino, stat.S_IMODE(status.st_mode))
    return status.st_mode, status.st_ino, status.st_size, status.st_ctime_ns


def _entries(folder: Path, left_out: Sequence[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the entries below a folder with their relative paths and states, outer ones first.

    Raises:
        TrialError: they are nested too deeply.
    """
    waiting = [""]
    while waiting:
        relative = waiting.pop()
        if relative.count("/") > MAXIMUM_DEPTH:
            raise TrialError("it made folders in one another")
        with os.scandir(folder / relative) as found:
            entries = list(found)
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            path = relative + entry.name
            yield path, status
            if stat.S_ISDIR(status.st_mode) and path not in left_out:
                waiting.append(f"{path}/")


def changes_of(copy: FolderCopy) -> FoundChanges:
    """Return what was changed in a copy since it was made, if the original folder is as it was there.

    Raises:
        TrialError: something was changed that is not in the copy, or in the original meanwhile; or too much was.
        OSError: the copy cannot be read.
    """
    changes: list[TriedChange] = []
    contents: dict[str, tuple[bytes, bytes]] = {}
    links = set(copy.links)
    room, old_room = MAXIMUM_BYTES, MAXIMUM_BYTES
    for path, status in _overlaid(copy) if copy.is_overlay else _touched(copy):
        if len(changes) > MAXIMUM_CHANGES:
            raise TrialError("it would change too many files and folders")
        before, old = _original(copy, path, old_room, is_removed=status is None)
        after, new = (None, b"") if status is None else state_in(copy.place, path, room)
        room, old_room = room - len(new), old_room - len(old)
        if after is not None and after.kind is Kind.LINK:
            links.add(path)
        else:
            links.discard(path)
        if not _is_same(before, after):
            changes.append(TriedChange(path, before, after))
            contents[path] = (old, new)
    return FoundChanges(tuple(changes), frozenset(links), contents)


def _touched(copy: FolderCopy) -> Iterator[tuple[str, os.stat_result | None]]:
    """Yield the entries of a copy that may have changed; None for those that are gone."""
    seen: set[str] = set()
    for path, status in _entries(copy.place, copy.mounted):
        seen.add(path)
        if copy.copied.get(path) != _stamp(status):
            yield path, status
    yield from ((path, None) for path in copy.originals if path not in seen)


def _overlaid(copy: FolderCopy) -> Iterator[tuple[str, os.stat_result | None]]:
    """Yield the entries that were written over the originals; None for those that are gone."""
    known = sorted(copy.originals)
    for path, status in _entries(copy.place, copy.mounted):
        below = known[bisect_left(known, f"{path}/") : bisect_left(known, f"{path}0")]  # what follows a slash
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            yield from ((gone, None) for gone in (path, *below))
            continue
        yield path, status
        if below and stat.S_ISDIR(status.st_mode) and _is_opaque(copy.place / path):
            yield from ((gone, None) for gone in below if not os.path.lexists(copy.place / gone))


def _is_opaque(folder: Path) -> bool:
    """Return whether a folder hides the original one of its name."""
    try:
        return os.getxattr(folder, "user.overlay.opaque", follow_symlinks=False) == b"y"
    except OSError:
        return False


def _is_same(before: EntryState | None, after: EntryState | None) -> bool:
    """Return whether a change is none.

    Raises:
        TrialError: the mode of a folder was changed.
    """
    if before is None or after is None:
        return before is after
    if before.kind is after.kind is Kind.FOLDER:
        if after.mode not in (before.mode, before.mode & _PERMISSIONS | 0o700):
            raise TrialError("it would change the mode of a folder")
        return True
    return before == after


def _original(copy: FolderCopy, path: str, most: int, *, is_removed: bool = False) -> tuple[EntryState | None, bytes]:
    """Return the original of a changed entry, and its content, at most ``most`` bytes.

    Raises:
        TrialError: it was changed since it was copied, is not in the copy, or is too large.
    """
    state, content = state_in(copy.root, path, most)
    known = copy.originals.get(path)
    if known is None:
        if state is not None:
            raise TrialError("it would change a file that is closed to commands in a trial")
        return None, b""
    try:
        now = _stamp((copy.root / path).lstat())
    except OSError:
        now = ()
    if now != known:
        raise TrialError("the folder changed while the command was tried")
    if is_removed and state is not None and state.kind is Kind.FOLDER:
        with os.scandir(copy.root / path) as found:
            names = [entry.name for entry in found]
        if path in copy.mounted or any(f"{path}/{name}" not in copy.originals for name in names):
            raise TrialError("it would remove a folder with files that are closed to commands in a trial")
    return state, content


def state_in(root: Path, path: str, most: int) -> tuple[EntryState | None, bytes]:
    """Return the state of an entry below a folder, and the content of a file; None if there is nothing.

    Raises:
        TrialError: a file has more than ``most`` bytes.
        OSError: it cannot be read, or a folder above it is a link.
    """
    try:
        with folder_of(root / path) as (folder, name):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            mode = stat.S_IMODE(status.st_mode)
            if stat.S_ISDIR(status.st_mode):
                return EntryState(Kind.FOLDER, mode), b""
            if stat.S_ISLNK(status.st_mode):
                return EntryState(Kind.LINK, 0, os.readlink(name, dir_fd=folder)), b""
            if not stat.S_ISREG(status.st_mode):
                return EntryState(Kind.OTHER, mode), b""
            if status.st_size > most:
                raise TrialError("it would change too much")
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None, b""
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(most + 1)
    return EntryState(Kind.FILE, mode, digest_of(content), len(content)), content
