"""One turn of an agent, from a prompt to its end: what came and was not yet shown, its questions, the user's edits.

It outlives the segments of its task: while a question is open it waits in memory. Sans I/O, except for futures.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from typing_extensions import override

from isthmus.acp.host.agent_question import AgentQuestion
from isthmus.acp.host.edits import UserEdit
from isthmus.acp.host.update_reader import UpdateReader
from isthmus.acp.v1.client_requests import CancelledOutcome, PermissionKind, PermissionRequest, Selected
from isthmus.acp.v1.sessions import StopReason
from isthmus.acp.v1.updates import SessionUpdate
from isthmus.errors import IsthmusError
from isthmus.internal_events import ModelUsed
from isthmus.record import record

REFUSING = (PermissionKind.REJECT_ONCE, PermissionKind.REJECT_ALWAYS)


class Permission(AgentQuestion[Selected | CancelledOutcome]):
    """A question whether a call may run. ``request`` has diffs of whole files."""

    def __init__(self, request: PermissionRequest) -> None:
        super().__init__()
        self.request = request

    def kind_of(self, option_id: str) -> str:
        """Return the kind of an option."""
        return next((item.kind for item in self.request.options if item.option_id == option_id), "")

    @override
    def refuses(self, option_id: str) -> bool:
        return self.kind_of(option_id) in REFUSING

    @override
    def refuse(self) -> None:
        options = {item.kind: item.option_id for item in reversed(self.request.options)}
        refusing = next((options[kind] for kind in REFUSING if kind in options), None)
        self.answer(CancelledOutcome() if refusing is None else Selected(refusing))

    @override
    def cancel(self) -> None:
        self.answer(CancelledOutcome())


@record
class PromptEnd:
    """The end of a turn: the agent's reason, or the error that ended it."""

    reason: StopReason | str = ""
    error: IsthmusError | None = None
    used: tuple[ModelUsed, ...] = ()
    """Tokens of the turn, if the agent states them."""


TurnItem: TypeAlias = SessionUpdate | AgentQuestion[Any] | PromptEnd


class PromptTurn:
    """A turn that works for one task."""

    def __init__(self, task_id: str, reader: UpdateReader) -> None:
        self.task_id = task_id
        self.reader = reader
        self.open: dict[str, AgentQuestion[Any]] = {}
        """Questions that were shown and are not answered, by the ids of their calls."""
        self.notes: list[str] = []
        """Paragraphs that the agent must be told with the next prompt."""
        self.refused: dict[str, str] = {}
        """Reasons of our refusals to write files, by the paths that the agent named."""
        self.is_abandoned = False
        self.has_ended = asyncio.Event()
        self._edits: list[UserEdit] = []
        self._items: deque[TurnItem] = deque()
        self._changed = asyncio.Event()
        self._unread_bytes = 0

    def received(self, size: int) -> None:
        """Count bytes that came from the agent."""
        self._unread_bytes += size

    def is_full(self, items: int, size: int) -> bool:
        """Return whether more items, or more bytes, wait than allowed."""
        return len(self._items) > items or (bool(self._items) and self._unread_bytes > size)

    @property
    def asks(self) -> bool:
        """Whether a question waits for the user, shown or not."""
        return bool(self.open) or any(isinstance(item, AgentQuestion) for item in self._items)

    def add(self, item: TurnItem) -> None:
        """Add what came from the agent."""
        if not self.is_abandoned or isinstance(item, PromptEnd):
            self._items.append(item)
            self._changed.set()
        if isinstance(item, PromptEnd):
            for question in self._questions():
                question.withdraw("The agent does not wait for the answer any more")
                question.cancel()  # else its request would stay open, and count
            self.has_ended.set()

    async def next(self, seconds: float | None) -> TurnItem | None:
        """Return the next item, None if nothing comes within a time."""
        if not self._items:
            self._changed.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
            except TimeoutError:
                return None
        item = self._items.popleft() if self._items else None
        if not self._items:
            self._unread_bytes = 0
        return item

    def abandon(self) -> None:
        """Drop what comes from now on, since nobody waits for the turn any more."""
        self.is_abandoned = True
        self._unread_bytes = 0

    def answer_all(self) -> None:
        """Answer all questions of an abandoned turn."""
        for question in self._questions():
            question.cancel()
        self._items.clear()

    def take_notes(self) -> tuple[str, ...]:
        """Return the notes that have come up since the last call."""
        notes, self.notes = tuple(self.notes), []
        return notes

    def expect_edit(self, edit: UserEdit) -> None:
        """Have the user's text written when the agent writes this file."""
        self._edits.append(edit)

    def edit_for(self, is_same: Callable[[str], bool]) -> UserEdit | None:
        """Return the user's text for a file that the agent writes."""
        return next((edit for edit in self._edits if is_same(edit.path)), None)

    def forget_edit(self, edit: UserEdit) -> bool:
        """Forget a change that was written or cannot be; return whether it was still expected."""
        was_expected = edit in self._edits
        if was_expected:
            self._edits.remove(edit)
        return was_expected

    def _questions(self) -> list[AgentQuestion[Any]]:
        return [*self.open.values(), *(item for item in self._items if isinstance(item, AgentQuestion))]
