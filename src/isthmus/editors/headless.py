"""The headless editor: no editor program at all. It keeps the open files, the cursor and the diffs itself.

The user acts through commands (``isthmus ide ...``) or through the methods at the end of the class, which are what
the hands do in a real editor. Bytes of files are kept: what is saved has the line ends and the byte order mark it had.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from isthmus.editors.editor_base import EditorBase
from isthmus.editors.review_page.board import PendingReviews
from isthmus.files.atomic import read_regular, write_atomic
from isthmus.files.locations import absolute
from isthmus.ide.editor import (
    Capability,
    ContextChanged,
    Diagnostic,
    DiagnosticsChanged,
    EditorError,
    EditorIdentity,
    FileMentioned,
    OpenFile,
    Position,
    Range,
    Selection,
)
from isthmus.ide.positions import offset_at, within
from isthmus.ide.reviews.review import DiffReview
from isthmus.text.text_file import BinaryContentError, TextFile, UnencodableTextError, decode_text

MAXIMUM_FILE_BYTES = 64 * 1024 * 1024


_UNAVAILABLE: Mapping[Capability, str] = MappingProxyType(
    {
        Capability.CONFIRM: "it has no screen to ask on; answer with `isthmus ide answer`",
        Capability.EXECUTE: "it has no notebooks; start the companion with --editor jupyter",
        Capability.TERMINAL: "it opens no terminals; start agents with `isthmus companion exec`",
    }
)


@dataclass(slots=True)
class _Buffer:
    focused_at: float
    at: Range = field(default_factory=lambda: Range(Position(0, 0), Position(0, 0)))
    unsaved: TextFile | None = None


class HeadlessEditor(EditorBase):
    """An :class:`~isthmus.ide.editor.Editor` without a screen. Its process id is the companion's."""

    def __init__(
        self, folders: Sequence[str], *, is_trusted: bool | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(
            EditorIdentity("headless", "Isthmus (headless)", os.getpid()), _UNAVAILABLE, is_trusted=is_trusted
        )
        self._board = PendingReviews(self._events.put)
        self._folders = tuple(folders)
        self._clock = clock
        self._buffers: dict[str, _Buffer] = {}
        self._diagnostics: dict[str, tuple[Diagnostic, ...]] = {}
        self._active: str | None = None

    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the folders it was started with."""
        self._require_present()
        return self._folders

    async def open_files(self) -> tuple[OpenFile, ...]:
        """Return the files that the user, or an agent, opened."""
        self._require_present()
        return tuple(self._snapshot(path, buffer) for path, buffer in self._buffers.items())

    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        """Add to the open files, focus, move the cursor."""
        self._require_present()
        path = absolute(path)
        text = self._text(path).text  # raises when it cannot be read
        buffer = self._buffers.setdefault(path, _Buffer(self._now()))
        if at is not None:
            buffer.at = within(text, at)
        if focus:
            buffer.focused_at = self._now()
            self._active = path
        self._events.put(ContextChanged())

    async def close_file(self, path: str) -> None:
        """Remove from the open files; the file that was focused before it becomes the active one."""
        self._require_present()
        path = absolute(path)
        buffer = self._buffers.get(path)
        if buffer is None:
            return
        if buffer.unsaved is not None:
            raise EditorError(f"{path} has unsaved changes; save it first")
        del self._buffers[path]
        if self._active == path:
            self._active = max(self._buffers, key=lambda other: self._buffers[other].focused_at, default=None)
        self._events.put(ContextChanged())

    async def open_diff(self, review: DiffReview) -> None:
        """Keep the review until it is answered."""
        self._require_present()
        self._board.open(review)

    async def close_diff(self, review_id: str) -> str | None:
        """Forget the review; its text is returned."""
        self._require_present()
        return self._board.close(review_id)

    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        """What the user set with ``isthmus ide diagnostics``."""
        self._require_present()
        if path is not None:
            return self._diagnostics.get(absolute(path), ())
        return tuple(diagnostic for found in self._diagnostics.values() for diagnostic in found)

    async def is_dirty(self, path: str) -> bool | None:
        """Return whether :meth:`edit` changed it since it was saved."""
        self._require_present()
        buffer = self._buffers.get(absolute(path))
        return buffer.unsaved is not None if buffer is not None else None

    async def save(self, path: str) -> None:
        """Write the unsaved text."""
        self._require_present()
        path = absolute(path)
        buffer = self._buffers.get(path)
        if buffer is None:
            raise EditorError(f"{path} is not open; open it first")
        if buffer.unsaved is None:
            return
        try:
            write_atomic(Path(path), buffer.unsaved.form.encode(buffer.unsaved.text))
        except OSError as error:
            raise EditorError(f"{path} could not be written: {error.strerror or error}") from error
        except UnencodableTextError as error:
            raise EditorError(f"{path} could not be written: {error}") from error
        buffer.unsaved = None
        self._events.put(ContextChanged())

    async def text(self, path: str) -> str | None:
        """With what :meth:`edit` typed."""
        self._require_present()
        path = absolute(path)
        return self._text(path).text if path in self._buffers else None

    async def show_message(self, text: str) -> None:
        """Keep it for ``isthmus ide status``; the newest twenty stay."""
        self._require_present()
        self._board.say(text)

    async def aclose(self) -> None:
        """Close the views and stop."""
        self._board.clear()
        self.quit()

    # The user's hands and eyes.

    @property
    def messages(self) -> tuple[str, ...]:
        """What the user was told, oldest first; the newest twenty."""
        return self._board.messages

    @property
    def open_reviews(self) -> tuple[DiffReview, ...]:
        """The reviews whose views are open, oldest first."""
        return tuple(view.review for view in self._board.views)

    def edit(self, path: str, text: str) -> None:
        """Type a new text into an open file, without saving it."""
        path = absolute(path)
        self._buffers[path].unsaved = TextFile(text, self._text(path).form)
        self._events.put(ContextChanged())

    def edit_diff(self, review_id: str, text: str) -> None:
        """Change the proposed text in a diff view."""
        self._board.edit(review_id, text)

    def accept_diff(self, review_id: str) -> None:
        """Accept the text in a diff view."""
        if (view := self._board.view(review_id)) is not None:
            self._board.accept(review_id, view.text)

    def reject_diff(self, review_id: str) -> None:
        """Close a diff view without accepting."""
        self._board.reject(review_id)

    def mention(self, path: str, start_line: int | None = None, end_line: int | None = None) -> None:
        """Point the agent to a file; lines 0-based, both included."""
        self._events.put(FileMentioned(absolute(path), start_line, end_line))

    def set_diagnostics(self, path: str, found: Sequence[Diagnostic]) -> None:
        """Replace the diagnostics of one file; none: it is clean."""
        path = absolute(path)
        self._diagnostics.pop(path, None)
        if found:
            self._diagnostics[path] = tuple(found)
        self._events.put(DiagnosticsChanged((path,)))

    def quit(self) -> None:
        """Close the editor. What happened before is still told."""
        self._end("the headless editor has quit; start the companion again")

    def _now(self) -> float:
        """Return the time, but never the same twice: the order of focus has to stay clear."""
        return max([self._clock(), *(buffer.focused_at + 0.001 for buffer in self._buffers.values())])

    def _snapshot(self, path: str, buffer: _Buffer) -> OpenFile:
        is_active = path == self._active
        selection = None
        if is_active and buffer.at.start != buffer.at.end:
            selection = self._selection(path, buffer)
        cursor = buffer.at.end if selection is not None else buffer.at.start
        return OpenFile(path, buffer.focused_at, is_active, cursor, selection, buffer.unsaved is not None)

    def _selection(self, path: str, buffer: _Buffer) -> Selection | None:
        try:
            text = self._text(path).text
        except EditorError:
            return None  # deleted meanwhile
        start, end = offset_at(text, buffer.at.start), offset_at(text, buffer.at.end)
        return Selection(buffer.at, text[start:end]) if end > start else None

    def _text(self, path: str) -> TextFile:
        buffer = self._buffers.get(path)
        if buffer is not None and buffer.unsaved is not None:
            return buffer.unsaved
        try:
            return decode_text(read_regular(Path(path), MAXIMUM_FILE_BYTES))
        except OSError as error:
            raise EditorError(f"{path} cannot be opened: {error.strerror}") from error
        except (BinaryContentError, ValueError):
            return TextFile("")  # an image, say: it can be open, but nothing in it can be selected
