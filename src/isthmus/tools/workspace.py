"""The workspace of a task: which paths its tools may touch, and which entries they show.

Every path is resolved, symbolic links too, before it is compared; callers resolve again right before they act.
``.geminiignore`` closes what it names; ``.gitignore`` only hides entries from listings and searches. Deliberately not
here: reading and writing.
"""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from isthmus.files.ignore.ignore_file import IgnoreScope, read_ignore_file
from isthmus.tools.failure import ToolFailure

OUTSIDE_WORKSPACE = "outside_workspace"
IGNORED_FILE = "ignored_file"
PROTECTED_PATH = "protected_path"
ENTRIES_BETWEEN_LOOKS = 100
"""Entries of one folder after which a walk asks whether it is to stop: ignore files make some of them dear."""


@dataclass(frozen=True, slots=True)
class Visibility:
    """Which entries inside one folder are shown. None for a kind of rules that does not count.

    `above` is the way from the top of the git repository down to the workspace, empty or with a final slash.
    """

    git: IgnoreScope | None
    gemini: IgnoreScope | None
    above: str = ""

    def hides(self, relative: str, name: str) -> bool:
        """Return whether an entry is ignored; `relative` to the workspace; both strings end in a slash for a folder."""
        if name in (".git", ".git/"):
            return True
        if self.gemini is not None and self.gemini.files and self.gemini.ignores(relative, name):
            return True
        return self.git is not None and bool(self.git.files) and self.git.ignores(self.above + relative, name)

    def inside(self, folder: Path, relative: str, names: frozenset[str]) -> "Visibility":
        """What holds inside `folder`, whose entries are `names`; `relative` ends in a slash unless it is empty."""
        return replace(
            self,
            git=self.git and self.git.inside(folder, self.above + relative, names),
            gemini=self.gemini and self.gemini.inside(folder, relative, names),
        )


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A regular file of the workspace; ``path`` is relative to it, with forward slashes."""

    path: str
    entry: os.DirEntry[str]


class Workspace:
    """The folder that a task works in, and what is closed in it."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def resolve(self, path: str) -> Path:
        """The absolute path, without symbolic links, of `path`, which may be relative to the workspace or not exist.

        Raises:
            ToolFailure: it is outside the workspace, or no path at all.
        """
        try:
            expanded = Path(path).expanduser() if path == "~" or path.startswith("~/") else Path(path)
            resolved = (self.root / expanded).resolve()
            _require_usable(resolved)
        except (OSError, RuntimeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ToolFailure(f"{_shown(path)} is not a usable path: {reason}", "invalid_arguments") from error
        if resolved != self.root and self.root not in resolved.parents:
            received = _shown(str(resolved))
            message = f"{_shown(path)} is outside the workspace: expected a path in {self.root}, received {received}"
            raise ToolFailure(message, OUTSIDE_WORKSPACE)
        return resolved

    def open_path(self, path: str, outputs: Path | None = None) -> Path:
        """Like :meth:`resolve`, for a path whose content is to be read. Files below `outputs` may be read, too.

        Raises:
            ToolFailure: also when a .geminiignore file names it or a folder around it.
        """
        if outputs is not None and (kept := _resolved_in(path, outputs)) is not None:
            return kept
        resolved = self.resolve(path)
        if self._is_closed(resolved):
            message = f"{_shown(path)} is closed to the agent: a .geminiignore file of the workspace names it"
            raise ToolFailure(message, IGNORED_FILE)
        return resolved

    def writable_path(self, path: str) -> Path:
        """Like :meth:`open_path`, for a file that is to be written.

        Raises:
            ToolFailure: also when it lies in a .git folder, where a file can become a command.
        """
        resolved = self.open_path(path)
        if ".git" in (part.lower() for part in resolved.relative_to(self.root).parts):
            message = f"{_shown(path)} belongs to git itself and is not written; use git commands instead"
            raise ToolFailure(message, PROTECTED_PATH)
        return resolved

    def relative(self, path: Path) -> str:
        """Return the absolute `path` as seen from the workspace, with forward slashes; "." for the workspace itself."""
        return path.relative_to(self.root).as_posix()

    def visibility(self, folder: Path, *, git: bool = True, gemini: bool = True) -> Visibility:
        """What is shown around `folder`, a resolved path in the workspace; its own ignore files are not read yet."""
        above, scope = self._git_scope_above() if git else ("", None)
        visible = Visibility(scope, IgnoreScope(".geminiignore") if gemini else None, above)
        current = self.root
        for part in folder.relative_to(self.root).parts:
            visible = visible.inside(current, _with_slash(self.relative(current)), _ignore_names(current))
            current /= part
        return visible

    def walk(
        self,
        folder: Path,
        *,
        git: bool = True,
        gemini: bool = True,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[FoundFile]:
        """Every shown regular file below `folder`, ordered by the names on its path; symbolic links are left out.

        `should_stop` is asked again and again and ends the walk early. Folders that cannot be read are left out.
        """
        waiting: list[tuple[list[os.DirEntry[str]], str, Visibility]] = []
        entered = _enter(folder, _with_slash(self.relative(folder)), self.visibility(folder, git=git, gemini=gemini))
        waiting.append(entered)
        while waiting and not should_stop():
            entries, relative, visible = waiting[-1]
            while entries:
                if len(entries) % ENTRIES_BETWEEN_LOOKS == 0 and should_stop():
                    return
                entry = entries.pop()
                if entry.is_dir(follow_symlinks=False):
                    inner = f"{relative}{entry.name}/"
                    if not visible.hides(inner, f"{entry.name}/"):
                        waiting.append(_enter(Path(entry.path), inner, visible))
                        break
                elif entry.is_file(follow_symlinks=False) and not visible.hides(relative + entry.name, entry.name):
                    yield FoundFile(relative + entry.name, entry)
            else:
                waiting.pop()

    def _is_closed(self, path: Path) -> bool:
        visible = Visibility(None, IgnoreScope(".geminiignore"))
        current, relative = self.root, ""
        parts = path.relative_to(self.root).parts
        for index, part in enumerate(parts):
            visible = visible.inside(current, relative, _ignore_names(current))
            current, relative = current / part, relative + part
            is_folder = index < len(parts) - 1 or current.is_dir()
            slash = "/" if is_folder else ""
            if visible.gemini is not None and visible.gemini.ignores(relative + slash, part + slash):
                return True
            relative += "/"
        return False

    def _git_scope_above(self) -> tuple[str, IgnoreScope]:
        """The way down from the top of the repository around the workspace, and the rules in the folders above."""
        scope = IgnoreScope(".gitignore")
        top = next((folder for folder in (self.root, *self.root.parents) if (folder / ".git").exists()), None)
        if top is None:
            return "", scope
        scope = scope.with_file("", read_ignore_file(top / ".git" / "info" / "exclude"))
        relative, current = "", top
        for part in self.root.relative_to(top).parts:
            scope = scope.with_file(relative, read_ignore_file(current / ".gitignore"))
            current, relative = current / part, f"{relative}{part}/"
        return relative, scope


def _resolved_in(path: str, folder: Path) -> Path | None:
    """Return an absolute path without symbolic links when it leads below a folder."""
    try:
        resolved = Path(path).resolve() if Path(path).is_absolute() else None
        return resolved if resolved is not None and folder.resolve() in resolved.parents else None
    except (OSError, RuntimeError, ValueError):
        return None


def _require_usable(path: Path) -> None:
    """Refuse names that no file can have.

    Raises:
        OSError: the system says so.
    """
    try:
        path.lstat()
    except OSError as error:
        # Others come again, with more to say, when the file is used.
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL):
            raise


def _shown(path: str) -> str:
    text = repr(path)
    return text if len(text) <= 200 else text[:197] + "..."


def _enter(folder: Path, relative: str, around: Visibility) -> tuple[list[os.DirEntry[str]], str, Visibility]:
    """Return the entries of a folder, last first, and what is shown in it."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name, reverse=True)
    except OSError:
        entries = []
    return entries, relative, around.inside(folder, relative, frozenset(entry.name for entry in entries))


def _ignore_names(folder: Path) -> frozenset[str]:
    names = (".git", ".gitignore", ".geminiignore")
    return frozenset(name for name in names if os.path.lexists(folder / name))


def _with_slash(relative: str) -> str:
    return "" if relative == "." else relative + "/"
