"""The Editor port: commands that a companion gives an editor, and events that the editor reports.

Events go out through :meth:`Editor.changes`, commands come in through the other methods; an editor never calls back.
An editor knows no protocol: no MCP, no tokens, no clients. It only knows files, views and a user.

Positions are defined here once: **line and character are 0-based, character counts UTF-16 code units** (as in LSP).
Wire modules and editors convert at their own edge: the Gemini CLI companion protocol is 1-based, Neovim has 1-based
lines and byte columns. Paths are absolute strings, as the editor or the client wrote them; the port never resolves
symlinks.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Protocol, TypeAlias, runtime_checkable

from isthmus.errors import IsthmusError
from isthmus.ide.reviews.review import DiffReview


class EditorError(IsthmusError):
    """The editor could not do what was asked; the text can be shown to the client or user."""


class NotAvailableError(EditorError):
    """The editor lacks a capability. The text is ``not available in EDITOR: why``."""

    def __init__(self, editor: "EditorIdentity", reason: str) -> None:
        super().__init__(f"not available in {editor.display_name}: {reason}")


class EditorGoneError(EditorError):
    """The editor quit or the connection to it is lost; no further call can succeed."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two characters. ``line`` and ``character`` are 0-based; ``character`` is in UTF-16 units."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class Range:
    """Half-open range from ``start`` to ``end`` (not included); ``start`` is never after ``end``."""

    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class Selection:
    """Text that the user has selected; never empty. ``text`` is whole: each wire applies its own limit."""

    range: Range
    text: str


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that the editor has open. Buffers without a file behind them are not reported.

    ``focused_at`` is the Unix time in seconds of its last focus (for a file opened in the background: of its opening).
    ``is_active`` is true for at most one file: the one with the focus, or the one that had it last while the focus is
    elsewhere (terminal, file tree, diff view).
    ``language_id`` is LSP's ("python"), ``line_count`` that of the text in the editor; None if the editor does not
    report it. ``cursor`` and ``selection`` may be given for any file; only those of the active one leave the companion.
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


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding of a linter, compiler or language server in an open file."""

    path: str
    range: Range
    severity: Severity
    message: str
    source: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class EditorIdentity:
    """Identity of an editor: ``name`` is short and lowercase ("neovim"), ``display_name`` is for the user ("Neovim").

    ``pid`` is the process id of the editor, or of the companion itself if there is no editor process.
    """

    name: str
    display_name: str
    pid: int


class Capability(StrEnum):
    """Capability that an editor may lack; every editor has those that are not listed."""

    DIFF = "diff"
    """open_diff, close_diff"""
    OPEN = "open"
    """open_file"""
    CLOSE = "close"
    """close_file"""
    TEXT = "text"
    """text, including unsaved changes; without it, only the file on disk can be read"""
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


@dataclass(frozen=True, slots=True)
class ExecutionText:
    """Text that the code wrote, or the text form of a value. Without terminal colours."""

    text: str


@dataclass(frozen=True, slots=True)
class ExecutionImage:
    """An image that the code showed; ``data`` is the file's bytes, ``mime_type`` image/png or image/jpeg."""

    data: bytes
    mime_type: str


ExecutionOutput: TypeAlias = ExecutionText | ExecutionImage


@dataclass(frozen=True, slots=True)
class CodeExecution:
    """Outcome of code in a kernel: its outputs in order. If ``is_error``, it raised; the traceback comes last."""

    outputs: tuple[ExecutionOutput, ...] = ()
    is_error: bool = False


# Events of an editor. A closed union: match with assert_never.


@dataclass(frozen=True, slots=True)
class ContextChanged:
    """Open files, focus, cursor, selection or dirty state changed; :meth:`Editor.open_files` returns the new state.

    Editors send it at once and as often as they like; the companion debounces.
    """


@dataclass(frozen=True, slots=True)
class WorkspaceChanged:
    """The workspace folders or their trust changed: call :meth:`Editor.workspace_folders` again."""


