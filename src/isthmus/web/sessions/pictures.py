"""The pictures of messages and results, at ``/ui/api/pictures/TASK/EVENT/NUMBER``, for the page of their user.

The notes of a stream say which event has pictures. Their bytes are in files that this server has written; a browser
gets those kinds alone that it draws without running anything.
"""

import asyncio
import logging
from typing import Final

from starlette.responses import Response

from isthmus.a2a.server.users.auth import Principal, Refusal
from isthmus.events import Prompt
from isthmus.files.atomic import read_regular
from isthmus.internal_events import ToolResultRecorded
from isthmus.journal.port.base import Journal
from isthmus.media import GIF, JPEG, MAXIMUM_FILE_BYTES, PNG, WEBP, Media, kind_of
from isthmus.web.http.bundle import HEADERS
from isthmus.web.http.refusals import RefusalCode, refusal

PICTURES: Final = "pictures"
"""First part of the paths below the API."""
_DRAWN: Final = frozenset({PNG, JPEG, GIF, WEBP})
_MAXIMUM_NUMBER: Final = 12
"""Maximum number of digits of an event's number."""
_HEADERS: Final = {
    **HEADERS,
    # An event never changes. A browser's cache gives it again only to a request with the same token.
    "Cache-Control": "private, max-age=86400",
    "Vary": "Authorization",
    "Content-Disposition": "attachment",
}
log = logging.getLogger(__name__)


class PicturesApi:
    """The pictures in the tasks of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def respond(self, name: str, principal: Principal) -> Response | Refusal:
        """Answer a GET request for ``pictures/TASK/EVENT/NUMBER``; pictures of an event are counted from 0.

        Raises:
            Unavailable: the journal cannot be reached at the moment.
        """
        match name.split("/"):
            case [_, task_id, event, number] if _is_number(event) and _is_number(number):
                media = await self._media(task_id, int(event), int(number), principal.name)
            case _:
                return refusal(RefusalCode.BAD_REQUEST, "expected pictures/TASK/EVENT/NUMBER")
        if media is None:
            return refusal(RefusalCode.NO_SUCH_PICTURE, "the event has no picture of this number")
        try:
            data = await asyncio.to_thread(read_regular, media.path, MAXIMUM_FILE_BYTES)
        except OSError as error:
            log.info("a picture of task %s cannot be read: %s", task_id, error)
            return refusal(RefusalCode.NO_SUCH_PICTURE, "the file of this picture is gone or cannot be read")
        kind = kind_of(data)
        if kind not in _DRAWN:
            return refusal(RefusalCode.NOT_DRAWN, "this is not a picture that browsers draw")
        return Response(data, 200, _HEADERS, kind)

    async def _media(self, task_id: str, event: int, number: int, user: str) -> Media | None:
        row = await self._journal.task(task_id)
        if row is None or row.user != user or event < 1:
            return None
        for delivery in await self._journal.events(task_id, event - 1, 1):
            match delivery.event:
                case Prompt(media=media) | ToolResultRecorded(media=media) if delivery.seq == event:
                    return media[number] if number < len(media) else None
                case _:
                    return None
        return None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAXIMUM_NUMBER
