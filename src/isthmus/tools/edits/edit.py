"""Functions shared by tools that edit files: the proposal as a diff, and writing the approved content.

The file is written only if it is unchanged since the proposal. Bytes outside the edit are preserved: encoding, byte
order mark, newlines.
"""

import errno
import stat
from pathlib import Path

from isthmus.development_tool import FileDiff, ToolOutput
from isthmus.files.atomic import FileChangedError, remove_if_unchanged, write_if_unchanged
from isthmus.files.nofollow import make_folders
from isthmus.internal_events import SeenText
from isthmus.record import record
from isthmus.text.diff import line_opcodes, split_lines, unified_diff
from isthmus.text.text_file import TextFile, TextForm, UnencodableTextError, with_newlines_of
from isthmus.text.visible import printable
from isthmus.tools.edits.omitted_code import omitted_line
from isthmus.tools.port.base import ToolContext, ToolSucceeded
from isthmus.tools.port.content import LINK_CAME, read_bytes, text_of
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.seen_text import whole_text
from isthmus.tools.port.workspace import Workspace

FILE_CHANGED = "file_changed"
OMITTED_CODE = "omitted_code"
MAXIMUM_TOLD_PLACES = 10
"""Maximum number of places in a file whose lines the model is told after an edit."""


@record
class EditTarget:
    """Current state of the file of an edit; `data` and `file` are None if it does not exist."""

    path: Path
    shown: str
    data: bytes | None
    file: TextFile | None

    @property
    def text(self) -> str | None:
        """Current text, with its own newlines."""
        return None if self.file is None else self.file.text


def edit_target(workspace: Workspace, shown: str) -> EditTarget:
    """Return the file at the path `shown`, as the model wrote it, if it may be written.

    Raises:
        ToolFailure: the path may not be written, or the file is not text.
    """
    path = workspace.writable_path(shown)
    try:
        data = read_bytes(path, shown)
    except ToolFailure as failure:
        if failure.category != "file_not_found":
            raise
        parent = next(folder for folder in path.parents if folder.exists())
        if not parent.is_dir():
            message = f"{shown} cannot be created: {workspace.relative(parent)} is a file, not a folder"
            raise ToolFailure(message, "path_is_not_a_directory") from failure
        return EditTarget(path, shown, None, None)
    return EditTarget(path, shown, data, text_of(data, path, shown))


def proposed_diff(
    workspace: Workspace, target: EditTarget, new_content: str, *, moved: EditTarget | None = None
) -> FileDiff:
    """Return the proposal to replace the content of `target` with `new_content`, which comes from the file `moved`.

    Raises:
        ToolFailure: nothing would change, the text leaves code out, or the file's encoding cannot hold it.
    """
    if new_content == target.text:
        message = f"{target.shown} already has exactly this content; there is nothing to change"
        raise ToolFailure(message, "edit_no_change")
    require_whole(target.shown, new_content, target.text or (moved.text if moved is not None else None) or "")
    _encoded(target, new_content, moved)
    return _diff(workspace, target.path, target.text, new_content)


def require_whole(shown: str, new: str, old: str) -> None:
    """Check that a text has no line in place of code of the former one.

    Raises:
        ToolFailure: it has one.
    """
    if (line := omitted_line(new, old)) is not None:
        message = (
            f"{shown} was not changed: the line {line!r} stands for code that is left out, and would be written as it"
            " is, in place of that code. Give the whole text, or replace only the part that changes"
        )
        raise ToolFailure(message, OMITTED_CODE)


def write_approved(
    context: ToolContext, shown: str, proposal: FileDiff, modified: str | None, *, moved: EditTarget | None = None
) -> FileDiff:
    """Write the approved content, or `modified` if a user changed it, and return the change that was made.

    A new file gets the encoding, the newlines and the mode of the file `moved`. Blocks until the file is on disk.

    Raises:
        ToolFailure: ``file_changed`` if the file has changed since the proposal; otherwise the write failed.
    """
    target = _unchanged_target(context, shown, proposal)
    model = target.text if moved is None else moved.text
    content = proposal.new_content if modified is None else with_newlines_of(model or "", modified)
    data = _encoded(target, content, moved)
    try:
        mode = None if moved is None else stat.S_IMODE(moved.path.stat().st_mode)
        make_folders(target.path.parent)
        write_if_unchanged(target.path, data, target.data, mode=mode, through_links=False)
    except FileChangedError as error:
        raise _changed(shown, "changed") from error
    except OSError as error:
        raise _write_failure(error, shown) from error
    return _diff(context.workspace, target.path, target.text, content)


