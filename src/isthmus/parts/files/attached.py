"""Files attached to a user's message, written to the folder of its task for the model to read.

Not here: the types and sizes that a provider accepts, see :mod:`isthmus.models.endpoint.media_rules`.
"""

import asyncio
import base64
import mimetypes
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from isthmus.client import ContentNotSupported
from isthmus.events import MessagePart
from isthmus.media import Media
from isthmus.models.endpoint.media_rules import MediaRules, UnsupportedMedia, media_type_to_send
from isthmus.runtime.large_work import off_loop
from isthmus.tools.port.kept_files import MAXIMUM_FILES, KeptFiles

StoreFiles: TypeAlias = Callable[[str, Sequence[str]], Awaitable[None]]


class AttachedFiles:
    """Writer of message attachments to one subfolder of ``folder`` for each task, named by the task's id.

    ``rules_of`` maps a model's name, or None for the agent's own model, to the media that it accepts. ``store`` takes
    the task's id and the names of its new files, for other servers.
    """

    def __init__(
        self, folder: Path, rules_of: Callable[[str | None], MediaRules], store: StoreFiles | None = None
    ) -> None:
        self._folder = folder
        self._rules_of = rules_of
        self._store = store

    async def keep(
        self, task_id: str, parts: Sequence[MessagePart], model: Callable[[], Awaitable[str | None]]
    ) -> tuple[Media, ...]:
        """Write the non-text parts of a message to files and return them.

        ``model`` returns the name of the model that will read the files; it is called only if there are any.

        Raises:
            ContentNotSupported: the model does not accept a part, or there are too many; no file is written then.
            JournalError: they could not be stored for other servers; none is left then.
        """
        size = sum(len(part.raw or "") for part in parts)
        files = await off_loop(size, _files, parts)
        if not files:
            return ()
        if len(files) > MAXIMUM_FILES:
            raise ContentNotSupported(f"the message has {len(files)} files; a message may have at most {MAXIMUM_FILES}")
        rules = self._rules_of(await model())
        checked = [(_kind(part, data, rules), data) for part, data in files]
        total = sum(len(data) for _, data in files)
        if total > rules.maximum_total:
            raise ContentNotSupported(
                f"the files of the message have {total:,} bytes; the model takes at most {rules.maximum_total:,}"
            )
        kept = await asyncio.to_thread(self._keep, task_id, checked)
        if self._store is not None:
            try:
                await self._store(task_id, [media.path.name for media in kept])
            except BaseException:
                for media in kept:
                    media.path.unlink(missing_ok=True)
                raise
        return kept

    def _keep(self, task_id: str, files: Sequence[tuple[str, bytes]]) -> tuple[Media, ...]:
        keeper = KeptFiles(self._folder / task_id, "message")
        kept: list[Media] = []
        try:
            for kind, data in files:
                path = keeper.keep(data, mimetypes.guess_extension(kind) or ".bin")
                if path is not None:
                    kept.append(Media(kind, path))
        except OSError as error:
            for media in kept:
                media.path.unlink(missing_ok=True)
            raise ContentNotSupported(f"the message's file cannot be stored: {error.strerror or error}") from error
        return tuple(kept)


def _kind(part: MessagePart, data: bytes, rules: MediaRules) -> str:
    """Return the media type under which a part is sent to the model.

    Raises:
        ContentNotSupported: the model does not accept the part.
    """
    found = media_type_to_send(part.media_type or "", data, rules)
    if isinstance(found, UnsupportedMedia):
        expected = ", ".join(sorted(rules.kinds))
        name = f"{_name(part)} of {len(data):,} bytes"
        raise ContentNotSupported(
            f"the file {name} cannot be read: {found.reason}; expected text, or one of {expected}"
        )
    return found


def _files(parts: Sequence[MessagePart]) -> list[tuple[MessagePart, bytes]]:
    """Return the file parts of a message with their bytes. Raises ContentNotSupported."""
    return [(part, data) for part in parts if (data := _data(part)) is not None]


def _data(part: MessagePart) -> bytes | None:
    """Return the bytes of a file part; None for other parts, which the text of the message covers.

    Raises:
        ContentNotSupported: they are not base64.
    """
    if part.raw is None:
        return None
    try:
        data = base64.b64decode(part.raw)
    except ValueError as error:
        raise ContentNotSupported(f"the file {_name(part)} cannot be read: expected base64; {error}") from error
    try:
        data.decode()
    except UnicodeDecodeError:
        return data
    return None


def _name(part: MessagePart) -> str:
    return part.filename or "attachment"
