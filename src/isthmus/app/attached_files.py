"""Files that come with a user's message, put into the folder of its task for the model that reads them.

Deliberately not here: which kinds and sizes a provider takes (:mod:`isthmus.models.media_rules`).
"""

import asyncio
import base64
import mimetypes
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from isthmus.client import ContentNotSupported
from isthmus.events import MessagePart
from isthmus.media import Media
from isthmus.models.media_rules import MediaRules, NotTaken, taken_as
from isthmus.tools.kept_files import MAXIMUM_FILES, KeptFiles


class AttachedFiles:
    """Keeps the files of messages; those of a task lie in a folder of its id below ``folder``.

    ``rules_of`` gives what a model takes, by its name; None is the agent's own.
    """

    def __init__(self, folder: Path, rules_of: Callable[[str | None], MediaRules]) -> None:
        self._folder = folder
        self._rules_of = rules_of

    async def keep(
        self, task_id: str, parts: Sequence[MessagePart], model: Callable[[], Awaitable[str | None]]
    ) -> tuple[Media, ...]:
        """Return what of a message's parts is no text, kept in files.

        ``model`` tells the name of the model that will read it; it is asked only where there are files.

        Raises:
            ContentNotSupported: the model does not take a part, or there are too many; nothing is kept then.
        """
        files = [(part, data) for part in parts if (data := _data(part)) is not None]
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
        return await asyncio.to_thread(self._keep, task_id, checked)

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
            raise ContentNotSupported(f"the message's file cannot be kept: {error.strerror or error}") from error
        return tuple(kept)


def _kind(part: MessagePart, data: bytes, rules: MediaRules) -> str:
    """Return the media type as which a part is sent.

    Raises:
        ContentNotSupported: it is not.
    """
    found = taken_as(part.media_type or "", data, rules)
    if isinstance(found, NotTaken):
        expected = ", ".join(sorted(rules.kinds))
        name = part.filename or "attachment"
        raise ContentNotSupported(f"the file {name} cannot be read: {found.why}; expected text, or one of {expected}")
    return found


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
