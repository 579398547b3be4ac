"""Client port of an IDE, common to both protocols; used by our agent and by the bridge.

Positions, paths and files are as in the Editor port (0-based, UTF-16 units, absolute); the context is the Gemini CLI
companion protocol's. A method that the protocol or server lacks raises :class:`NotOfferedError` and is missing from
:attr:`IdeClient.offers`. ``gemini/peer`` and ``claude/peer`` implement the port.
"""

from collections.abc import Callable
from typing import Protocol

from isthmus.errors import IsthmusError
from isthmus.ide.clients.asked_review import Outcome
from isthmus.ide.context import IdeContext
from isthmus.ide.editor import Capability, CodeExecution, Diagnostic, FileMentioned, OpenFile, Range


class IdeError(IsthmusError):
    """A request that could not be sent to the IDE or that failed there; the text can be shown to the user."""


class NotOfferedError(IdeError):
    """An operation that the IDE lacks. The text is ``not available in IDE: reason``."""

    def __init__(self, ide_name: str, reason: str) -> None:
        super().__init__(f"not available in {ide_name}: {reason}")


class UndecidedError(IdeError):
    """A review that ended in the IDE without a reliable decision; the user decides elsewhere."""


class IdeClient(Protocol):
    """A connection to an IDE that reconnects automatically; for one event loop.

    Methods may be called concurrently. Each has its own deadline, except :meth:`open_diff`, which waits for the user,
    and :meth:`execute_code`. All raise :class:`IdeError` while the IDE is not connected.
    """

    protocol: str
    """Name of the protocol for users: "Gemini CLI companion" or "Claude Code IDE"."""
    problem: str | None
    """Last problem in words; None if there was none."""
    is_closed: bool
    """Whether :meth:`aclose` was called: the client never reconnects."""

    @property
    def ide_name(self) -> str:
        """Name that the IDE reports ("Neovim"); "IDE" if it reports none."""
        ...

    @property
    def pid(self) -> int | None:
        """Process id in the IDE's discovery file; None if there is none."""
        ...

    @property
    def connected(self) -> bool:
        """Whether the IDE is connected now."""
        ...

    @property
    def can_review(self) -> bool:
        """Whether the IDE is connected and shows diffs."""
        ...

    @property
    def offers(self) -> frozenset[Capability]:
        """Operations that the IDE is known to offer; empty before the first connection. ``DIFF`` means reviews.

        ``SELECTION`` means selected text in the context, ``DIRTY`` reports of files with unsaved changes.
        """
        ...

    def context(self) -> IdeContext | None:
        """Return the user's context, sorted and limited as the protocol requires; None if unknown."""
        ...

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` when the context, connection or offers change; return a function that unsubscribes."""
        ...

    def on_mention(self, callback: Callable[[FileMentioned], None]) -> Callable[[], None]:
        """Call ``callback`` when the user points the agent to a file; return a function that unsubscribes."""
        ...

    async def refresh(self, seconds: float) -> None:
        """Request information that the IDE does not send by itself, and update :meth:`context`, within ``seconds``."""
        ...

    async def open_diff(self, path: str, new_content: str, *, on_shown: Callable[[], None] = lambda: None) -> Outcome:
        """Let the user review new content of the file ``path``, and wait for the decision without a deadline.

        Cancelling closes the view. ``on_shown`` is called when the IDE has reported that the view is visible; only the
        Gemini CLI companion protocol has a message for that.

        Raises:
            UndecidedError: the view disappeared, or the answer is not a decision.
            IdeError: the review cannot be shown, the file already has one, or the connection was lost for long.
        """
        ...

    def answered_elsewhere(self, path: str, by: str) -> None:
        """Note who answered the question of the last review of a file; our companions tell the user.

        The user of an open review is told when its view closes. After a decision that came too late, at once.
        """
        ...

    async def close_diff(self, path: str) -> str | None:
        """Withdraw a review; return the text in its view, or None if the IDE does not report it.

        The waiting call of :meth:`open_diff` returns ``Closed``.
        """
        ...

    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        """Show a file; select the range ``at`` if the IDE can."""
        ...

    async def close_file(self, path: str) -> None:
        """Stop showing a file."""
        ...

    async def open_files(self) -> tuple[OpenFile, ...]:
        """Return the open files that exist, the active one first, with state and language if known."""
        ...

    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the absolute paths of the folders that the IDE has open."""
        ...

    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        """Return the known diagnostics of one file or of all files."""
        ...

    async def is_dirty(self, path: str) -> bool | None:
        """Return whether a file has unsaved changes; None if it is not open."""
        ...

    async def save(self, path: str) -> None:
        """Write an open file to disk.

        Raises:
            IdeError: the file is not open or cannot be written.
        """
        ...

    async def execute_code(self, code: str) -> CodeExecution:
        """Run code in the kernel of the open notebook after the IDE has asked the user; the caller sets a deadline."""
        ...

    async def aclose(self) -> None:
        """Close the open views and disconnect; open reviews fail with :class:`IdeError`."""
        ...


class ConnectableClient(IdeClient, Protocol):
    """A client of one protocol, before it is connected."""

    async def connect(self) -> None:
        """Find an IDE and connect to it.

        Raises:
            IdeError: no IDE answers; the text lists the ones tried.
        """
        ...
