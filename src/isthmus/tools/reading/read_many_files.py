"""read_many_files: read the texts of all files that match patterns, one after the other."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.internal_events import SeenText
from isthmus.text.visible import printable
from isthmus.tools.port.arguments import CheckedArguments, check_arguments, pattern_parameter
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.content import BINARY_SUFFIXES, is_file, is_folder, read_bytes, text_of
from isthmus.tools.port.excerpt import MAXIMUM_CHARACTERS, MAXIMUM_LINE_CHARACTERS, excerpt_of
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.seen_text import seen_text
from isthmus.tools.port.shown_files import ShownFiles
from isthmus.tools.port.workspace import Workspace
from isthmus.tools.search.glob_pattern import GlobPattern
from isthmus.tools.search.list_directory import FILTERING_OPTIONS
from isthmus.tools.search.listing import FileListing, list_files

MAXIMUM_FILES = 1_000
MAXIMUM_TOTAL_CHARACTERS = 2 * MAXIMUM_CHARACTERS

_DEFAULT_EXCLUDES = (
    "**/{node_modules,bower_components,.git,.svn,.hg,.bzr,__pycache__,.venv,venv,dist,build,coverage,.cache}/**",
    "**/{.vscode,.idea,.next,.tox,.mypy_cache,.pytest_cache,.ruff_cache}/**",
    "**/{.DS_Store,*.lock,package-lock.json,pnpm-lock.yaml,*.min.js,*.min.css,*.map,.env,.env.*}",
)
_PATTERNS: Mapping[str, Any] = {"type": "array", "items": pattern_parameter("A glob pattern, a file or a folder.")}
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "include": {
            **_PATTERNS,
            "minItems": 1,
            "description": "Glob patterns, files or folders, relative to the workspace: ['src/**/*.ts', 'README.md'].",
        },
        "exclude": {**_PATTERNS, "description": "Glob patterns of files to leave out."},
        "recursive": {"type": "boolean", "description": "false: of a folder only the files directly in it."},
        "useDefaultExcludes": {
            "type": "boolean",
            "description": "false: also what is usually made or fetched (node_modules, dist, lock files, .env).",
        },
        "file_filtering_options": FILTERING_OPTIONS,
    },
    "required": ["include"],
}


class ReadManyFiles:
    """Reads several text files."""

    name = "read_many_files"
    description = (
        "Reads the text files that glob patterns name and joins their contents, each after a line "
        "'--- path ---'. For an overview of several files at once; for one file use read_file. At most "
        f"{MAXIMUM_TOTAL_CHARACTERS} characters in all; what was left out or cut is named at the end."
    )
    parameters = PARAMETERS
    kind = ToolKind.READ

    def describe(self, arguments: Arguments) -> str:
        """Return the patterns."""
        return "Read " + ", ".join(self._check(arguments).strings("include"))

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the arguments; there is nothing to confirm."""
        for pattern in self._check(arguments).strings("include"):
            _relative_pattern(context.workspace, pattern)
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the texts, in the order of their paths."""
        checked = self._check(arguments)
        workspace = context.workspace
        included = [_included(workspace, pattern, checked) for pattern in checked.strings("include")]
        excluded = [GlobPattern(pattern) for pattern in checked.strings("exclude")]
        if checked.boolean("useDefaultExcludes", default=True):
            excluded += [GlobPattern(pattern) for pattern in _DEFAULT_EXCLUDES]

        options = checked.nested("file_filtering_options")
        git = options.boolean("respect_git_ignore", default=True)
        others = [
            folder
            for folder in workspace.others
            if any(_is_below(pattern, folder) for pattern in checked.strings("include"))
        ]
        paths: list[str] = []
        note = ""
        for folder in (workspace.root, *others):
            listing = await list_files(workspace, folder, git=git, for_contents=True)
            note = note or listing.note
            paths += await _in_thread(partial(_matching, listing, workspace, included, excluded, git=git))
        if not paths:
            message = "No files match " + ", ".join(checked.strings("include")) + "."
            return ToolSucceeded(ToolOutput(text=message), note + message)
        text, seen, left_out = await asyncio.to_thread(_read_all, workspace, paths)
        summary = "\n".join((f"Read {len(seen)} of {len(paths)} files.", *left_out))
        for_model = f"{note}{text}--- End of content ---\n{summary}"
        return ToolSucceeded(ToolOutput(text=summary), for_model, seen=seen)

    def _check(self, arguments: Arguments) -> CheckedArguments:
        return check_arguments(self.name, PARAMETERS, arguments, {"paths": "include"})


async def _in_thread(find: Callable[[Callable[[], bool]], list[str]]) -> list[str]:
    """Return what a function finds in a thread, which ends early if the task is cancelled."""
    stopped = threading.Event()
    try:
        return await asyncio.to_thread(find, stopped.is_set)
    finally:
        stopped.set()


def _matching(
    listing: FileListing,
    workspace: Workspace,
    included: Sequence[GlobPattern],
    excluded: Sequence[GlobPattern],
    should_stop: Callable[[], bool],
    *,
    git: bool,
) -> list[str]:
    """Return the matching files that are shown now, in the order of the names in their paths."""
    shown = ShownFiles(workspace, listing.place, git=git, for_contents=True)
    found: list[str] = []
    for relative, prefix, folder in listing.folders():
        if should_stop():
            return []
        place = prefix.removeprefix("/")  # Patterns match an absolute path, of a further folder, without that.
        files = folder.files()
        names = {name for pattern in included for name in pattern.matching_names(place, files)}
        for pattern in excluded if names else ():
            names.difference_update(pattern.matching_names(place, list(names)))
        found += [
            prefix + name
            for name in names
            if shown.shows(relative + name) and workspace.shows(workspace.root / (prefix + name))
        ]
    return sorted(found, key=lambda path: path.split("/"))


def _included(workspace: Workspace, pattern: str, checked: CheckedArguments) -> GlobPattern:
    relative = _relative_pattern(workspace, pattern)
    path = workspace.root / relative
    if is_file(path):
        # Matched literally, even if the name looks like a pattern.
        return GlobPattern("".join(f"[{character}]" if character in "*?[{" else character for character in relative))
    if is_folder(path):
        rest = "**" if checked.boolean("recursive", default=True) else "*"
        return GlobPattern(rest if relative in ("", ".") else f"{relative}/{rest}")
    return GlobPattern(relative)


def _is_below(pattern: str, folder: Path) -> bool:
    return pattern == folder.as_posix() or pattern.startswith(folder.as_posix() + "/")


def _relative_pattern(workspace: Workspace, pattern: str) -> str:
    """Return the pattern relative to the workspace; raises ToolFailure if it leads out of it."""
    relative = pattern.removeprefix(workspace.root.as_posix() + "/").rstrip("/")
    if relative == workspace.root.as_posix():
        return "."
    beginning = Path(relative.partition("*")[0])
    workspace.resolve(str(beginning))
    return relative


def _read_all(workspace: Workspace, paths: list[str]) -> tuple[str, tuple[SeenText, ...], list[str]]:
    """Return the joined texts, what they show of files, and a line for each file that is missing or cut."""
    pieces: list[str] = []
    left_out: list[str] = []
    seen: list[SeenText] = []
    room = MAXIMUM_TOTAL_CHARACTERS
    for index, path in enumerate(paths):
        if room < MAXIMUM_LINE_CHARACTERS or index >= MAXIMUM_FILES:
            left_out.append(f"{len(paths) - index} more files are left out: the limit is reached at {printable(path)}.")
            break
        shown = printable(path)
        if (kind := BINARY_SUFFIXES.get(Path(path).suffix.lower())) is not None:
            left_out.append(f"{shown} is {kind} and was not read.")
            continue
        try:
            resolved = workspace.open_path(path)
            text = text_of(read_bytes(resolved, shown), resolved, shown).text.replace("\r\n", "\n")
        except ToolFailure as failure:
            left_out.append(f"{failure}.")
            continue
        excerpt = excerpt_of(text, maximum=min(room, MAXIMUM_CHARACTERS))
        note = excerpt.note(shown) if excerpt.is_partial else ""
        if excerpt.is_partial:
            left_out.append(f"{shown} is cut: {excerpt.last} of {excerpt.total} lines.")
        pieces.append(f"--- {shown} ---\n\n{note}{excerpt.text}\n\n")
        room -= len(pieces[-1])
        seen.append(seen_text(resolved, text, excerpt))
    return "".join(pieces), tuple(seen), left_out
