r"""Finds a user's references to files and folders of the workspace: ``@path``, ``@path:10-40``, ``@"a b.txt"``.

Only what exists in the workspace is a reference, so that ``@types/node`` and ``@param`` stay text. A reference begins a
word and ends at a blank, or before punctuation that ends a sentence; blanks are escaped by a backslash. Blocking; call
it in a thread. Reading is done by the agent's own tools, whose rules decide.
"""

import re
import time
from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath
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
MAXIMUM_CANDIDATES = 20_000
"""Maximum number of files that a completion looks at."""
COMPLETION_SECONDS = 0.5
"""Maximum time of a completion in seconds."""
MAXIMUM_COMPLETIONS = 50
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


def complete_path(line: str, workspace: Workspace) -> list[str]:
    """Return whole lines that complete a reference to a file or folder at the end of a line, best first.

    The letters that are typed must occur in the path in their order; ignored files are not offered.
    """
    starts = [match.end() for match in REFERENCE_BEGIN.finditer(line)]
    if not starts or re.search(r"(?<!\\)\s", line[starts[-1] :]):
        return []
    typed = unescaped(line[starts[-1] :])
    if "\0" in typed or typed.startswith(("/", "~", '"')):
        return []
    ends = time.monotonic() + COMPLETION_SECONDS
    scores: dict[str, tuple[int, int, str]] = {}
    for file in islice(workspace.walk(workspace.root, should_stop=lambda: time.monotonic() > ends), MAXIMUM_CANDIDATES):
        if not file.path.isprintable():
            continue
        parents = PurePosixPath(file.path).parents
        for path in (file.path, *(f"{parent}/" for parent in parents if parent.name)):
            if path not in scores and (score := _score(typed, path)) is not None:
                scores[path] = (score, len(path), path)
    best = sorted(scores, key=lambda path: scores[path])[:MAXIMUM_COMPLETIONS]
    return [line[: starts[-1]] + re.sub(r"([\s\\\"'`<>|])", r"\\\1", path) for path in best]


def _score(typed: str, path: str) -> int | None:
    """Return how badly a path fits what was typed, 0 best; None if it does not."""
    wanted, whole = typed.casefold(), path.casefold()
    if whole.startswith(wanted):
        return 0 if "/" not in path[len(typed) :].rstrip("/") else 1
    name = whole.rstrip("/").rpartition("/")[2]
    if name.startswith(wanted):
        return 2
    if wanted in whole:
        return 3
    letters = iter(whole)
    return 4 if all(letter in letters for letter in wanted) else None
