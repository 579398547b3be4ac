"""Finds and reads the files that instruct the agent: the user's own, and those above, in and below the workspace.

The order is: the user's own files; the folders from the top of the git repository (if any) down to the workspace; its
sub-folders, nearest first, except ignored ones. Files of the project may link to and import files of the project, and
Markdown files of the user's own folder; nothing else. Files that are left out or cut are reported.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isthmus.agent.memory.imports import with_imports
from isthmus.agent.memory.instructions import InstructionFile, Instructions, is_markdown
from isthmus.files.atomic import read_regular
from isthmus.files.path_rules import followed
from isthmus.files.private_files import is_private
from isthmus.files.stamps import Stamp, stamp_of
from isthmus.settings.extensions import ENABLEMENT, find_extensions
from isthmus.text.text_file import BinaryContentError, decode_text
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.workspace import Visibility, Workspace

MAXIMUM_FOLDERS = 200
"""Maximum number of sub-folders that are searched, nearest first; as in Gemini CLI."""
MAXIMUM_FILES = 100
MAXIMUM_FILE_BYTES = 1024 * 1024
"""Maximum size of a file in bytes; a larger one is left out."""
MAXIMUM_TOTAL_CHARACTERS = 256 * 1024
"""Maximum number of characters of all files together, with their imports."""

MAXIMUM_LOOKUPS = 1_000
"""Maximum number of paths after an ``@`` that are looked up on the disk, in all files together."""
MAXIMUM_PROBLEMS = 50
MAXIMUM_PROBLEM_CHARACTERS = 2_000

OTHER_OWN_FILES = {".claude/CLAUDE.md": "CLAUDE.md"}
"""The user's own instructions for other agents, from the home folder, by the name whose files they belong to."""
_GENERATED_FOLDERS = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__"})
"""Folders that are never searched, since their content is downloaded or generated."""
_IGNORE_FILES = (".gitignore", ".geminiignore")


def read_instructions(
    workspace: Path, names: Sequence[str], home: Path | None, bounds: Sequence[Path] = ()
) -> tuple[Instructions, tuple[tuple[Path, Stamp], ...]]:
    """Return the instructions for a workspace, and the state of every path on which they depend, before it was read.

    With ``bounds``, only files in these folders are read, even if the repository is larger.
    """
    reader = _Reader(workspace.resolve(), home, tuple(bound.resolve() for bound in bounds))
    usable = [name for name in names if name and name not in (".", "..") and Path(name).name == name]
    for name in names:
        if name not in usable:
            reader.problems.append(f"{name!r} is not a name for files of instructions: expected one without folders")
    reader.read_all(usable)
    instructions = Instructions(tuple(reader.files), _limit(tuple(dict.fromkeys(reader.problems))))
    return instructions, tuple(reader.stamps.items())


def _limit(problems: tuple[str, ...]) -> tuple[str, ...]:
    """Return as many of the problems as are useful to a user or a model."""
    shown = tuple(problem[:MAXIMUM_PROBLEM_CHARACTERS] for problem in problems[:MAXIMUM_PROBLEMS])
    more = len(problems) - len(shown)
    return (*shown, f"{more} more notes of this kind are left out") if more else shown


