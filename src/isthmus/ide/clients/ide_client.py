"""Somebody's IDE as its client sees it: one port for both protocols, used by our agent and by the bridge.

Positions, paths and files are the Editor port's (0-based, UTF-16 units, absolute), the context is spec 1's. What a
protocol or a server lacks raises :class:`NotOfferedError`, and is not in :attr:`IdeClient.offers`. Deliberately not
here: how an IDE is found and spoken to (``gemini/peer`` for spec 1, ``claude/peer`` for spec 3).
"""

from collections.abc import Callable
from typing import Protocol

from isthmus.errors import IsthmusError
from isthmus.ide.clients.asked_review import Outcome
from isthmus.ide.context import IdeContext
from isthmus.ide.editor import Capability, CodeExecution, Diagnostic, FileMentioned, OpenFile, Range


class IdeError(IsthmusError):
    """The IDE cannot be asked, or did not do what it was asked; the text can go to the user as it is."""


class NotOfferedError(IdeError):
    """The IDE never can: ``not available in IDE: why``."""

    def __init__(self, ide_name: str, reason: str) -> None:
        super().__init__(f"not available in {ide_name}: {reason}")


class UndecidedError(IdeError):
    """A review ended in the IDE without a decision that can be relied on: the user decides elsewhere."""


class IdeClient(Protocol):
    """A connection to an IDE that is taken up again by itself when it is lost; for one event loop.

    Methods may be called concurrently. Each has a deadline of its own, except :meth:`open_diff`, which waits for a
    user, and :meth:`execute_code`. All raise :class:`IdeError` while the IDE cannot be asked.
    """

    protocol: str
    """Name of the protocol for users: "Gemini CLI companion" or "Claude Code IDE"."""
    problem: str | None
    """The last thing that went wrong, in words; None while nothing has."""
    is_closed: bool
    """Whether :meth:`aclose` was called: the connection does not come back."""

    @property
    def ide_name(self) -> str:
        """What the IDE calls itself ("Neovim"); "IDE" when it does not say."""
        ...

    @property
    def pid(self) -> int | None:
        """The process id that its discovery file has; None: it does not say."""
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
        """What it can be asked, as far as it is known; empty before the first connection. ``DIFF`` is reviewing.

        ``SELECTION``: its context has the selected text. ``DIRTY``: it tells which files have unsaved changes.
        """
        ...

    def context(self) -> IdeContext | None:
        """What the user looks at: sorted, cut and normalised as spec 1 says; None when nothing is known."""
        ...

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` when :meth:`context`, :attr:`connected` or :attr:`offers` changes; the result ends that."""
        ...

    def on_mention(self, callback: Callable[[FileMentioned], None]) -> Callable[[], None]:
        """Call ``callback`` when the user wants the agent to look at a file; the result ends that."""
        ...

    async def refresh(self, seconds: float) -> None:
        """Ask the IDE for what it does not tell by itself, so that :meth:`context` has it; for so long at most."""
        ...

    async def open_diff(self, path: str, new_content: str, *, on_shown: Callable[[], None] = lambda: None) -> Outcome:
        """Let the user review a new content of the file ``path``, and wait for the decision; no deadline.

        Cancelling closes the view. ``on_shown`` is called once the IDE has said that the user sees it; only spec 1
        has a message for that.

        Raises:
            UndecidedError: the view went away, or was answered by something that is no decision.
            IdeError: it cannot be shown, a review of this file is open already, or the connection is lost for long.
        """
        ...

    async def close_diff(self, path: str) -> str | None:
        """Take a review back; the text in its view, or None where the IDE does not tell it.

        The :meth:`open_diff` that waits for it returns ``Closed``.
        """
        ...

    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        """Show a file; ``at`` is selected where the IDE can."""
        ...

    async def close_file(self, path: str) -> None:
        """Stop showing a file."""
        ...

    async def open_files(self) -> tuple[OpenFile, ...]:
        """The open files that exist, the active one first; with what the IDE knows of their state and language."""
        ...

    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the absolute paths of the folders that the IDE has open."""
        ...

    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        """Return the known diagnostics of one file, or of all."""
        ...

    async def is_dirty(self, path: str) -> bool | None:
        """Return whether a file has unsaved changes; None when it is not open."""
        ...

    async def save(self, path: str) -> None:
        """Write an open file to disk; raises :class:`IdeError` when it is not open."""
        ...

    async def execute_code(self, code: str) -> CodeExecution:
        """Run code in the kernel of the open notebook; the IDE asks the user. No deadline; the caller cancels."""
        ...

    async def aclose(self) -> None:
        """Close the views that are open and disconnect; reviews that wait fail with :class:`IdeError`."""
        ...
