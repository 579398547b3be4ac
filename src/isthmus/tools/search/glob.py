"""glob: find files by a pattern of their paths, newest first."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.record import record
from isthmus.text.visible import printable
from isthmus.tools.port.arguments import CheckedArguments, check_arguments, path_parameter, pattern_parameter
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.content import is_file
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.shown_files import ShownFiles
from isthmus.tools.search.glob_pattern import GlobPattern, has_glob_syntax
from isthmus.tools.search.listing import FileListing, list_files, search_folder

MAXIMUM_RESULTS = 1_000

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "pattern": pattern_parameter(
            "The pattern of the path below dir_path, such as '**/*.py', 'src/*.{ts,tsx}' or 'docs/**'."
        ),
        "dir_path": path_parameter("The folder to search; the workspace when left out."),
        "case_sensitive": {"type": "boolean", "description": "Tell capitals from small letters; not the default."},
        "respect_git_ignore": {"type": "boolean", "description": "Leave out what .gitignore names; the default."},
        "respect_gemini_ignore": {"type": "boolean", "description": "Leave out what .geminiignore names; the default."},
    },
    "required": ["pattern"],
}


class Glob:
    """Finds files by their paths."""

    name = "glob"
    description = (
        "Finds files by a glob pattern and returns their absolute paths, the last modified first. ** stands for any "
        f"number of folders. At most {MAXIMUM_RESULTS} files. Ignored files and the .git folder are left out."
    )
    parameters = PARAMETERS
    kind = ToolKind.READ

    def describe(self, arguments: Arguments) -> str:
        """Return the pattern and the folder."""
        checked = self._check(arguments)
        where = f" in {checked.string('dir_path')}" if "dir_path" in checked else ""
        return f"Find {checked.string('pattern')}{where}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the arguments; there is nothing to confirm."""
        context.workspace.open_path(self._check(arguments).string("dir_path", "."))
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the paths of the matching files."""
        checked = self._check(arguments)
        workspace = context.workspace
        folder = search_folder(workspace, checked.string("dir_path", "."))
        if not folder.is_dir():
            raise ToolFailure(f"{checked.string('dir_path')} is a file, not a folder", "path_is_not_a_directory")
        text = checked.string("pattern")
        if text.startswith("/"):
            # An absolute pattern works if it names the folder that is searched.
            text = text.removeprefix(folder.as_posix() + "/")
        git = checked.boolean("respect_git_ignore", default=True)
        listing = await list_files(workspace, folder, git=git)
        pattern = GlobPattern(text.rstrip("/"), is_case_sensitive=checked.boolean("case_sensitive"))
        stopped = threading.Event()
        try:
            found = await asyncio.to_thread(_find, listing, pattern, text.rstrip("/"), stopped.is_set)
        finally:
            stopped.set()
        shown = await asyncio.to_thread(_still_shown, found.newest, ShownFiles(workspace, folder, git=git))
        count = found.count - (len(found.newest) - len(shown))
        if not count:
            message = f'No files found matching pattern "{text}" within {printable(str(folder))}.'
            return ToolSucceeded(ToolOutput(text=message), listing.note + message)
        paths = [printable(str(folder / path)) for path in shown]
        if count > len(paths):
            paths.append(f"[{count - len(paths)} more files are not shown; use a narrower pattern]")
        head = f'Found {count} file(s) matching "{text}" within {printable(str(folder))}, newest first:\n'
        answer = listing.note + head + "\n".join(paths)
        return ToolSucceeded(ToolOutput(text=answer), answer)

    def _check(self, arguments: Arguments) -> CheckedArguments:
        return check_arguments(self.name, PARAMETERS, arguments, {"path": "dir_path"})


@record
class _Found:
    """The number of matching files, and the paths of the newest, relative to the folder that was searched."""

    count: int
    newest: tuple[str, ...]


def _find(listing: FileListing, pattern: GlobPattern, literal: str, should_stop: Callable[[], bool]) -> _Found:
    """Return the matching files; those that were removed meanwhile are left out."""
    # A name such as app/[id]/page.tsx is taken literally if such a file exists.
    folder, _, name = literal.rpartition("/")
    is_file_name = has_glob_syntax(literal) and is_file(listing.place / literal)
    count = 0

    def dated() -> Iterator[tuple[int, str]]:
        nonlocal count
        for relative, _, indexed in listing.folders():
            if should_stop():
                return
            if is_file_name:
                matching = [name] if relative.rstrip("/") == folder and name in indexed.files() else []
            else:
                matching = pattern.matching_names(relative, indexed.files())
            for found in matching:
                path = relative + found
                try:
                    status = os.lstat(f"{listing.place}/{path}")
                except OSError:
                    continue
                count += 1
                yield -status.st_mtime_ns, path

    newest = nsmallest(MAXIMUM_RESULTS, dated())
    return _Found(count, tuple(path for _, path in newest))


def _still_shown(paths: Iterable[str], shown: ShownFiles) -> list[str]:
    return [path for path in paths if shown.shows(path)]
