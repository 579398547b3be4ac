"""Hides files from agents: those that .geminiignore or .aiexclude name, and all whose names begin with ``.env``.

Covers only what the companion sends on its own: open files, selections, mentions, diagnostics. It does not keep an
agent from opening a file that it knows of. Both ignore files have gitignore's syntax and count in every folder from a
workspace folder down to the file; the names count for files outside the workspace as well. A link is hidden if it or
its target is; so is an open file that has become a link out of the workspace since it was opened.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isthmus.files.ignore.ignore_file import IgnoreFile, IgnoreScope, read_ignore_file
from isthmus.ide.workspace_files import FileStamp

IGNORE_FILES: Final = (".geminiignore", ".aiexclude")
MAXIMUM_KNOWN = 4096
"""Maximum number of ignore files, existing or not, that are remembered; beyond it all are read again."""
MAXIMUM_AWAITED = 1000
"""Maximum number of files that an agent opened and that the editor has not listed yet."""
LOOK_SECONDS = 0.1
"""Minimum interval in seconds between looks at an ignore file: open files lie in the same folders."""


@dataclass(slots=True)
class _Known:
    """An ignore file as it was read, or None if missing; ``looked_at`` is the time of the last check."""

    stamp: FileStamp | None
    rules: IgnoreFile | None
    looked_at: float


class HiddenFiles:
    """Answers whether paths are hidden; ``folders`` are the absolute workspace folders, and may be set again.

    A changed ignore file counts within :data:`LOOK_SECONDS` of ``clock``; it is read again only when it has changed.
    """

    def __init__(self, folders: Sequence[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self.folders = folders
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._led_to: dict[str, str] = {}
        self._awaited: set[str] = set()

    @property
    def folders(self) -> Sequence[str]:
        """Workspace folders, as they were given."""
        return self._folders

    @folders.setter
    def folders(self, folders: Sequence[str]) -> None:
        self._folders = tuple(folders)
        names = (name for folder in folders for name in (os.path.normpath(folder), os.path.realpath(folder)))
        self._tops = tuple(dict.fromkeys(names))

    def hides(self, path: str) -> bool:
        """Return whether the file with this absolute path must not be sent to agents; it need not exist."""
        path = os.path.normpath(path)
        real = os.path.realpath(path)
        if self._led_to.get(path, real) != real and not any(_is_below(top, real) for top in self._tops):
            return True
        names = {path, real}
        return any(_has_hidden_name(name) or any(self._is_ignored(top, name) for top in self._tops) for name in names)

    def opens(self, path: str, real: str) -> None:
        """Note that the editor is about to open a workspace file for an agent; ``real`` is its current real path."""
        path = os.path.normpath(path)
        self._led_to[path] = real
        if len(self._awaited) < MAXIMUM_AWAITED:
            self._awaited.add(path)

    def opened(self, paths: Iterable[str]) -> None:
        """Note the files open in the editor. One that later leads out of the workspace is hidden while it does.

        Agents write in the workspace: by turning an open file into a link they could learn what is hidden from them.
        """
        known, names = self._led_to, {os.path.normpath(path) for path in paths}
        self._led_to = {path: known.get(path) or os.path.realpath(path) for path in names | self._awaited}
        self._awaited -= names

    def _is_ignored(self, top: str, path: str) -> bool:
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
            end = "" if index == len(parts) - 1 else "/"
            if any(scope.ignores(relative + part + end, part + end) for scope in scopes):
                return True
            relative += part + "/"
        return False

    def _rules(self, path: str) -> IgnoreFile | None:
        now = self._clock()
        known = self._known.get(path)
        if known is not None and now - known.looked_at < LOOK_SECONDS:
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


def _has_hidden_name(path: str) -> bool:
    return _is_hidden_name(os.path.basename(path))  # noqa: PTH119 - often


def _is_hidden_name(name: str) -> bool:
    return name.casefold().startswith(".env")
