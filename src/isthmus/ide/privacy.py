"""Which files agents never hear of: those that .geminiignore or .aiexclude name, and whatever is called ``.env*``.

Only what the companion tells of its own accord: open files, selections, mentions, diagnostics. It does not keep an
agent from opening a file that it knows of. Both ignore files have gitignore's syntax and count in every folder from a
workspace folder down to the file; the names count for files outside the workspace as well. A link is hidden when it or
what it leads to is.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from isthmus.ide.file_stamp import FileStamp
from isthmus.ignore import IgnoreFile, IgnoreScope, read_ignore_file

IGNORE_FILES: Final = (".geminiignore", ".aiexclude")
MAXIMUM_KNOWN = 4096
"""Folders whose ignore files are remembered; over it all are read anew."""


class HiddenFiles:
    """Answers for paths; ``folders`` are the absolute workspace folders, and may be set anew.

    Each answer looks whether the ignore files on the way changed; one is read again only if it did.
    """

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self.folders: tuple[str, ...] = tuple(folders)
        self._known: dict[str, tuple[FileStamp | None, IgnoreFile | None]] = {}

    def hides(self, path: str) -> bool:
        """Whether agents must not hear of the file with this absolute path; it need not exist."""
        path = os.path.normpath(path)
        real = os.path.realpath(path)
        if _has_hidden_name(path) or _has_hidden_name(real):
            return True
        for folder in self.folders:
            if self._is_ignored(os.path.normpath(folder), path):
                return True
            if self._is_ignored(os.path.realpath(folder), real):
                return True
        return False

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
            # What is below an ignored folder cannot be taken back, as in git.
            end = "" if index == len(parts) - 1 else "/"
            if any(scope.ignores(relative + part + end, part + end) for scope in scopes):
                return True
            relative += part + "/"
        return False

    def _rules(self, path: str) -> IgnoreFile | None:
        stamp = FileStamp.of(path)
        known = self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        if len(self._known) >= MAXIMUM_KNOWN:
            self._known.clear()
        rules = None if stamp is None else read_ignore_file(Path(path))
        self._known[path] = (stamp, rules)
        return rules


def _has_hidden_name(path: str) -> bool:
    return _is_hidden_name(os.path.basename(path))  # noqa: PTH119 - often


def _is_hidden_name(name: str) -> bool:
    return name.casefold().startswith(".env")
