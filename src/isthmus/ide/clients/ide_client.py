"""Port of an IDE as its client sees it, the same for both protocols; used by our agent and by the bridge.

Positions, paths and files are the Editor port's (0-based, UTF-16 units, absolute), the context is that of the Gemini
CLI companion protocol. A method that a protocol or server lacks raises :class:`NotOfferedError`, and is not in
:attr:`IdeClient.offers`. ``gemini/peer`` and ``claude/peer`` implement it.
"""

from collections.abc import Callable
from typing import Protocol

from isthmus.errors import IsthmusError
from isthmus.ide.clients.asked_review import Outcome
from isthmus.ide.context import IdeContext
from isthmus.ide.editor import Capability, CodeExecution, Diagnostic, FileMentioned, OpenFile, Range


class IdeError(IsthmusError):
    """The IDE cannot be asked, or did not do what it was asked; the text can be shown to the user."""


class NotOfferedError(IdeError):
    """The IDE lacks an operation: ``not available in IDE: why``."""

    def __init__(self, ide_name: str, reason: str) -> None:
        super().__init__(f"not available in {ide_name}: {reason}")


class UndecidedError(IdeError):
    """A review ended in the IDE without a reliable decision; the user decides elsewhere."""


class IdeClient(Protocol):
    """A connection to an IDE that reconnects by itself when it is lost; for one event loop.

    Methods may be called concurrently. Each has a deadline of its own, except :meth:`open_diff`, which waits for a
    user, and :meth:`execute_code`. All raise :class:`IdeError` while the IDE cannot be asked.
    """

    protocol: str
    """Name of the protocol for users: "Gemini CLI companion" or "Claude Code IDE"."""
    problem: str | None
    """Last problem, in words; None while there has been none."""
    is_closed: bool
    """Whether :meth:`aclose` was called: the client never reconnects."""

    @property
    def ide_name(self) -> str:
        """Name that the IDE gives itself ("Neovim"); "IDE" if it gives none."""
        ...

    @property
    def pid(self) -> int | None:
        """Process id in its discovery file; None if there is none."""
        ...

    @property
    def connected(self) -> bool:
        """Whether the IDE can be asked right now."""
        ...

    @property
    def can_review(self) -> bool:
        """Whether it is connected and shows diffs."""
        ...

    @property
    def offers(self) -> frozenset[Capability]:
        """Operations that it is known to offer; empty before the first connection. ``DIFF`` is reviewing.

        ``SELECTION``: its context has the selected text. ``DIRTY``: it reports which files have unsaved changes.
        """
        ...

    def context(self) -> IdeContext | None:
        """Return what the user looks at, sorted, cut and normalised as the protocol says; None if unknown."""
        ...

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` when the context, the connection or the offers change; return the unsubscriber."""
        ...

    def on_mention(self, callback: Callable[[FileMentioned], None]) -> Callable[[], None]:
        """Call ``callback`` when the user points the agent to a file; return the unsubscriber."""
        ...

    async def refresh(self, seconds: float) -> None:
        """Ask the IDE for what it does not report by itself, for at most ``seconds``, and update :meth:`context`."""
        ...

    async def open_diff(self, path: str, new_content: str, *, on_shown: Callable[[], None] = lambda: None) -> Outcome:
        """Let the user review a new content of the file ``path``, and wait for the decision; no deadline.

        Cancelling closes the view. ``on_shown`` is called once the IDE has reported that the user sees it; only the
        Gemini CLI companion protocol has a message for that.

        Raises:
            UndecidedError: the view went away, or the answer is not a decision.
            IdeError: it cannot be shown, a review of this file is open already, or the connection is lost for long.
        """
        ...

    async def close_diff(self, path: str) -> str | None:
        """Withdraw a review; return the text in its view, or None if the IDE does not report it.

        The :meth:`open_diff` that waits for it returns ``Closed``.
        """
        ...

    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        """Show a file; select ``at`` if the IDE can."""
        ...

    async def close_file(self, path: str) -> None:
        """Stop showing a file."""
        ...

    async def open_files(self) -> tuple[OpenFile, ...]:
        """Return the open files that exist, the active one first, with their state and language as far as known."""
        ...

    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the absolute paths of the folders that the IDE has open."""
        ...

    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        """Return the known diagnostics of one file, or of all."""
        ...

    async def is_dirty(self, path: str) -> bool | None:
        """Return whether a file has unsaved changes; None if it is not open."""
        ...

    async def save(self, path: str) -> None:
        """Write an open file to disk.

        Raises:
            IdeError: it is not open, or cannot be written.
        """
        ...

    async def execute_code(self, code: str) -> CodeExecution:
        """Run code in the kernel of the open notebook; the IDE asks the user. No deadline; the caller cancels."""
        ...

    async def aclose(self) -> None:
        """Close the open views and disconnect; waiting reviews fail with :class:`IdeError`."""
        ...


class ConnectableClient(IdeClient, Protocol):
    """A client of one protocol, before it is connected."""

    async def connect(self) -> None:
        """Find an IDE and connect to it.

        Raises:
            IdeError: none answers; the text lists those that were tried.
        """
        ...
