"""Editor port: the commands that a companion gives an editor, and the events that the editor reports.

Events are read from :meth:`Editor.changes`; the other methods are commands. An editor never calls back. It knows files,
views and a user, but neither protocols nor tokens nor clients.

Positions have one definition: **line and character are 0-based, character counts UTF-16 code units** (as in LSP). Wire
modules and editors convert their own: the Gemini CLI companion protocol is 1-based, Neovim has 1-based lines and byte
columns. Paths are absolute strings as the editor or the client wrote them; the port never resolves symlinks.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import Enum, StrEnum
from typing import Protocol, TypeAlias

from isthmus.errors import IsthmusError
from isthmus.ide.reviews.review import DiffReview
from isthmus.record import record


class EditorError(IsthmusError):
    """A command that the editor could not carry out; the text can be shown to the client or the user."""


class NotAvailableError(EditorError):
    """A capability that the editor lacks. The text is ``not available in EDITOR: reason``."""

    def __init__(self, editor: "EditorIdentity", reason: str) -> None:
        super().__init__(f"not available in {editor.display_name}: {reason}")


class EditorGoneError(EditorError):
    """The editor has quit, or the connection to it is lost; no further call can succeed."""


@record
class Position:
    """A place between two characters. ``line`` and ``character`` are 0-based; ``character`` is in UTF-16 units."""

    line: int
    character: int


@record
class Range:
    """Half-open range from ``start`` to ``end`` (not included); ``start`` is never after ``end``."""

    start: Position
    end: Position


@record
class Selection:
    """Text that the user has selected; never empty. ``text`` is complete: each wire applies its own limit."""

    range: Range
    text: str


@record
class OpenFile:
    """A file that is open in the editor. Buffers without a file are not reported.

    ``focused_at`` is the Unix time in seconds of the last focus; for a file opened in the background, of its opening.
    ``is_active`` is true for at most one file: the file with the focus, or, while the focus is elsewhere (terminal,
    file tree, diff view), the file that had it last. ``language_id`` is LSP's ("python"), ``line_count`` counts the
    text in the editor; both are None if the editor does not report them. Any file may have ``cursor`` and
    ``selection``; only the active file's leave the companion.
    """

    path: str
    focused_at: float
    is_active: bool = False
    cursor: Position | None = None
    selection: Selection | None = None
    is_dirty: bool = False
    language_id: str | None = None
    line_count: int | None = None


class Severity(StrEnum):
    """Severity of a diagnostic."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


@record
class Diagnostic:
    """One finding of a linter, compiler or language server in an open file."""

    path: str
    range: Range
    severity: Severity
    message: str
    source: str | None = None
    code: str | None = None


@record
class EditorIdentity:
    """Identity of an editor. ``name`` is short and lowercase ("neovim"); the user sees ``display_name`` ("Neovim").

    ``pid`` is the process id of the editor, or of the companion itself if there is no editor process.
    """

    name: str
    display_name: str
    pid: int


class Capability(StrEnum):
    """Capability that an editor may lack; every editor has the methods that are not named here."""

    DIFF = "diff"
    """open_diff, close_diff"""
    OPEN = "open"
    """open_file"""
    CLOSE = "close"
    """close_file"""
    TEXT = "text"
    """text, with unsaved changes; without this capability, only the file on disk can be read"""
    DIRTY = "dirty"
    """is_dirty, and OpenFile.is_dirty"""
    DIAGNOSTICS = "diagnostics"
    SELECTION = "selection"
    """OpenFile.cursor and OpenFile.selection"""
    SAVE = "save"
    MESSAGE = "message"
    """show_message"""
    CONFIRM = "confirm"
    """confirm"""
    EXECUTE = "execute"
    """execute_code"""
    TERMINAL = "terminal"
    """set_terminal_environment"""
    RELOAD = "reload"


@record
class ExecutionText:
    """Text that the code printed, or the text form of a value; without terminal colours."""

    text: str


@record
class ExecutionImage:
    """An image that the code displayed. ``data`` is the file's bytes, ``mime_type`` is image/png or image/jpeg."""

    data: bytes
    mime_type: str


ExecutionOutput: TypeAlias = ExecutionText | ExecutionImage


@record
class CodeExecution:
    """Result of code in a kernel: its outputs in order. If ``is_error``, the code raised; the traceback comes last."""

    outputs: tuple[ExecutionOutput, ...] = ()
    is_error: bool = False


# Events of an editor. A closed union: match with assert_never.


@record
class ContextChanged:
    """Open files, focus, cursor, selection or dirty state changed; :meth:`Editor.open_files` returns the new state.

    Editors send this at once and as often as they like; the companion debounces.
    """


@record
class WorkspaceChanged:
    """The workspace folders or their trust changed: call :meth:`Editor.workspace_folders` again."""


@record
class DiagnosticsChanged:
    """The diagnostics of ``paths`` changed."""

    paths: tuple[str, ...]


@record
class FileSaved:
    """The user has just saved a file in the editor: what it has now on disk is theirs, not an agent's."""

    path: str


@record
class FileMentioned:
    """The user wants the agent to look at a file. Lines are 0-based, both ends included; None means the whole file."""

    path: str
    start_line: int | None = None
    end_line: int | None = None


@record
class DiffAccepted:
    """The user accepted the review; ``content`` is the whole text in the view, edits included. No file was written."""

    review_id: str
    content: str


@record
class DiffRejected:
    """The user rejected the review, or closed its view without accepting.

    ``content`` is the text in the view if the user changed it; it is kept. It is None if the text is unchanged or the
    editor cannot report it.
    """

    review_id: str
    content: str | None = None


