"""The headless editor: without an editor program, it keeps the open files, the cursor and the diffs itself.

The user acts through commands (``isthmus ide ...``), which call the methods at the end of the class. Saved files keep
their line ends and their byte order mark.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from typing_extensions import override

from isthmus.editors.editor_base import EditorBase
from isthmus.editors.review_page.pending_reviews import PendingReviews
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
    FileSaved,
    OpenFile,
    Position,
    Range,
    Selection,
)
from isthmus.ide.positions import offset_at, within
from isthmus.ide.reviews.review import DiffReview
from isthmus.text.text_file import BinaryContentError, TextFile, UnencodableTextError, decode_text

MAXIMUM_FILE_BYTES = 64 * 1024 * 1024

UNAVAILABLE: Mapping[Capability, str] = MappingProxyType(
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
    is_outdated: bool = False
    """Whether the user was told that the file changed on disk since the unsaved changes began."""


class HeadlessEditor(EditorBase):
    """An :class:`~isthmus.ide.editor.Editor` without a screen. Its process id is the companion's."""

    def __init__(
        self,
        folders: Sequence[str],
        *,
        is_trusted: bool | None = None,
        clock: Callable[[], float] = time.time,
        name: str = "headless",
        unavailable: Mapping[Capability, str] = UNAVAILABLE,
    ) -> None:
        super().__init__(EditorIdentity(name, f"Isthmus ({name})", os.getpid()), unavailable, is_trusted=is_trusted)
        self._reviews = PendingReviews(self._events.put)
        self._folders = tuple(folders)
        self._clock = clock
        self._buffers: dict[str, _Buffer] = {}
        self._diagnostics: dict[str, tuple[Diagnostic, ...]] = {}
        self._active: str | None = None

    @override
    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the folders that the companion was started with."""
        self._require_present()
        return self._folders

    @override
    async def open_files(self) -> tuple[OpenFile, ...]:
        """Return the files that the user or an agent opened."""
        self._require_present()
        return tuple(self._snapshot(path, buffer) for path, buffer in self._buffers.items())

    @override
    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        """Add a file to the open files, focus it, and move the cursor."""
        self._require_present()
        path = absolute(path)
        text = self._text(path).text  # raises if it cannot be read
        buffer = self._buffers.setdefault(path, _Buffer(self._now()))
        if at is not None:
            buffer.at = within(text, at)
        if focus:
            buffer.focused_at = self._now()
            self._active = path
        self._events.put(ContextChanged())

    @override
    async def close_file(self, path: str) -> None:
        """Remove a file from the open files; the one that had the focus before it becomes active."""
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

    @override
    async def open_diff(self, review: DiffReview) -> None:
        """Keep the review until it is answered."""
        self._require_present()
        self._reviews.open(review)

    @override
    async def close_diff(self, review_id: str) -> str | None:
        """Forget the review and return its text."""
        self._require_present()
        return self._reviews.close(review_id)

    @override
    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        """Return what the user set with ``isthmus ide diagnostics``."""
        self._require_present()
        if path is not None:
            return self._diagnostics.get(absolute(path), ())
        return tuple(diagnostic for found in self._diagnostics.values() for diagnostic in found)

    @override
    async def is_dirty(self, path: str) -> bool | None:
        """Return whether :meth:`edit` changed the file since it was saved."""
        self._require_present()
        buffer = self._buffers.get(absolute(path))
        return buffer.unsaved is not None if buffer is not None else None

    @override
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
        buffer.unsaved, buffer.is_outdated = None, False
        self._events.put(FileSaved(path))
        self._events.put(ContextChanged())

    @override
    async def text(self, path: str) -> str | None:
        """Return the text of an open file, with the edits of :meth:`edit`."""
        self._require_present()
        path = absolute(path)
        return self._text(path).text if path in self._buffers else None

    @override
    async def reload(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Report files with unsaved changes; the text of all others is read from disk whenever it is asked for."""
        self._require_present()
        for path in map(absolute, paths):
            buffer = self._buffers.get(path)
            if buffer is not None and buffer.unsaved is not None and not buffer.is_outdated:
                buffer.is_outdated = True
                await self.show_message(f"{path} changed on disk; its unsaved changes here are kept")
        self._events.put(ContextChanged())  # pages that show the files read them again
        return ()

    @override
    async def show_message(self, text: str) -> None:
        """Keep a message for ``isthmus ide status``, with the 19 before it."""
        self._require_present()
        self._reviews.show_message(text)

    @override
    async def aclose(self) -> None:
        """Close the views and stop."""
        self._reviews.clear()
        self.quit()

    # Acts of the user.

    @property
    def messages(self) -> tuple[str, ...]:
        """Messages to the user, oldest first; the newest twenty."""
        return self._reviews.messages

    @property
    def open_reviews(self) -> tuple[DiffReview, ...]:
        """Reviews whose views are open, oldest first."""
        return tuple(view.review for view in self._reviews.views)

    def edit(self, path: str, text: str) -> None:
        """Replace the text of an open file without saving it."""
        path = absolute(path)
        self._buffers[path].unsaved = TextFile(text, self._text(path).form)
        self._events.put(ContextChanged())

    def edit_diff(self, review_id: str, text: str) -> None:
        """Change the proposed text in a diff view."""
        self._reviews.edit(review_id, text)

    def accept_diff(self, review_id: str) -> None:
        """Accept the text in a diff view."""
        if (view := self._reviews.view(review_id)) is not None:
            self._reviews.accept(review_id, view.text)

    def reject_diff(self, review_id: str) -> None:
        """Close a diff view without accepting."""
        self._reviews.reject(review_id)

    def mention(self, path: str, start_line: int | None = None, end_line: int | None = None) -> None:
        """Point the agent to lines of a file, 0-based, both ends included; None: the whole file."""
        self._events.put(FileMentioned(absolute(path), start_line, end_line))

    def set_diagnostics(self, path: str, found: Sequence[Diagnostic]) -> None:
        """Replace the diagnostics of one file."""
        path = absolute(path)
        self._diagnostics.pop(path, None)
        if found:
            self._diagnostics[path] = tuple(found)
        self._events.put(DiagnosticsChanged((path,)))

    def quit(self) -> None:
        """Close the editor; readers still get the events that wait."""
        self._end("the headless editor has quit; start the companion again")

    def _now(self) -> float:
        """Return the time, later than each focus before: the order of focus has to stay clear."""
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
            return TextFile("")  # an image, for example: it can be open, but it has no text to select
