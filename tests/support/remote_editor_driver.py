"""A user at an editor behind an IDE extension: a companion of Isthmus, with one protocol, plays the extension.

The user acts in the headless editor behind that companion; the editor under test is the remote one in front of it.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from isthmus.editors.headless import HeadlessEditor
from isthmus.editors.remote import RemoteEditor
from isthmus.ide.claude.peer import ClaudePeer
from isthmus.ide.clients.asked_review import Outcome
from isthmus.ide.clients.client_base import DEADLINES
from isthmus.ide.editor import Range
from isthmus.ide.gemini.peer import GeminiPeer
from isthmus.ide.options import CompanionOptions
from isthmus.ide.reviews.review import DiffReview
from isthmus.ide.running.host import CompanionHost, Ready
from support.editor_deadlines import PATIENT_LIMITS
from support.waiting import eventually_async


class RemoteEditorDriver:
    """A user who answers in the editor behind; `editor` is the remote one."""

    def __init__(self, protocol: str, behind: HeadlessEditor, editor: RemoteEditor, printed: list[str]) -> None:
        self.protocol = protocol
        self._printed = printed
        self._behind = behind
        self._editor = editor
        self._path = ""

    @property
    def editor(self) -> RemoteEditor:
        return self._editor

    async def open(self, path: Path) -> None:
        self._path = str(path)
        await self._behind.open_file(self._path)

    async def select(self, at: Range) -> None:
        await self._behind.open_file(self._path, at)

    async def type_over(self, text: str) -> None:
        self._behind.edit(self._path, text)

    async def edit_review(self, review: DiffReview, text: str) -> None:
        self._behind.edit_diff(await self._id(review), text)

    async def accept(self, review: DiffReview) -> None:
        self._behind.accept_diff(await self._id(review))

    async def reject(self, review: DiffReview) -> None:
        self._behind.reject_diff(await self._id(review))

    async def has_message(self, text: str) -> bool:
        return any(text in line for line in (*self._printed, *self._behind.messages))

    async def quit(self) -> None:
        self._behind.quit()

    async def _id(self, review: DiffReview) -> str:
        """Return the id of the review that the companion behind made of this one."""

        def found() -> str | None:
            asked = [each.id for each in self._behind.open_reviews if each.file_path == review.file_path]
            return asked[0] if asked else None

        found_id = await eventually_async(found, what=f"a view of {review.file_path}")
        assert found_id is not None
        return found_id


class _SeeingPeer(ClaudePeer):
    """A peer that looks for the diff view: the Claude IDE protocol does not report it, and tests do not wait."""

    behind: HeadlessEditor

    async def open_diff(self, path: str, new_content: str, *, on_shown: Callable[[], None] = lambda: None) -> Outcome:
        asking = asyncio.create_task(super().open_diff(path, new_content))

        def answered_or_shown() -> bool:
            return asking.done() or any(each.file_path == path for each in self.behind.open_reviews)

        try:
            await eventually_async(answered_or_shown, what=f"a view of {path}")
            on_shown()
            return await asking
        finally:
            asking.cancel()


def remote_editor_driver(protocol: str) -> Callable[[Path], AbstractAsyncContextManager[RemoteEditorDriver]]:
    """Return a driver whose IDE extension speaks only `protocol`."""

    @asynccontextmanager
    async def driver(folder: Path) -> AsyncGenerator[RemoteEditorDriver]:
        behind = HeadlessEditor((str(folder),))
        host = CompanionHost(behind, CompanionOptions(protocols=(protocol,)), PATIENT_LIMITS)
        ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(host.run(ready.set_result))
        await asyncio.wait({serving, ready}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        try:
            # No client writes the files that are accepted here: no view waits for that.
            deadlines = replace(DEADLINES, written=0.1)
            if protocol == "claude":
                client = _SeeingPeer(folder, os.environ, deadlines=deadlines)
                client.behind = behind
            else:
                client = GeminiPeer(folder, os.environ, deadlines=deadlines)
            await client.connect()
            printed: list[str] = []
            editor = RemoteEditor(client, printed.append, lost_seconds=0.5, shown_seconds=60)
            try:
                yield RemoteEditorDriver(protocol, behind, editor, printed)
            finally:
                await editor.aclose()
        finally:
            host.stop()
            await asyncio.wait_for(serving, 30)

    return driver