def remove_approved(context: ToolContext, shown: str, proposal: FileDiff) -> FileDiff:
    """Remove the file whose deletion was approved, and return the change that was made. Blocks.

    Raises:
        ToolFailure: ``file_changed`` if the file has changed since the proposal; otherwise the removal failed.
    """
    target = _unchanged_target(context, shown, proposal)
    if target.data is None:
        raise _changed(shown, "was removed")
    try:
        remove_if_unchanged(target.path, target.data)
    except FileChangedError as error:
        raise _changed(shown, "changed") from error
    except OSError as error:
        raise _write_failure(error, shown) from error
    return _diff(context.workspace, target.path, target.text, "")


def _unchanged_target(context: ToolContext, shown: str, proposal: FileDiff) -> EditTarget:
    """Return the file of a proposal, if it is as it was then.

    Raises:
        ToolFailure: ``file_changed`` if it is not.
    """
    try:
        target = edit_target(context.workspace, shown)
    except ToolFailure as failure:
        if failure.category == "binary_file":
            raise _changed(shown, "was replaced with a binary file") from failure
        raise
    if str(target.path) != proposal.file_path:
        raise _changed(shown, f"became another file, {target.path},")
    if target.text != proposal.old_content:
        happened = (
            "was created" if proposal.old_content is None else "was removed" if target.text is None else "changed"
        )
        raise _changed(shown, happened)
    return target


def written_text(written: FileDiff) -> tuple[SeenText, ...]:
    """Return that the whole text which was written is known."""
    return (whole_text(Path(written.file_path), written.new_content),)


def edit_result(written: FileDiff, proposal: FileDiff, note: str, *, shows_diff: bool = False) -> ToolSucceeded:
    """Return the result of an edit that was written; `note` tells the model what was tolerated.

    The model has just written the text itself, and reads each result again in all later requests. So it is told the
    lines, and the diff only where it may be another one than meant: with a note, or with `shows_diff`.
    """
    done = "Created the new file" if written.old_content is None else "Modified the file"
    for_model = f"{done} {written.file_path}.{note}"
    is_modified = written.new_content != proposal.new_content
    if is_modified:
        for_model += f" User modified the content of the file to be: {written.new_content}"
    elif note or shows_diff:
        for_model += f" What changed:\n{written.formatted_diff}"
    elif written.old_content is not None:
        for_model += f" Changed now: {_places(written.old_content, written.new_content)}."
    return ToolSucceeded(ToolOutput(diff=written), for_model, seen=written_text(written) if is_modified else ())


def _places(old: str, new: str) -> str:
    """Return the lines of a text that differ from the one before, by their numbers."""
    old_lines, new_lines = split_lines(old), split_lines(new)
    if not new_lines:
        return "all of it was removed"
    removed: list[str] = []
    there: list[str] = []
    for tag, _, _, start, end in line_opcodes(old_lines, new_lines):
        if tag == "delete":
            removed.append(f"removed after line {start}")
        elif tag != "equal":
            there.append(f"{start + 1}-{end}" if end > start + 1 else f"{end}")
    more = " and further ones" if max(len(there), len(removed)) > MAXIMUM_TOLD_PLACES else ""
    lines = "lines" if len(there) > 1 or any("-" in each for each in there) else "line"
    told = [f"{lines} {', '.join(there[:MAXIMUM_TOLD_PLACES])}"] if there else []
    return f"{', '.join([*told, *removed[:MAXIMUM_TOLD_PLACES]])}{more} of {len(new_lines)}"


def _encoded(target: EditTarget, content: str, moved: EditTarget | None = None) -> bytes:
    file = target.file if moved is None else moved.file
    form = TextForm() if file is None else file.form
    try:
        return form.encode(content)
    except UnencodableTextError as error:
        raise ToolFailure(f"{target.shown}: {error}", "unencodable_text") from error


def _diff(workspace: Workspace, path: Path, old: str | None, new: str) -> FileDiff:
    return FileDiff(
        file_name=printable(path.name),
        file_path=str(path),
        old_content=old,
        new_content=new,
        formatted_diff=unified_diff(old, new, printable(workspace.relative(path))),
    )


def _changed(shown: str, happened: str) -> ToolFailure:
    message = (
        f"{shown} {happened} since this edit was proposed, so nothing was written; read it again and repeat the edit"
    )
    return ToolFailure(message, FILE_CHANGED)


def _write_failure(error: OSError, shown: str) -> ToolFailure:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return ToolFailure(f"no space left to write {shown}; nothing was changed", "no_space_left")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return ToolFailure(f"no permission to write {shown}; nothing was changed", "permission_denied")
        case errno.ELOOP:
            message = f"a symbolic link appeared in the path of {shown} meanwhile; nothing was written"
            return ToolFailure(message, LINK_CAME)
        case None if isinstance(error, PermissionError):
            return ToolFailure(f"{shown} is read-only; nothing was changed", "permission_denied")
        case _:
            return ToolFailure(f"cannot write {shown}: {error.strerror or error}", "file_write_failure")
