"""Finds, reads and writes the files of a workspace for the review after the fact. Blocks.

Links are never followed. Files that ``.gitignore`` names, and copies that editors keep beside a file, are left out. Of
private files, links and very large files only the status is known: they are named when they change, and neither stored
nor shown.
"""

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from isthmus.errors import IsthmusError
from isthmus.files.atomic import FileChangedError, read_regular, remove_if_unchanged, write_if_unchanged
from isthmus.files.ignore.ignore_file import IgnoreScope
from isthmus.files.nofollow import make_folders, open_file
from isthmus.files.private_files import is_private
from isthmus.ide.workspace.privacy import IGNORE_FILES, has_hidden_name
from isthmus.ide.written_changes.file_content import DiskFile, digest_of
from isthmus.record import record
from isthmus.text.visible import printable

MAXIMUM_STORED_BYTES: Final = 8 * 1024 * 1024
"""Maximum size in bytes of a file whose content is stored."""
_SKIPPED: Final = frozenset({".git", ".hg", ".svn", ".jj"})
_COPY: Final = re.compile(r"(.+?)(?:\.~\d+)?~|#(.+)#|\.#(.+)|\.(.+)\.sw[a-p]")
"""Names that Emacs and Vim give to copies of a file, with the name of the file."""
_WHY: Final = {
    "private": "it holds secrets by its name, or is hidden from agents, and is never stored",
    "large": f"it has more than {MAXIMUM_STORED_BYTES // 2**20} MiB, and was not stored",
    "link": "it is a link, which is never followed",
    "full": "the store of earlier contents was full",
    "unread": "it could not be read",
}


class UnwritableError(IsthmusError):
    """An earlier content that cannot be written; nothing was changed, and the text says why."""


class StoppedError(Exception):
    """Raised in a walk that was told to stop."""


@record
class FileStatus:
    """Status of a file by which a change is noticed. ``is_private``: its content must not be read."""

    modified_ns: int
    size: int
    inode: int
    mode: int
    changed_ns: int = 0
    is_private: bool = False

    def is_same(self, other: "FileStatus") -> bool:
        """Return whether both are most likely of the same content and mode."""
        mine = (self.modified_ns, self.size, self.inode, self.mode)
        return mine == (other.modified_ns, other.size, other.inode, other.mode)


def why_unknown(digest: str) -> str:
    """Return why the content with this digest was not stored; empty for one that was."""
    return _WHY.get(digest.partition(":")[0], "")


def walk(
    folders: Sequence[str],
    maximum: int,
    is_stopped: Callable[[], bool] = lambda: False,
    known: Callable[[str], bool | None] = lambda path: None,
) -> "Iterator[tuple[str, FileStatus]]":
    """Yield the files and links of workspace folders with their status, at most ``maximum`` of them.

    ``known`` returns whether the name of a file is known as a private one; None if it is not known yet.

    Raises:
        StoppedError: ``is_stopped`` returned true.
    """
    count = 0
    done: set[str] = set()
    for top in folders:
        if top in done:
            continue
        scopes = (IgnoreScope(".gitignore"), tuple(IgnoreScope(name) for name in IGNORE_FILES))
        waiting = deque([(top, "", scopes, False)])
        while waiting:
            if is_stopped():
                raise StoppedError
            folder, relative, (ignored, hidden), is_hidden = waiting.popleft()
            if folder in done:
                continue
            done.add(folder)
            entries = _entries(folder)
            names = frozenset(entry.name for entry in entries)
            own = Path(folder)
            ignored = ignored.inside(own, relative, names)
            hidden = tuple(scope.inside(own, relative, names) for scope in hidden)
            for entry in entries:
                name, place = entry.name, relative + entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                end = "/" if is_folder else ""
                if name in _SKIPPED or ignored.ignores(place + end, name + end) or not _is_unicode(name):
                    continue
                if not is_folder and _is_copy_of_editor(name, names):
                    continue
                is_secret = (
                    is_hidden or has_hidden_name(name) or any(s.ignores(place + end, name + end) for s in hidden)
                )
                if is_folder:
                    waiting.append((entry.path, place + "/", (ignored, hidden), is_secret))
                    continue
                if count >= maximum:
                    return
                found = _status_of(entry, is_secret, known)
                if found is not None:
                    count += 1
                    yield entry.path, found


