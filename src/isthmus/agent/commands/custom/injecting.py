"""Reads the text for ``@{path}`` in a custom command: a text file of the workspace, or the listing of a folder.

Ignore files apply, paths out of the workspace are refused, and only text is read. Blocking; call it in a thread.
"""

from itertools import islice
from pathlib import Path

from isthmus.files.atomic import read_regular
from isthmus.text.text_file import BinaryContentError, decode_text
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.workspace import Workspace

MAXIMUM_FILE_BYTES = 20 * 1024 * 1024
MAXIMUM_CHARACTERS = 256 * 1024
"""Maximum number of characters of one file; a cut is mentioned."""
MAXIMUM_ENTRIES = 1_000
"""Maximum number of files in a listing."""


def inject(workspace: Workspace, shown: str) -> str:
    """Return the text for ``@{shown}`` in a workspace.

    Raises:
        ToolFailure: the file does not exist, is out of reach or ignored, or is not text.
    """
    path = workspace.open_path(shown)
    is_ignored = workspace.ignored_entry(path, workspace.visibility(workspace.root)) is not None
    if is_ignored or ".git" in path.relative_to(workspace.root).parts:
        raise ToolFailure(f"@{{{shown}}}: it is not read, since an ignore file of the project names it", "ignored_file")
    if not workspace.shows(path):
        reason = "it may hold secrets, which a command never sends; with @ in a prompt you are asked"
        raise ToolFailure(f"@{{{shown}}}: it is not read, since {reason}", "private_file")
    if path.is_dir():
        return _listing(workspace, path, shown)
    try:
        data = read_regular(path, MAXIMUM_FILE_BYTES, through_links=False)
        text = decode_text(data).text
    except FileNotFoundError as error:
        raise ToolFailure(f"@{{{shown}}}: there is no such file in {workspace.root}", "file_not_found") from error
    except OSError as error:
        message = f"@{{{shown}}} cannot be read: {error.strerror or error}"
        raise ToolFailure(message, "read_content_failure") from error
    except BinaryContentError as error:
        message = f"@{{{shown}}} is not text (an image, or another binary file); only text can be put into a prompt"
        raise ToolFailure(message, "binary_file") from error
    if len(text) > MAXIMUM_CHARACTERS:
        return f"{text[:MAXIMUM_CHARACTERS]}\n[{shown} is cut here: {MAXIMUM_CHARACTERS} of {len(text)} characters]"
    return text


def _listing(workspace: Workspace, folder: Path, shown: str) -> str:
    found = [file.path for file in islice(workspace.walk(folder), MAXIMUM_ENTRIES + 1)]
    lines = found[:MAXIMUM_ENTRIES]
    if len(found) > MAXIMUM_ENTRIES:
        lines.append(f"[more than {MAXIMUM_ENTRIES} files; the rest of {shown} is not listed]")
    return "\n".join(lines) or f"[{shown} has no files]"
