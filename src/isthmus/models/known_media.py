"""Media that a provider accepted or refused, so that one that it cannot read is not sent again. Pure."""

import re

from isthmus.media import Media
from isthmus.models.attachments import Attachments
from isthmus.models.port.base import ModelError, ModelErrorKind

REMEMBERED_MEDIA = 1_000
"""Maximum number of media of which a model remembers whether its provider accepted them."""


class KnownMedia:
    """The latest media that a provider accepted or refused."""

    def __init__(self) -> None:
        self._accepted: dict[Media, None] = {}
        self._refused: dict[Media, None] = {}

    @property
    def refused(self) -> frozenset[Media]:
        """The media that are not sent again."""
        return frozenset(self._refused)

    def note_accepted(self, attachments: Attachments, left_out: frozenset[Media]) -> None:
        """Record that a request with these media was answered, after a refusal with those in `left_out`."""
        for known, more in ((self._accepted, attachments.sent), (self._refused, left_out)):
            known.update(dict.fromkeys(more))
            for media in list(known)[: max(0, len(known) - REMEMBERED_MEDIA)]:
                del known[media]

    def suspected(self, attachments: Attachments) -> frozenset[Media]:
        """Return the media that may be the reason for a refusal; empty if none were sent.

        These are the new media other than images; without such, all new ones; without new ones, all that were sent.
        """
        sent = frozenset(attachments.sent)
        new = sent - self._accepted.keys()
        others = frozenset(media for media in new if not _is_image(media))
        return others or new or sent


def _is_image(media: Media) -> bool:
    return media.media_type.startswith("image/")


def may_be_of_media(error: ModelError) -> bool:
    """Return whether the media may be the reason for an error. Local servers report that as an internal error."""
    if error.kind is ModelErrorKind.BAD_REQUEST:
        return True
    is_servers = error.status is not None and error.status >= 500
    return is_servers and re.search(r"\b(images?|vision|multi-?modal|mmproj)\b", str(error), re.IGNORECASE) is not None