def _is_copy_of_editor(name: str, names: Collection[str]) -> bool:
    """Return whether a file is a backup, a lock or unsaved text of another one in its folder, as editors keep them."""
    found = _COPY.fullmatch(name)
    return found is not None and any(original in names for original in found.groups())


def _entries(folder: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def _status_of(entry: "os.DirEntry[str]", is_secret: bool, known: Callable[[str], bool | None]) -> FileStatus | None:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if not is_secret:
        was_private = known(entry.path)
        is_secret = is_private((entry.path,)) if was_private is None else was_private
    return _status(found, is_secret=is_secret)


def _status(found: os.stat_result, *, is_secret: bool) -> FileStatus | None:
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        return None
    mode = found.st_mode if stat.S_ISLNK(found.st_mode) else stat.S_IMODE(found.st_mode)
    return FileStatus(found.st_mtime_ns, found.st_size, found.st_ino, mode, found.st_ctime_ns, is_secret)


def status_of(path: str, *, is_secret: bool) -> FileStatus | None:
    """Return the present status of a file; None if it does not exist. Links are not followed."""
    try:
        return _status(os.lstat(path), is_secret=is_secret)
    except (OSError, ValueError):
        return None


def read(path: str, status: FileStatus, *, may_store: bool = True) -> DiskFile | None:
    """Return a file with its content, or with what stands for it; None if it has gone meanwhile."""
    mark = f"{status.modified_ns}.{status.size}.{status.inode}"
    if stat.S_ISLNK(status.mode):
        try:
            target = os.readlink(path)  # noqa: PTH115 - a text
        except OSError:
            return None
        return DiskFile(None, f"link:{digest_of(os.fsencode(target))}", 0o777)
    if status.is_private:
        return DiskFile(None, f"private:{mark}", status.mode)
    if status.size > MAXIMUM_STORED_BYTES:
        return DiskFile(None, f"large:{mark}", status.mode)
    if not may_store:
        return DiskFile(None, f"full:{mark}", status.mode)
    try:
        data = read_regular(Path(path), MAXIMUM_STORED_BYTES, through_links=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        kind = "large" if error.errno == errno.EFBIG else "unread"
        return DiskFile(None, f"{kind}:{mark}", status.mode)
    return DiskFile(data, digest_of(data), status.mode)


def write(path: str, now: DiskFile | None, content: bytes | None, mode: int | None) -> None:
    """Give a file another content and mode if it is still as ``now``; ``mode`` None removes it.

    Raises:
        UnwritableError: it cannot be written, or has changed meanwhile.
    """
    place, name = Path(path), printable(path)
    expected = None if now is None else now.data
    if now is not None and expected is None:
        raise UnwritableError(f"{name}: its present content is not known, because {why_unknown(now.digest)}")
    try:
        if mode is None:
            if expected is not None:
                remove_if_unchanged(place, expected)
            return
        if content is None:
            raise UnwritableError(f"{name}: its earlier content was not stored")
        if content != expected or now is None:
            make_folders(place.parent)
            write_if_unchanged(place, content, expected, mode=mode, through_links=False)
        elif now.mode != mode:
            descriptor = open_file(place, os.O_RDONLY | os.O_NONBLOCK)
            try:
                os.fchmod(descriptor, mode)
            finally:
                os.close(descriptor)
    except FileChangedError as error:
        raise UnwritableError(f"{name} has changed since it was shown; nothing was written") from error
    except OSError as error:
        raise UnwritableError(f"{name} cannot be written: {error.strerror or error}; it is as it was") from error


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