@record
class DiffEdited:
    """The user changed the text in the view of a review; ``content`` is a copy in case the editor crashes.

    Not a decision. Editors that support it send it within about a second of the last key, later for large texts.
    """

    review_id: str
    content: str


EditorEvent: TypeAlias = (
    ContextChanged
    | WorkspaceChanged
    | DiagnosticsChanged
    | FileSaved
    | FileMentioned
    | DiffAccepted
    | DiffRejected
    | DiffEdited
)


class Editor(Protocol):
    """Operations of every editor. Each method raises :class:`EditorGoneError` once the editor has quit.

    Methods are safe to call concurrently. An editor puts its own deadline on every call that can hang, and raises
    :class:`EditorError` with the reason when the deadline has passed.
    """

    @property
    def identity(self) -> EditorIdentity:
        """Identity of the editor; constant."""
        ...

    @property
    def unavailable(self) -> Mapping[Capability, str]:
        """Capabilities that the editor lacks, each with the reason in words.

        The methods of a missing capability raise :class:`NotAvailableError`.
        """
        ...

    @property
    def is_trusted(self) -> bool | None:
        """Whether the user trusts the workspace; None if the editor has no concept of trust.

        A change is reported as :class:`WorkspaceChanged`.
        """
        ...

    def changes(self) -> AsyncIterator[EditorEvent]:
        """Yield every event from the first iteration on, in order, until the editor quits.

        Only one reader at a time. Decisions about reviews are never dropped, even without a reader.
        """
        ...

    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the absolute paths of the open workspace folders; at least one."""
        ...

    async def open_files(self) -> tuple[OpenFile, ...]:
        """Return a snapshot of the open files, in any order, without diff views, terminals or unnamed buffers."""
        ...

    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        """Show a file; with ``at``, put the cursor at the start of the range, and select the range unless it is empty.

        Raises:
            EditorError: the file does not exist.
        """
        ...

    async def close_file(self, path: str) -> None:
        """Stop showing a file; a file that is not open is ignored.

        Raises:
            EditorError: it has unsaved changes; they are kept.
        """
        ...

    async def open_diff(self, review: DiffReview) -> None:
        """Show the file on disk beside an editable ``review.proposed``; return when the view is visible.

        The user's decision comes later as :class:`DiffAccepted` or :class:`DiffRejected` with ``review.id``.
        A file that does not exist is shown as empty. The target file is never written. Line ends, byte order mark and a
        missing final newline of the text are preserved.

        Raises:
            EditorError: nothing can be shown.
        """
        ...

    async def close_diff(self, review_id: str) -> str | None:
        """Close a diff view without a decision, and return the text in it, with the user's edits.

        No :class:`DiffAccepted` or :class:`DiffRejected` follows. Return None if the view does not exist or is closed.
        """
        ...

    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        """Return the known diagnostics of one file, or of all open files, without waiting for a linter."""
        ...

    async def is_dirty(self, path: str) -> bool | None:
        """Return whether an open file has unsaved changes; None if it is not open."""
        ...

    async def save(self, path: str) -> None:
        """Write an open file to disk. A file without changes is left untouched.

        Raises:
            EditorError: it is not open, or could not be written.
        """
        ...

    async def text(self, path: str) -> str | None:
        """Return the text of an open file with its unsaved changes; None if it is not open.

        Line ends are as in the file.
        """
        ...

    async def reload(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Read open files again that changed on disk, as far as the user's own settings for such files allow it.

        Cursor, folds, views and undo history are kept where the editor can. Files with unsaved changes stay as they
        are, and the user is told once. Return the files that a linter or language server in the editor now checks anew;
        a :class:`DiagnosticsChanged` follows for each.
        """
        ...

    async def show_message(self, text: str) -> None:
        """Show a message to the user, without waiting for a reaction."""
        ...

    async def confirm(self, title: str, text: str) -> bool:
        """Ask the user a yes-or-no question, and wait for the answer; closing the question is a no.

        ``title`` is one line ("Claude Code wants to run code in analysis.ipynb"); ``text`` has the details, in any
        length. There is no deadline: if the caller cancels, the question is closed.
        """
        ...

    async def execute_code(self, code: str, notebook: str | None = None) -> CodeExecution:
        """Run code in the kernel of a notebook; the state of the kernel is kept.

        ``notebook`` is the absolute path of the notebook for which the user gave permission, because another one may
        have the focus by now. None means the open notebook that has or last had the focus. The caller has asked the
        user. Cancelling interrupts the kernel and keeps its state.

        Raises:
            EditorError: no notebook or not this one is open, or its kernel is not running or died.
        """
        ...

    async def set_terminal_environment(self, variables: Mapping[str, str | None]) -> None:
        """Set environment variables of the editor's future terminals; None removes a variable."""
        ...

    async def aclose(self) -> None:
        """Close our diff views, without decisions, and the connection; the editor keeps running."""
        ...


def require(editor: Editor, capability: Capability) -> None:
    """Raise :class:`NotAvailableError` with the editor's reason if it lacks ``capability``."""
    if (reason := editor.unavailable.get(capability)) is not None:
        raise NotAvailableError(editor.identity, reason)


class Consent(Enum):
    """Answer to a request for permission; the values are the words of ``isthmus ide answer``."""

    NO = "no"
    YES = "yes"
    SESSION = "session"
    """Yes to this and every later question of the agent about the same subject, until it disconnects."""

    @staticmethod
    def of(*, yes: bool) -> "Consent":
        """Return the consent of a plain yes or no."""
        return Consent.YES if yes else Consent.NO

    @property
    def is_yes(self) -> bool:
        """Whether permission is given now."""
        return self is not Consent.NO