@dataclass(slots=True)
class _Reader:
    workspace: Path
    home: Path | None
    bounds: tuple[Path, ...] = ()
    files: list[InstructionFile] = field(default_factory=list[InstructionFile])
    problems: list[str] = field(default_factory=list[str])
    stamps: dict[Path, Stamp] = field(default_factory=dict[Path, Stamp])
    _seen: set[Path] = field(default_factory=set[Path])
    _texts: set[str] = field(default_factory=set[str])
    _looked_up: int = 0
    _room: int = MAXIMUM_TOTAL_CHARACTERS
    _project: Path = field(init=False)

    def __post_init__(self) -> None:
        above = [
            folder
            for folder in (self.workspace, *self.workspace.parents)
            if not self.bounds or any(folder.is_relative_to(bound) for bound in self.bounds)
        ]
        top = next((folder for folder in above if os.path.lexists(folder / ".git")), None)
        is_cut = (
            top is None
            and bool(self.bounds)
            and any(os.path.lexists(folder / ".git") for folder in self.workspace.parents)
        )
        # If the repository begins above the bounds, only the part within them counts.
        self._project = top or (above[-1] if is_cut and above else self.workspace)

    def read_all(self, names: Sequence[str]) -> None:
        if self.home is not None:
            for name in names:
                self._take(self.home / name, self._shown_in_home(self.home / name), is_own=True)
            for other, name in OTHER_OWN_FILES.items():
                # The folder of a user of a server has no such neighbour.
                if name in names and self.home.name == ".gemini":
                    self._take(self.home.parent / other, self._shown_in_home(self.home.parent / other), is_own=True)
            if self.home.name == ".gemini":
                for path in (self.home / "extensions", self.home / "extensions" / ENABLEMENT):
                    self.stamps.setdefault(path, stamp_of(path))
                for path in _of_extensions(self.home.parent, self.workspace):
                    self._take(path, self._shown_in_home(path), is_own=True)
        for folder in self._folders_down():
            for name in names:
                self._take(folder / name, self._relative_name(folder / name))
        for path in self._below(names):
            if len(self.files) >= MAXIMUM_FILES:
                self.problems.append(f"only the first {MAXIMUM_FILES} files of instructions are used")
                break
            self._take(path, self._relative_name(path))

    def _folders_down(self) -> Iterator[Path]:
        """Yield the folders from the top of the git repository (without one, the workspace) down to the workspace."""
        top = self._project
        yield top
        current = top
        for part in self.workspace.relative_to(top).parts:
            current /= part
            yield current

    def _below(self, names: Sequence[str]) -> Iterator[Path]:
        """Yield the files of these names in the sub-folders, nearest first."""
        workspace = Workspace(self.workspace)
        waiting: deque[tuple[Path, str, Visibility]] = deque()
        waiting.append((self.workspace, "", workspace.visibility(self.workspace)))
        searched = 0
        while waiting:
            folder, relative, visible = waiting.popleft()
            if searched > MAXIMUM_FOLDERS:
                self.problems.append(
                    f"only the nearest {MAXIMUM_FOLDERS} sub-folders were searched for instructions; deeper ones may "
                    "hold more of them"
                )
                return
            searched += 1
            self._record(folder)
            entries = _entries(folder)
            present = frozenset(entry.name for entry in entries)
            for name in present.intersection(_IGNORE_FILES):
                self._record(folder / name)
            visible = visible.inside(folder, relative, present)
            if relative:
                for name in names:
                    if name in present and not visible.hides(relative + name, name):
                        yield folder / name
            for entry in entries:
                inner = f"{relative}{entry.name}/"
                if (
                    entry.name not in _GENERATED_FOLDERS
                    and entry.is_dir(follow_symlinks=False)
                    and not visible.hides(inner, f"{entry.name}/")
                ):
                    waiting.append((folder / entry.name, inner, visible))

    def _take(self, path: Path, shown: str, *, is_own: bool = False) -> None:
        """Read a file of instructions, if it exists, with its imports."""
        self._record(path)
        if not os.path.lexists(path):
            return
        target = path if is_own else self._resolve_allowed(path)
        if is_own and not is_markdown(path.name):
            self.problems.append(f"{shown} is left out: only Markdown is read from the user's own folder")
            return
        if target is None:
            self.problems.append(f"{shown} is left out: it leads out of the project, or .geminiignore excludes it")
            return
        resolved = Path(os.path.realpath(target))  # A link in the user's own folder may lead in a circle.
        if resolved in self._seen:
            return
        text = self._read(resolved, shown)
        if text is None:
            return
        self._seen.add(resolved)
        if self._is_repeated(text, resolved):
            return
        self._texts.add(text.strip())
        found = with_imports(text, resolved, self._locate, lambda imported: self._read(imported, str(imported)))
        self.problems += found.problems
        self.files.append(InstructionFile(resolved, shown, found.text, tuple(found.files)))

    def _is_repeated(self, text: str, path: Path) -> bool:
        """Return whether a file only has the text of another one, or imports nothing but one that has been read.

        Projects keep the same instructions under the names that several agents look for.
        """
        bare = text.strip()
        if bare.startswith("@") and len(bare.split()) == 1:
            target = self._locate(bare[1:], path.parent)
            return target is not None and Path(os.path.realpath(target)) in self._seen
        return bare in self._texts

    def _read(self, path: Path, shown: str) -> str | None:
        self._record(path)
        try:
            text = decode_text(read_regular(path, MAXIMUM_FILE_BYTES, through_links=False)).text.replace("\r\n", "\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            self.problems.append(f"{shown} cannot be read and is left out: {error.strerror or error}")
            return None
        except BinaryContentError as error:
            self.problems.append(f"{shown} is not text and is left out: {error}")
            return None
        if len(text) > self._room:
            self.problems.append(
                f"{shown} is cut: all instructions together may have at most {MAXIMUM_TOTAL_CHARACTERS} characters"
            )
            text = text[: self._room]
        self._room -= len(text)
        return text

    def _locate(self, written: str, folder: Path) -> Path | None:
        """Return the file of an import: a regular file inside the project, or Markdown in the user's own folder."""
        self._looked_up += 1
        if self._looked_up > MAXIMUM_LOOKUPS:
            if self._looked_up == MAXIMUM_LOOKUPS + 1:
                self.problems.insert(0, f"only the first {MAXIMUM_LOOKUPS} paths after an @ are looked up")
            return None
        home = Path.home()
        path = home / written[2:] if written.startswith("~/") else folder / written
        self._record(path)
        try:
            target = self._resolve_allowed(path)
            return target if target is not None and target.is_file() else None
        except (OSError, ValueError, RuntimeError):
            return None

    def _resolve_allowed(self, path: Path) -> Path | None:
        """Return the resolved path if a file of the project may lead there; None otherwise."""
        try:
            target = path.resolve()
            if is_private(followed(path)) and target.is_file():
                # Nobody is asked about instructions, which go along with each prompt.
                self.problems.append(f"{self._relative_name(path)} may hold secrets and is not imported")
                return None
            if self.home is not None and target.is_relative_to(self.home.resolve()):
                return target if is_markdown(target.name) else None
            return Workspace(self._project).open_path(str(path))
        except (ToolFailure, OSError, ValueError, RuntimeError):
            return None

    def _record(self, path: Path) -> None:
        """Record the state of a path before it is used, so that a later change is noticed."""
        if path not in self.stamps:
            self.stamps[path] = stamp_of(path)

    def _shown_in_home(self, path: Path) -> str:
        home = Path.home()
        return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)

    def _relative_name(self, path: Path) -> str:
        if path.is_relative_to(self.workspace):
            return path.relative_to(self.workspace).as_posix()
        return Path(os.path.relpath(path, self.workspace)).as_posix()


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def _of_extensions(home: Path, workspace: Path) -> list[Path]:
    """Return the files of instructions of the user's extensions."""
    return [path for extension in find_extensions(home, workspace).enabled for path in extension.context_files]
