"""Decides when the user's focus is sent to the agents, and which part of it. Independent of the wires.

No I/O and no clock: the caller passes the time and the editor's snapshot. Each wire converts the context to its own
form within its own limits: Gemini CLI's in :mod:`context`, Claude Code's in :mod:`isthmus.ide.claude.wire`.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import PurePath

from isthmus.ide.editor import OpenFile
from isthmus.record import record

DEBOUNCE_SECONDS = 0.050
LONGEST_WAIT_SECONDS = 0.250
"""Maximum delay before a change is sent while changes keep coming."""


@record
class UserFocus:
    """The user's focus. ``files`` are those that agents may know of: the active one first, the others by last focus.

    All files exist on disk. Only the first may be active, with a cursor and a selection.
    """

    files: tuple[OpenFile, ...] = ()
    is_trusted: bool | None = None

    @property
    def active_file(self) -> OpenFile | None:
        """File that has or last had the focus; None if no file is active."""
        return self.files[0] if self.files and self.files[0].is_active else None


class ContextTracker:
    """Tracker of the user's focus: decides when a context is due and what it contains.

    ``is_visible`` returns whether agents may know of a path: it exists and is not hidden. Times are seconds of any
    monotonic clock. A context is due 50 ms after the last change, but at most 250 ms after the first unsent change.
    """

    def __init__(self, is_visible: Callable[[str], bool] = os.path.isfile) -> None:
        self._is_visible = is_visible
        self._first: float | None = None
        self._due: float | None = None
        self._active: str | None = None
        self._readings = self._updated = 0
        self._latest = UserFocus()

    @property
    def due(self) -> float | None:
        """Time at which to read the editor; None while nothing has changed."""
        return self._due

    @property
    def latest(self) -> UserFocus:
        """Latest context from :meth:`update`, for a client that has just connected."""
        return self._latest

    def changed(self, now: float) -> None:
        """Note that something changed."""
        if self._first is None:
            self._first = now
        self._due = min(now + DEBOUNCE_SECONDS, self._first + LONGEST_WAIT_SECONDS)

    def reading(self) -> int:
        """Start a reading of the editor, and return its number; later changes become due again."""
        self._first = self._due = None
        self._readings += 1
        return self._readings

    def update(
        self, files: Iterable[OpenFile], is_trusted: bool | None = None, reading: int | None = None
    ) -> UserFocus | None:
        """Record the editor's snapshot, and return the context to send, or None if it equals the last one.

        A snapshot from an older ``reading`` than the last one arrived late and is ignored.
        """
        reading = self._updated if reading is None else reading
        if reading < self._updated:
            return None
        self._updated = reading
        context = UserFocus(self.filtered(files), is_trusted)
        if context == self._latest:
            return None
        self._latest = context
        return context

    def filtered(self, files: Iterable[OpenFile]) -> tuple[OpenFile, ...]:
        """Return only the files that agents may know of, in the order of :attr:`UserFocus.files`."""
        existing = [file for file in files if can_be_sent(file.path) and self._is_visible(file.path)]
        active = next((file for file in existing if file.is_active), None)
        active = active or next((file for file in existing if file.path == self._active), None)
        self._active = active.path if active else None
        unfocused = sorted((file for file in existing if file is not active), key=lambda file: -file.focused_at)
        others = tuple(replace(file, is_active=False, cursor=None, selection=None) for file in unfocused)
        first = () if active is None else (replace(active, is_active=True),)
        return first + others


def can_be_sent(path: str) -> bool:
    """Return whether a path can be sent to agents: it is absolute, and valid Unicode as JSON requires."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return PurePath(path).is_absolute()
