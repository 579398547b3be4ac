"""Puts pasted texts and images into the prompt, for prompt_toolkit.

Imports prompt_toolkit, so import this module only to prompt. What is to be read for a stand-in, a clipboard or a file,
is read in the background: meanwhile a mark, or the path, has its place in the text.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyPressEvent

from isthmus.runtime.threads import in_thread
from isthmus.terminal.prompt.clipboard_image import find_reader, read_clipboard
from isthmus.terminal.prompt.folded_paste import FoldedPastes
from isthmus.terminal.prompt.image_paths import possible_paths, read_image
from isthmus.terminal.prompt.pasted_images import PastedImage, PastedImageError, PastedImages
from isthmus.terminal.prompt.prompting import TypedPrompt

FILE_SECONDS = 3.0
"""Maximum time for the file at a pasted path, which may be on a server that does not answer."""


class Pasting:
    """The pasted texts and images of one run of the program. ``note`` shows the user why there is no image."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.texts = FoldedPastes()
        self.images = PastedImages()
        self._note = note
        self._reading: set[asyncio.Task[None]] = set()
        self._waiting: asyncio.Task[None] | None = None
        self._has_failed = False

    def prompt(self, text: str) -> TypedPrompt:
        """Return the message for a text with stand-ins: its images, and the whole of its pasted texts."""
        return TypedPrompt(self.texts.unfold(text), self.images.parts(text))

    def before(self, text: str) -> str:
        """Return the stand-in at the end of the text before the cursor; empty if there is none."""
        return self.texts.before(text) or self.images.before(text)

    def paste(self, event: KeyPressEvent) -> None:
        """Take a pasted text. Nothing is pasted where a terminal has no text to paste: then take the image instead."""
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        if not text:
            self.paste_image(event)
            return
        buffer = event.current_buffer
        buffer.insert_text(shown := self.texts.fold(text))
        if shown == text and (paths := possible_paths(text)):
            path = text.strip()
            start = buffer.cursor_position - len(text) + text.index(path)
            read = partial(in_thread, lambda: read_image(paths), FILE_SECONDS)
            self._begin(event, self._replace(buffer, start, path, read, otherwise=path))

    def paste_image(self, event: KeyPressEvent) -> None:
        """Take the image in the clipboard."""
        buffer = event.current_buffer
        try:
            reader = find_reader(os.environ, sys.platform)
        except PastedImageError as error:
            self._note(str(error))
            return
        mark = f"[Image {self.images.last + 1}: reading the clipboard]"
        buffer.insert_text(mark)
        start = buffer.cursor_position - len(mark)
        self._begin(event, self._replace(buffer, start, mark, partial(read_clipboard, reader), otherwise=""))

    def when_read(self, act: Callable[[KeyPressEvent], None], event: KeyPressEvent) -> None:
        """Call ``act`` as soon as everything is read that was pasted; not if an image of it is missing."""
        if not self._reading:
            act(event)
            return

        async def wait() -> None:
            while self._reading:
                await asyncio.wait(self._reading)
            if not self._has_failed:
                act(event)

        if self._waiting is None or self._waiting.done():
            self._waiting = event.app.create_background_task(wait())

    def stop(self) -> None:
        """Stop reading, and forget what was to be done afterwards."""
        for task in (*self._reading, self._waiting):
            if task is not None:
                task.cancel()

    def _begin(self, event: KeyPressEvent, replacing: Coroutine[None, None, None]) -> None:
        if not self._reading:
            self._has_failed = False
        # The end of the prompt cancels it.
        task = event.app.create_background_task(replacing)
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _replace(
        self,
        buffer: Buffer,
        start: int,
        shown: str,
        read: Callable[[], Awaitable[PastedImage | None]],
        *,
        otherwise: str,
    ) -> None:
        """Put a stand-in in the place of a text as soon as its image is read, unless the user has removed the text."""
        new, problem = otherwise, ""
        try:
            if (image := await read()) is not None:
                new = self.images.add(image, buffer.text)
        except PastedImageError as error:
            problem = str(error)
        except TimeoutError:
            pass  # the path stays
        if not _replaced(buffer, start, shown, new):
            return
        if problem:
            self._has_failed = True
            self._note(problem)


def _replaced(buffer: Buffer, start: int, old: str, new: str) -> bool:
    """Replace a text that was inserted at ``start``; return False if it is not there any more."""
    text, cursor = buffer.text, buffer.cursor_position
    at = start if text.startswith(old, start) else text.find(old)
    if at < 0:
        return False
    if old != new:
        end = at + len(old)
        if cursor > at:
            cursor = max(cursor, end) - len(old) + len(new)
        buffer.document = Document(text[:at] + new + text[end:], cursor)
    return True
