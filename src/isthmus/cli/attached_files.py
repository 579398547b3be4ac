"""Files that come with a user's message, put into the folder of its task for models that take their kind.

Deliberately not here: which kinds a provider takes (:mod:`isthmus.models.attachments`).
"""

import asyncio
import base64
import mimetypes
from collections.abc import Sequence
from pathlib import Path

from isthmus.client import ContentNotSupported
from isthmus.events import MessagePart
from isthmus.media import Media
from isthmus.tools.kept_files import KeptFiles

PDF = "application/pdf"
KINDS = ("image/", "audio/", "video/", PDF)
"""Beginnings of the media types that some model takes."""
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class AttachedFiles:
    """Keeps the files of messages; those of a task lie in a folder of its id below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def keep(self, task_id: str, parts: Sequence[MessagePart]) -> tuple[Media, ...]:
        """Return what of a message's parts is no text, kept in files.

        Raises:
            ContentNotSupported: a part is of a kind that no model takes; nothing is kept then.
        """
        files = [(part, data) for part in parts if (data := _data(part)) is not None]
        for part, _ in files:
            kind = part.media_type or "of unknown type"
            if not kind.lower().startswith(KINDS):
                raise ContentNotSupported(
                    f"the file {part.filename or 'attachment'} ({kind}) cannot be read: this agent takes text, images,"
                    " sound, video and PDF"
                )
        return await asyncio.to_thread(self._keep, task_id, files) if files else ()

    def _keep(self, task_id: str, files: Sequence[tuple[MessagePart, bytes]]) -> tuple[Media, ...]:
        keeper = KeptFiles(self._folder / task_id, "message")
        kept: list[Media] = []
        for part, data in files:
            media_type = (part.media_type or "").partition(";")[0].strip().lower()
            try:
                path = keeper.keep(data, mimetypes.guess_extension(media_type) or ".bin")
            except OSError as error:
                raise ContentNotSupported(f"the message's file cannot be kept: {error.strerror or error}") from error
            if path is not None:
                kept.append(Media(media_type, path))
        return tuple(kept)


def _data(part: MessagePart) -> bytes | None:
    """Return the bytes of a part that is no text; None for all others, which the text of the message tells."""
    if part.raw is None:
        return None
    data = base64.b64decode(part.raw)
    try:
        data.decode()
    except UnicodeDecodeError:
        return data
    return None
