"""The workspace of a task: the paths that its tools may access, and the entries that they show.

Every path is resolved, including symbolic links, before it is compared; callers resolve again right before they act.
``.geminiignore`` closes the paths it names; ``.gitignore`` only hides entries from listings and searches.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from isthmus.files.ignore.ignore_file import IgnoreScope, read_ignore_file
from isthmus.files.made_folders import is_made
from isthmus.files.path_rules import PathAccess, PathRule, PathRules, compiled, expand_home, followed
from isthmus.record import record
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.file_index import FileIndex
from isthmus.tools.port.folder_scan import RULE_NAMES
from isthmus.tools.port.kept_indexes import KeptIndex, KeptIndexes

OUTSIDE_WORKSPACE = "outside_workspace"
IGNORED_FILE = "ignored_file"
PROTECTED_PATH = "protected_path"
FORBIDDEN_PATH = "permission_denied"
ENTRIES_BETWEEN_LOOKS = 100
"""Number of entries of one folder after which a walk checks whether to stop; ignore files make some of them slow."""


@record
class Visibility:
    """Rules for showing the entries of one folder; None for a kind of rules that is not used.

    `above` is the path from the top of the git repository to the workspace, empty or with a final slash. `rules` are
    rules on paths, and `root` is the path of the workspace, which their paths begin with. `agreed` are absolute paths
    of folders whose ignored entries are shown, together with entries of made folders; None: no ignored entry is shown.
    """

    git: IgnoreScope | None
    gemini: IgnoreScope | None
    above: str = ""
    root: str = ""
    rules: PathRules | None = None
    agreed: frozenset[str] | None = None

    @property
    def has_rules(self) -> bool:
        """Whether any rule is there, so that more than ``.git`` can be hidden."""
        return self.rules is not None or any(scope is not None and scope.files for scope in (self.git, self.gemini))

    def hides(self, relative: str, name: str) -> bool:
        """Return whether an entry is ignored or ``.git``; both strings as in :meth:`ignores`."""
        return name in (".git", ".git/") or self.ignores(relative, name)

    def ignores(self, relative: str, name: str) -> bool:
        """Return whether an entry is ignored; `relative` to the workspace; both strings end in a slash for a folder."""
        if self.gemini is not None and self.gemini.files and self.gemini.ignores(relative, name):
            return True
        if self.rules is not None and self.rules.hides(f"{self.root}/{relative}", name):
            return True
        if self.git is None or not self.git.files or not self.git.ignores(self.above + relative, name):
            return False
        return self.agreed is None or not self._is_free(Path(self.root, relative), is_folder=name.endswith("/"))

    def _is_free(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether the contents of an ignored entry are shown."""
        folder = path if is_folder else path.parent
        return str(folder) in (self.agreed or ()) or (is_folder and is_made(path))

    def inside(self, folder: Path, relative: str, names: frozenset[str]) -> "Visibility":
        """Return the rules inside `folder`, whose entries are `names`; `relative` is empty or ends in a slash."""
        git = self.git and self.git.inside(folder, self.above + relative, names)
        if self.agreed is not None and relative and git is not None:
            is_entered = git.ignores(self.above + relative, f"{folder.name}/")  # since its contents are shown
            git = None if is_entered or is_made(folder) else git
        return replace(
            self,
            git=git,
            gemini=self.gemini and self.gemini.inside(folder, relative, names),
        )


@record
class FoundFile:
    """A regular file of the workspace; ``path`` is relative to it, with forward slashes, or absolute."""

    path: str
    entry: os.DirEntry[str]


_EVERYTHING = PathAccess()


