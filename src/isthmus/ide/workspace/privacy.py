"""Hides files from agents: files that .geminiignore or .aiexclude match, and files with names that begin with ``.env``.

Covers only what the companion sends by itself: open files, selections, mentions, diagnostics. An agent can still open a
file by its path. Both ignore files have gitignore's syntax and apply in every folder from the workspace folder down to
the file; the names apply outside the workspace as well. A link is hidden if the link or its target is. An open file is
also hidden if it was replaced, since it was opened, by a link out of the workspace.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isthmus.files.ignore.ignore_file import IgnoreFile, IgnoreScope, read_ignore_file
from isthmus.ide.workspace.workspace_files import FileStamp

IGNORE_FILES: Final = (".geminiignore", ".aiexclude")
MAXIMUM_KNOWN = 4096
"""Maximum number of remembered ignore files, missing ones included; above it, all are read again."""
MAXIMUM_AWAITED = 1000
"""Maximum number of files that agents have opened and the editor has not yet listed."""
RECHECK_SECONDS = 0.1
"""Minimum interval in seconds between checks of an ignore file: open files share folders."""


@dataclass(slots=True)
class _Known:
    """An ignore file as last read; stamp and rules are None if it is missing. ``looked_at`` is the last check."""

    stamp: FileStamp | None
    rules: IgnoreFile | None
    looked_at: float


class HiddenFiles:
    """Files that are hidden from agents. ``folders`` are the absolute workspace folders; they may be replaced.

    A change of an ignore file takes effect within :data:`RECHECK_SECONDS`, measured by ``clock``.
    """

    def __init__(self, folders: Sequence[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self.folders = folders
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._real_paths: dict[str, str] = {}
        self._opening: set[str] = set()

    @property
    def folders(self) -> Sequence[str]:
        """Workspace folders, as passed."""
        return self._folders

    @folders.setter
    def folders(self, folders: Sequence[str]) -> None:
        self._folders = tuple(folders)
        names = (name for folder in folders for name in (os.path.normpath(folder), os.path.realpath(folder)))
        self._tops = tuple(dict.fromkeys(names))

    def hides(self, path: str) -> bool:
        """Return whether an absolute path must not be sent to agents; the file need not exist.

        A path that ends with a slash names a folder, for which ignore files have rules of their own.
        """
        end = "/" if path.endswith("/") else ""
        path = os.path.normpath(path)
        real = os.path.realpath(path)
        if self._real_paths.get(path, real) != real and not any(_is_below(top, real) for top in self._tops):
            return True
        names = {path, real}
        return any(
            has_hidden_name(name) or any(self._is_ignored(top, name, end) for top in self._tops) for name in names
        )

    def opens(self, path: str, real: str) -> None:
        """Record that the editor is about to open a workspace file for an agent; ``real`` is its current real path."""
        path = os.path.normpath(path)
        self._real_paths[path] = real
        if len(self._opening) < MAXIMUM_AWAITED:
            self._opening.add(path)

    def opened(self, paths: Iterable[str]) -> None:
        """Record the files open in the editor. A file that later leads out of the workspace is hidden while it does.

        Agents write in the workspace: by replacing an open file with a link, they could read hidden files.
        """
        known, names = self._real_paths, {os.path.normpath(path) for path in paths}
        self._real_paths = {path: known.get(path) or os.path.realpath(path) for path in names | self._opening}
        self._opening -= names

    def _is_ignored(self, top: str, path: str, path_end: str) -> bool:
        prefix = top.rstrip("/") + "/"
        if not path.startswith(prefix):
            return False
        parts = path[len(prefix) :].split("/")
        if any(_is_hidden_name(part) for part in parts):
            return True
        scopes = [IgnoreScope(name) for name in IGNORE_FILES]
        relative = ""
        for index, part in enumerate(parts):
            folder = prefix + relative
            scopes = [scope.with_file(relative, self._rules(folder + scope.file_name)) for scope in scopes]
            # A file below an ignored folder cannot be re-included, as in git.
            end = path_end if index == len(parts) - 1 else "/"
            if any(scope.ignores(relative + part + end, part + end) for scope in scopes):
                return True
            relative += part + "/"
        return False

    def _rules(self, path: str) -> IgnoreFile | None:
        now = self._clock()
        known = self._known.get(path)
        if known is not None and now - known.looked_at < RECHECK_SECONDS:
            return known.rules
        stamp = FileStamp.of(path)
        if known is None or known.stamp != stamp:
            if len(self._known) >= MAXIMUM_KNOWN:
                self._known.clear()
            known = _Known(stamp, None if stamp is None else read_ignore_file(Path(path)), now)
            self._known[path] = known
        known.looked_at = now
        return known.rules


def _is_below(folder: str, path: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def has_hidden_name(path: str) -> bool:
    """Return whether a file is hidden by its name."""
    return _is_hidden_name(os.path.basename(path))  # noqa: PTH119 - often


def _is_hidden_name(name: str) -> bool:
    return name.casefold().startswith(".env")
