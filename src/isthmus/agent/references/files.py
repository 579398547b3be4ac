r"""Finds a user's references to files and folders of the workspace: ``@path``, ``@path:10-40``, ``@"a b.txt"``.

Only what exists in the workspace is a reference, so that ``@types/node`` and ``@param`` stay text. A reference begins a
word and ends at a blank, or before punctuation that ends a sentence; blanks are escaped by a backslash. Blocking; call
it in a thread. Reading is done by the agent's own tools, whose rules decide.
"""

import re
from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from isthmus.agent.references.syntax import REFERENCE_BEGIN, bare_text, unescaped
from isthmus.record import record
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.workspace import OUTSIDE_WORKSPACE, Workspace

MAXIMUM_FILE_REFERENCES = 20
"""Maximum number of files and folders that are read per message."""
WHOLE_FOLDER_FILES = 20
"""Maximum number of files of a folder that are read; a larger folder is listed."""
WHOLE_FOLDER_BYTES = 100_000
"""Maximum size in bytes of a folder's files that are read."""
_QUOTED = re.compile(r'"([^"\n]{1,4096})"')
_RANGE = re.compile(r"(?::|#L)(\d{1,9})(?:-L?(\d{1,9}))?$")


@record
class WorkspaceReference:
    """A reference as ``typed``, with the tool and the arguments that read it."""

    typed: str
    tool: str
    arguments: Mapping[str, Any]


def find_file_references(text: str, workspace: Workspace, others: Collection[int] = ()) -> list[WorkspaceReference]:
    """Return the references in a text, each once; ``others`` are the starts of references to something else."""
    found: dict[str, WorkspaceReference] = {}
    for match in REFERENCE_BEGIN.finditer(text):
        if match.start() in others or len(found) >= MAXIMUM_FILE_REFERENCES:
            continue
        quoted = _QUOTED.match(text, match.end())
        if quoted is not None:
            typed, path = text[match.start() : quoted.end()], quoted.group(1)
            lines = _RANGE.match(text, quoted.end())
        else:
            bare = bare_text(text, match.end())
            typed, path = f"@{bare}", unescaped(bare)
            lines = None
        reference = _reference(workspace, typed, path, lines)
        if reference is None and (lines := _RANGE.search(path)) is not None:
            reference = _reference(workspace, typed, path[: lines.start()], lines)
        if reference is not None:
            found.setdefault(typed, reference)
    return list(found.values())


def _reference(workspace: Workspace, typed: str, path: str, lines: "re.Match[str] | None") -> WorkspaceReference | None:
    if not path or "\0" in path:
        return None
    try:
        resolved = workspace.resolve(path)
    except ToolFailure as failure:
        # The tool refuses it, so that the user learns why it is not read.
        leaves = path.startswith(("../", "~/")) and failure.category == OUTSIDE_WORKSPACE
        return WorkspaceReference(typed, "read_file", {"file_path": path}) if leaves else None
    if not resolved.exists():
        return None
    if resolved.is_dir():
        tool = "read_many_files" if _is_small(workspace, resolved) else "list_directory"
        pattern = "**" if resolved == workspace.root else f"{workspace.relative(resolved)}/**"
        arguments = {"include": [pattern]} if tool == "read_many_files" else {"dir_path": path}
        return WorkspaceReference(typed, tool, arguments)
    arguments: dict[str, Any] = {"file_path": path}
    if lines is not None:
        first, last = int(lines[1]), int(lines[2] or lines[1])
        if not 1 <= first <= last:
            return None
        arguments |= {"start_line": first, "end_line": last}
    return WorkspaceReference(typed, "read_file", arguments)


def _is_small(workspace: Workspace, folder: Path) -> bool:
    try:
        sizes = [file.entry.stat().st_size for file in islice(workspace.walk(folder), WHOLE_FOLDER_FILES + 1)]
    except (OSError, ToolFailure):
        return False
    return 0 < len(sizes) <= WHOLE_FOLDER_FILES and sum(sizes) <= WHOLE_FOLDER_BYTES
