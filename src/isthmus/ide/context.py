"""Context of the IDE, as ``ide/contextUpdate`` (section II of the Gemini CLI companion protocol) sends it.

The prompt of our own agent contains it as well. Positions are 1-based line and character (UTF-16 units). No I/O. Both
ends apply the same limits: :func:`normalise` does what the receiving CLI does. :mod:`context_tracker` decides when a
context is sent.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from isthmus.encoding.codec import JsonObject, from_json
from isthmus.errors import DecodeError
from isthmus.ide.context_tracker import UserFocus
from isthmus.ide.editor import OpenFile, Position, Range, Selection
from isthmus.ide.positions import one_based
from isthmus.record import record

MAXIMUM_FILES = 10
MAXIMUM_SELECTION_UNITS = 16384
"""Maximum length in UTF-16 code units, as the real CLI counts the document's 16 KB; includes :data:`CUT_MARK`."""
CUT_MARK = "... [TRUNCATED]"


@record
class Cursor:
    """Cursor position: 1-based line and character."""

    line: int
    character: int


@record
class ContextFile:
    """An open file. ``timestamp`` is the Unix time of the last focus; ours is in ms, and used only for ordering."""

    path: str
    timestamp: float
    is_active: bool | None = None
    cursor: Cursor | None = None
    selected_text: str | None = None


@record
class WorkspaceState:
    """Open files and trust of the workspace; ``is_trusted`` is None if the editor does not report it."""

    open_files: tuple[ContextFile, ...] | None = None
    is_trusted: bool | None = None


@record
class IdeContext:
    """Params of ``ide/contextUpdate``."""

    workspace_state: WorkspaceState | None = None

    @property
    def active_file(self) -> ContextFile | None:
        """Focused file, if any; reliable only in a context from :func:`normalise` or the tracker."""
        files = self.workspace_state.open_files if self.workspace_state else None
        return next((file for file in files or () if file.is_active), None)


def to_json(context: IdeContext) -> dict[str, Any]:
    """Return the params of ``ide/contextUpdate``, without the members that are None."""
    state = context.workspace_state
    if state is None:
        return {}
    encoded: dict[str, Any] = {}
    if state.open_files is not None:
        encoded["openFiles"] = [_file_to_json(file) for file in state.open_files]
    if state.is_trusted is not None:
        encoded["isTrusted"] = state.is_trusted
    return {"workspaceState": encoded}


def _file_to_json(file: ContextFile) -> dict[str, Any]:
    encoded: dict[str, Any] = {"path": file.path, "timestamp": file.timestamp}
    if file.is_active is not None:
        encoded["isActive"] = file.is_active
    if file.cursor is not None:
        encoded["cursor"] = {"line": file.cursor.line, "character": file.cursor.character}
    if file.selected_text is not None:
        encoded["selectedText"] = file.selected_text
    return encoded


def context_from_json(value: object) -> IdeContext:
    """Return the context in received params; malformed entries of openFiles are left out.

    Raises:
        DecodeError: the params, workspaceState or openFiles are not of the documented type.
    """
    state = _member(value, "IdeContext", "workspaceState")
    if state is None:
        return IdeContext()
    entries = _member(state, "IdeContext.workspaceState", "openFiles")
    if entries is not None and not isinstance(entries, list):
        raise DecodeError("IdeContext.workspaceState.openFiles", "a list", entries)
    trusted = _member(state, "IdeContext.workspaceState", "isTrusted")
    files = None if entries is None else tuple(_readable(cast("list[object]", entries)))
    return IdeContext(WorkspaceState(files, trusted if isinstance(trusted, bool) else None))


def _member(value: object, path: str, name: str) -> Any:
    if not isinstance(value, dict):
        raise DecodeError(path, "an object", value)
    return cast(JsonObject, value).get(name)


def _readable(entries: list[object]) -> Iterable[ContextFile]:
    for entry in entries:
        try:
            yield from_json(ContextFile, entry)
        except DecodeError:
            continue


def ide_context(context: UserFocus) -> IdeContext:
    """Return the focus in the protocol's form and within its limits. Timestamps are in ms, for ordering only."""
    entries = [ContextFile(file.path, _milliseconds(file)) for file in context.files]
    if (active := context.active_file) is not None:
        # The receiver treats the newest file as active, so the active one has to be strictly the newest.
        newest = max(entry.timestamp for entry in entries)
        newest += any(entry.timestamp == newest for entry in entries[1:])
        cursor = Cursor(*one_based(active.cursor)) if active.cursor else None
        entries[0] = ContextFile(active.path, newest, True, cursor, active.selection.text if active.selection else None)
    return normalise(IdeContext(WorkspaceState(tuple(entries), context.is_trusted)))


def _milliseconds(file: OpenFile) -> int:
    return int(file.focused_at * 1000)


def open_files_of(context: IdeContext) -> tuple[OpenFile, ...]:
    """Return the open files of a context as types of the Editor port; fields missing in the protocol have defaults.

    The protocol has only the text of a selection. Its range is computed backwards from the cursor, taken as its end.
    """
    state = context.workspace_state
    return tuple(_open_file(file) for file in (state.open_files if state is not None else None) or ())


def _open_file(file: ContextFile) -> OpenFile:
    cursor = Position(max(0, file.cursor.line - 1), max(0, file.cursor.character - 1)) if file.cursor else None
    selection = None
    if cursor is not None and file.selected_text:
        lines = file.selected_text.split("\n")
        line = max(0, cursor.line - len(lines) + 1)
        character = max(0, cursor.character - _units(lines[0])) if len(lines) == 1 else 0
        selection = Selection(Range(min(Position(line, character), cursor, key=_order), cursor), file.selected_text)
    return OpenFile(file.path, file.timestamp / 1000, bool(file.is_active), cursor, selection)


def _order(position: Position) -> tuple[int, int]:
    return position.line, position.character


def normalise(context: IdeContext) -> IdeContext:
    """Return the part that the receiver keeps: 10 files, newest first, and 16384 UTF-16 units of selected text.

    Only the newest file may be active. If it is not, no file is.
    """
    state = context.workspace_state
    if state is None or state.open_files is None:
        return context
    ordered = sorted(state.open_files, key=lambda file: -file.timestamp)
    files: list[ContextFile] = []
    for index, file in enumerate(ordered[:MAXIMUM_FILES]):
        if index == 0 and file.is_active:
            selected = cut_selection(file.selected_text) if file.selected_text else None
            files.append(replace(file, selected_text=selected))
        else:
            files.append(ContextFile(file.path, file.timestamp))
    return IdeContext(replace(state, open_files=tuple(files)))


def cut_selection(text: str) -> str:
    """Return the text cut to 16384 UTF-16 units, a mark included; a surrogate pair is never split."""
    if len(text) * 2 <= MAXIMUM_SELECTION_UNITS or _units(text) <= MAXIMUM_SELECTION_UNITS:
        return text
    room = MAXIMUM_SELECTION_UNITS - len(CUT_MARK)
    head = text[:room]
    encoded = head.encode("utf-16-le", "surrogatepass")[: room * 2]
    return encoded.decode("utf-16-le", "ignore") + CUT_MARK


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
