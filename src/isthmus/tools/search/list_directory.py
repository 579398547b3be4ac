"""list_directory: list the entries of one folder."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.record import record
from isthmus.text.visible import printable
from isthmus.tools.port.arguments import CheckedArguments, check_arguments, path_parameter, pattern_parameter
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.workspace import Workspace
from isthmus.tools.search.glob_pattern import GlobPattern

MAXIMUM_ENTRIES = 1_000

FILTERING_OPTIONS: Mapping[str, Any] = {
    "type": "object",
    "description": "Which ignore files count.",
    "properties": {
        "respect_git_ignore": {"type": "boolean", "description": "Leave out what .gitignore names; the default."},
        "respect_gemini_ignore": {"type": "boolean", "description": "Leave out what .geminiignore names; the default."},
    },
}
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "dir_path": path_parameter("The folder, absolute or relative to the workspace."),
        "ignore": {
            "type": "array",
            "items": pattern_parameter("A glob pattern."),
            "description": "Glob patterns of names to leave out.",
        },
        "file_filtering_options": FILTERING_OPTIONS,
    },
    "required": ["dir_path"],
}


@record
class _Listing:
    lines: tuple[str, ...]
    left_out: int


class ListDirectory:
    """Lists one folder."""

    name = "list_directory"
    description = (
        "Lists the files and folders directly in a folder of the workspace: folders first, then files with their "
        f"sizes, by name. At most {MAXIMUM_ENTRIES} entries. Ignored entries are left out and counted."
    )
    parameters = PARAMETERS
    kind = ToolKind.READ

    def describe(self, arguments: Arguments) -> str:
        """Return the folder."""
        return f"List {self._check(arguments).string('dir_path')}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the arguments; there is nothing to confirm."""
        context.workspace.open_path(self._check(arguments).string("dir_path"))
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the listing."""
        checked = self._check(arguments)
        shown = checked.string("dir_path")
        folder = context.workspace.open_path(shown)
        listing = await asyncio.to_thread(_list, context.workspace, folder, shown, checked)
        lines = list(listing.lines[:MAXIMUM_ENTRIES])
        if len(listing.lines) > MAXIMUM_ENTRIES:
            lines.append(f"[{len(listing.lines) - MAXIMUM_ENTRIES} more entries are not shown; glob finds them]")
        if listing.left_out:
            lines.append(f"({listing.left_out} ignored)")
        text = "\n".join(lines) or "The folder is empty."
        return ToolSucceeded(ToolOutput(text=text), f"Directory listing for {printable(str(folder))}:\n{text}")

    def _check(self, arguments: Arguments) -> CheckedArguments:
        return check_arguments(self.name, PARAMETERS, arguments, {"path": "dir_path"})


def _list(workspace: Workspace, folder: Path, shown: str, checked: CheckedArguments) -> _Listing:
    options = checked.nested("file_filtering_options")
    # Entries that .geminiignore names are closed, not only hidden: this option of Gemini CLI cannot open them.
    visible = workspace.visibility(folder, git=options.boolean("respect_git_ignore", default=True))
    entries = _entries(folder, shown)
    relative = workspace.relative_in_its_folder(folder)
    visible = visible.inside(folder, relative, frozenset(entry.name for entry in entries))
    patterns = [GlobPattern(pattern) for pattern in checked.strings("ignore")]
    folders: list[str] = []
    files: list[str] = []
    left_out = 0
    for entry in sorted(entries, key=lambda entry: entry.name):
        is_folder = entry.is_dir(follow_symlinks=False)
        slash = "/" if is_folder else ""
        if entry.name == ".git":
            continue
        if visible.hides(f"{relative}{entry.name}{slash}", entry.name + slash) or any(
            pattern.matches(printable(entry.name)) for pattern in patterns
        ):
            left_out += 1
        elif is_folder:
            folders.append(f"[DIR] {printable(entry.name)}")
        else:
            files.append(_file_line(entry))
    return _Listing((*folders, *files), left_out)


def _entries(folder: Path, shown: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except FileNotFoundError as error:
        raise ToolFailure(f"{shown} does not exist", "file_not_found") from error
    except NotADirectoryError as error:
        message = f"{shown} is a file, not a folder; use read_file to see its content"
        raise ToolFailure(message, "path_is_not_a_directory") from error
    except PermissionError as error:
        raise ToolFailure(f"no permission to list {shown}", "permission_denied") from error


def _file_line(entry: os.DirEntry[str]) -> str:
    name = printable(entry.name)
    try:
        if entry.is_symlink():
            return f"{name} -> {printable(str(Path(entry.path).readlink()))}"
        return f"{name} ({entry.stat(follow_symlinks=False).st_size} bytes)"
    except OSError:
        # Removed since the folder was read.
        return name