class Workspace:
    """The folder of a task, the further folders that the user has included, and the closed paths in them.

    Paths in a further folder are absolute wherever others are relative to the workspace. ``indexes`` are the indexes of
    files that it shares with other workspaces; None: it has some of its own.
    """

    def __init__(
        self,
        root: Path,
        others: Iterable[Path] = (),
        access: PathAccess = _EVERYTHING,
        indexes: KeptIndexes | None = None,
    ) -> None:
        self.root = root.resolve()
        self._access = access
        self._indexes = indexes or KeptIndexes()
        self.others = tuple(
            dict.fromkeys(other for folder in others if not (other := folder.resolve()).is_relative_to(self.root))
        )

    @property
    def access(self) -> PathAccess:
        """The rules on its paths."""
        return self._access

    def resolve(self, path: str) -> Path:
        """Return the absolute path of `path` without symbolic links; it may be relative, and need not exist.

        Raises:
            ToolFailure: the path is outside the workspace or invalid.
        """
        try:
            expanded = Path(path).expanduser() if path == "~" or path.startswith("~/") else Path(path)
            resolved = (self.root / expanded).resolve()
            _require_usable(resolved)
        except (OSError, RuntimeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ToolFailure(f"{_quote(path)} is not a usable path: {reason}", "invalid_arguments") from error
        if self._root_of(resolved) is None:
            expected = " or ".join(str(folder) for folder in (self.root, *self.others))
            message = (
                f"{_quote(path)} is outside the workspace: expected a path in {expected}, received"
                f" {_quote(str(resolved))}. The user can include a folder: with --include-directories FOLDER,"
                " context.includeDirectories in the settings, or /directory add FOLDER"
            )
            raise ToolFailure(message, OUTSIDE_WORKSPACE)
        return resolved

    def _root_of(self, resolved: Path) -> Path | None:
        """Return the innermost of the folders in which a resolved path is; None if it is in none."""
        found = [folder for folder in (self.root, *self.others) if resolved.is_relative_to(folder)]
        return max(found, key=lambda folder: len(folder.parts), default=None)

    def _around(self, path: Path) -> "Workspace":
        """Return the workspace whose own folder a resolved path is in: this one, or one for a further folder."""
        root = self._root_of(path)
        return self if root in (None, self.root) else Workspace(root, access=self._access, indexes=self._indexes)

    def open_path(self, path: str, *others: Path) -> Path:
        """Resolve a path in order to read it. The files `others`, and those below such folders, may be read, too.

        Raises:
            ToolFailure: as :meth:`resolve`, or a rule or a .geminiignore file names the path or a folder above it.
        """
        self._require_access(path, self._access.closed)
        for allowed in others:
            if (kept := _resolved_in(path, allowed)) is not None:
                return kept
        resolved = self.resolve(path)
        around = self._around(resolved)
        if around.ignored_entry(resolved, Visibility(None, IgnoreScope(".geminiignore"))) is not None:
            message = f"{_quote(path)} is closed to the agent: a .geminiignore file of the workspace names it"
            raise ToolFailure(message, IGNORED_FILE)
        return resolved

    def writable_path(self, path: str) -> Path:
        """Resolve the path of a file in order to write it.

        Raises:
            ToolFailure: as :meth:`open_path`, or the path is in a .git folder, where a file can become a command.
        """
        self._require_access(path, self._access.fixed)
        resolved = self.open_path(path)
        if ".git" in (part.lower() for part in resolved.relative_to(self._around(resolved).root).parts):
            message = f"{_quote(path)} belongs to git and may not be written; use git commands instead"
            raise ToolFailure(message, PROTECTED_PATH)
        return resolved

    def _require_access(self, path: str, rules: tuple[PathRule, ...]) -> None:
        """Raise ToolFailure if a rule is about a path, or about the file that it leads to through links."""
        if not rules or "\0" in path:
            return
        if (rule := compiled(rules).find_any(followed(self.root / expand_home(path)))) is not None:
            raise ToolFailure(f"{_quote(path)} is closed to the agent: {rule.where} forbids it", FORBIDDEN_PATH)

    def shows(self, path: Path) -> bool:
        """Return whether a search may show the contents of a file, an absolute path without symbolic links."""
        asked = self._access.asked
        return not asked or str(path) in self._access.agreed or compiled(asked).find(str(path)) is None

    def ignored_folder(self, path: Path) -> Path | None:
        """Return the ignored folder that a path without symbolic links is in, or the folder of an ignored file.

        None if no ``.gitignore`` names it, if a program made or fetched it (packages, builds, caches), and for paths
        outside of the workspace and in ``.git``.
        """
        if self._root_of(path) is None:
            return None
        around = self._around(path)
        above, scope = around._git_scope_above()
        root = str(around.root).rstrip("/")
        ignored = around.ignored_entry(path, Visibility(scope, None, above, root))
        if ignored is None or ".git" in path.relative_to(around.root).parts:
            return None
        if any(is_made(folder) for folder in (path, *path.parents) if around.root in folder.parents):
            return None
        return ignored if ignored.is_dir() else ignored.parent

    def ignored_entry(self, path: Path, visible: Visibility) -> Path | None:
        """Return the first ignored entry on the way from the workspace's own folder to a path in it; None without one.

        `visible` are the rules of the workspace's own folder, without its own ignore files.
        """
        current, relative = self.root, ""
        for part in path.relative_to(self.root).parts:
            visible = visible.inside(current, relative, ignore_names(current))
            current, relative = current / part, relative + part
            slash = "/" if current != path or current.is_dir() else ""
            if visible.ignores(relative + slash, part + slash):
                return current
            relative += "/"
        return None

    def relative(self, path: Path) -> str:
        """Return the absolute `path` relative to the workspace, with forward slashes; "." for the workspace itself.

        A path in a further folder stays absolute.
        """
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def relative_in_its_folder(self, path: Path) -> str:
        """Return the path relative to the workspace or further folder that it is in, with a final slash, or empty."""
        return _with_slash(path.relative_to(self._around(path).root).as_posix())

    def visibility(
        self, folder: Path, *, git: bool = True, gemini: bool = True, for_contents: bool = False
    ) -> Visibility:
        """Return the rules above `folder`, a resolved path in the workspace, without its own ignore files.

        `for_contents`: contents of the entries are read. Without `git`, ignored ones are left out then, too, as long as
        a user must be asked about them.
        """
        if (around := self._around(folder)) is not self:
            return around.visibility(folder, git=git, gemini=gemini, for_contents=for_contents)
        is_asked = for_contents and not git and self._access.asks_ignored
        above, scope = self._git_scope_above() if git or is_asked else ("", None)
        hidden = (*self._access.closed, *self._access.unlisted)
        rules = compiled(hidden) if hidden else None
        visible = Visibility(
            *(scope, IgnoreScope(".geminiignore") if gemini else None, above, str(self.root).rstrip("/"), rules),
            self._access.agreed_folders if is_asked else None,
        )
        current = self.root
        for part in folder.relative_to(self.root).parts:
            visible = visible.inside(current, _with_slash(self.relative(current)), ignore_names(current))
            current /= part
        return visible

    def walk(
        self,
        folder: Path,
        *,
        git: bool = True,
        gemini: bool = True,
        for_contents: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[FoundFile]:
        """Yield each shown regular file below `folder`, sorted by the names in its path, without symbolic links.

        The paths of files in a further folder are absolute. `for_contents`: as in :meth:`visibility`.

        `should_stop` is called regularly and ends the walk early. Unreadable folders are left out.
        """
        if (around := self._around(folder)) is not self:
            options = {"git": git, "gemini": gemini, "for_contents": for_contents}
            for file in around.walk(folder, should_stop=should_stop, **options):
                yield replace(file, path=f"{around.root.as_posix()}/{file.path}")
            return
        waiting: list[tuple[list[os.DirEntry[str]], str, Visibility]] = []
        visible = self.visibility(folder, git=git, gemini=gemini, for_contents=for_contents)
        waiting.append(_enter(folder, _with_slash(self.relative(folder)), visible))
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

    def kept_index(self, folder: Path) -> KeptIndex:
        """Return the index of the workspace or further folder that the resolved path `folder` is in.

        It lists what :meth:`walk` yields there by default.
        """
        if (around := self._around(folder)) is not self:
            return around.kept_index(folder)
        key = (str(self.root), self._access.closed, self._access.unlisted)
        return self._indexes.of(key, lambda: FileIndex(self.root, "", partial(self.visibility, self.root)))

    def index_below(self, folder: Path, *, git: bool = True, for_contents: bool = False) -> FileIndex:
        """Return a new index of the resolved path `folder`, with options as of :meth:`walk`."""
        rules = partial(self.visibility, folder, git=git, for_contents=for_contents)
        return FileIndex(folder, self.relative_in_its_folder(folder), rules)

    def _git_scope_above(self) -> tuple[str, IgnoreScope]:
        """Return the path from the top of the repository to the workspace, and the rules of the folders on it."""
        scope = IgnoreScope(".gitignore")
        folders = (self.root, *self.root.parents)
        top = next((folder for folder in folders if os.path.exists(f"{folder}/.git")), None)  # noqa: PTH110 - pathlib is slow
        if top is None:
            return "", scope
        scope = scope.with_file("", read_ignore_file(top / ".git" / "info" / "exclude"))
        relative, current = "", top
        for part in self.root.relative_to(top).parts:
            scope = scope.with_file(relative, read_ignore_file(current / ".gitignore"))
            current, relative = current / part, f"{relative}{part}/"
            if scope.ignores(relative, f"{part}/"):
                return relative, IgnoreScope(".gitignore")  # which is said of everything here, and tells nothing apart
        return relative, scope


def _resolved_in(path: str, allowed: Path) -> Path | None:
    """Return an absolute path without symbolic links if it is a file or below a folder; otherwise None."""
    try:
        resolved = Path(path).resolve() if Path(path).is_absolute() else None
        if resolved is None:
            return None
        kept = allowed.resolve()
        return resolved if kept in resolved.parents or (resolved == kept and kept.is_file()) else None
    except (OSError, RuntimeError, ValueError):
        return None


def _require_usable(path: Path) -> None:
    """Check that a file can have this path.

    Raises:
        OSError: the path is too long, or its symbolic links form a loop.
    """
    try:
        path.lstat()
    except OSError as error:
        # Other errors occur again, with a better message, when the file is used.
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL):
            raise


def _quote(path: str) -> str:
    text = repr(path)
    return text if len(text) <= 200 else text[:197] + "..."


def _enter(folder: Path, relative: str, around: Visibility) -> tuple[list[os.DirEntry[str]], str, Visibility]:
    """Return the entries of a folder, last first, its relative path, and the rules inside it."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name, reverse=True)
    except OSError:
        entries = []
    return entries, relative, around.inside(folder, relative, frozenset(entry.name for entry in entries))


def ignore_names(folder: Path) -> frozenset[str]:
    """Return the names of entries of a folder that change which files are shown."""
    return frozenset(name for name in RULE_NAMES if os.path.lexists(f"{folder}/{name}"))


def _with_slash(relative: str) -> str:
    return "" if relative == "." else relative + "/"