@dataclass(frozen=True, slots=True)
class DiagnosticsChanged:
    """The diagnostics of ``paths`` changed."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileMentioned:
    """The user wants the agent to look at a file; lines are 0-based, both ends included; None is the whole file."""

    path: str
    start_line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True, slots=True)
class DiffAccepted:
    """The user accepted the review; ``content`` is the whole text they saw, with their edits. No file was written."""

    review_id: str
    content: str


@dataclass(frozen=True, slots=True)
class DiffRejected:
    """The user rejected the review, or closed its view without accepting.

    ``content`` is the text in the view if the user changed it; it is kept. None: unchanged, or the editor cannot say.
    """

    review_id: str
    content: str | None = None


@dataclass(frozen=True, slots=True)
class DiffEdited:
    """The text in the view of a review is now ``content``; not a decision, but a copy in case the editor crashes.

    Editors that can send it do so within about a second of the last key (later for large texts); others never do.
    """

    review_id: str
    content: str


EditorEvent: TypeAlias = (
    ContextChanged | WorkspaceChanged | DiagnosticsChanged | FileMentioned | DiffAccepted | DiffRejected | DiffEdited
)


class Editor(Protocol):
    """Operations of every editor. Each method raises :class:`EditorGoneError` once the editor has quit.

    Methods are safe to call concurrently. An editor puts its own deadline on every call that can hang, and raises
    :class:`EditorError` with the reason when the deadline has passed.
    """

    @property
    def identity(self) -> EditorIdentity:
        """Identity of the editor; constant from the moment the object exists."""
        ...

    @property
    def unavailable(self) -> Mapping[Capability, str]:
        """Capabilities that it lacks, each with the reason in words; empty if it has them all.

        The methods of a missing capability raise :class:`NotAvailableError`.
        """
        ...

    @property
    def is_trusted(self) -> bool | None:
        """Whether the user trusts the workspace, as the editor knows it; None if it has no such notion.

        A change is reported as :class:`WorkspaceChanged`.
        """
        ...

    def changes(self) -> AsyncIterator[EditorEvent]:
        """Yield every event from the first iteration on, in order, until the editor quits.

        One reader at a time. A decision about a review is never dropped, also not while nobody reads.
        """
        ...

    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the absolute paths of the open workspace folders; at least one."""
        ...

    async def open_files(self) -> tuple[OpenFile, ...]:
        """Return a snapshot of the open files, in any order, without diff views, terminals or unnamed buffers."""
        ...

    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        """Show a file; with ``at`` put the cursor at its start, and select the range unless it is empty.

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
        """Show the file as it is on disk beside ``review.proposed``, editable; return when the view is visible.

        The user's decision comes later as :class:`DiffAccepted` or :class:`DiffRejected` with ``review.id``.
        A file that does not exist is shown as empty. The target file is never written. Text goes in and comes out with
        its own line ends, byte order mark and (missing) final newline.

        Raises:
            EditorError: nothing can be shown.
        """
        ...

    async def close_diff(self, review_id: str) -> str | None:
        """Close a diff view without a decision, and return the text in it, with the user's edits.

        No :class:`DiffAccepted` or :class:`DiffRejected` follows. Return None if there is no such view (any more).
        """
        ...

    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        """Return the known diagnostics of one file, or of all open files; never wait for a linter."""
        ...

    async def is_dirty(self, path: str) -> bool | None:
        """Return whether an open file has unsaved changes; None when it is not open."""
        ...

    async def save(self, path: str) -> None:
        """Write an open file to disk. A file without changes is left untouched.

        Raises:
            EditorError: it is not open, or could not be written.
        """
        ...

    async def text(self, path: str) -> str | None:
        """Return the text of an open file as the user sees it, unsaved changes included; None when it is not open.

        Line ends are as in the file.
        """
        ...

    async def show_message(self, text: str) -> None:
        """Show a message to the user, without waiting for them."""
        ...

    async def confirm(self, title: str, text: str) -> bool:
        """Ask the user a yes-or-no question, and wait; closing it is a no.

        ``title`` is one line ("Claude Code wants to run code in analysis.ipynb"), ``text`` is what it is about, of any
        length. There is no deadline: the caller cancels, and the question is closed.
        """
        ...

    async def execute_code(self, code: str, notebook: str | None = None) -> CodeExecution:
        """Run code in the kernel of a notebook, whose state lasts.

        ``notebook`` is the absolute path of the one that the user allowed it in: another one may have the focus by now.
        None is the open notebook that has, or had last, the focus. Does not ask the user: the caller has. Cancelling
        interrupts the kernel and leaves its state.

        Raises:
            EditorError: no notebook is open, or not that one, or its kernel does not run or died.
        """
        ...

    async def set_terminal_environment(self, variables: Mapping[str, str | None]) -> None:
        """Set variables for the terminals that are opened inside the editor from now on; None removes a variable."""
        ...

    async def aclose(self) -> None:
        """Close our diff views (no decision follows) and the connection; the editor itself stays."""
        ...


def require(editor: Editor, capability: Capability) -> None:
    """Raise :class:`NotAvailableError` with the editor's reason if it lacks ``capability``."""
    if (reason := editor.unavailable.get(capability)) is not None:
        raise NotAvailableError(editor.identity, reason)


class Consent(Enum):
    """An answer; the values are the words of ``isthmus ide answer``."""

    NO = "no"
    YES = "yes"
    SESSION = "session"
    """Yes, also to every later question of this agent about the same subject, until it leaves."""

    @staticmethod
    def of(*, yes: bool) -> "Consent":
        """Return the consent of a plain yes or no."""
        return Consent.YES if yes else Consent.NO

    @property
    def is_yes(self) -> bool:
        """Whether it is allowed now."""
        return self is not Consent.NO


@runtime_checkable
class ConsentTaker(Protocol):
    """An editor whose user can say yes for the whole session."""

    async def consent(self, title: str, text: str) -> Consent:
        """Ask as :meth:`isthmus.ide.editor.Editor.confirm` does, and offer a yes for the session too."""
        ...
