"""The media of a conversation as a provider takes them: read from their files when a request is made.

``read_attachments`` decides which media are sent, the newest first, within a provider's :class:`MediaRules`. All others
become a line of text that says why, and where the file is. Deliberately not here: what a provider takes
(:mod:`isthmus.models.media_rules`), and its JSON.
"""

import base64
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from isthmus.files.atomic import reader_of
from isthmus.media import Media
from isthmus.models.base import Message, ModelToolResult
from isthmus.models.media_rules import MediaRules, NotTaken, media_type_to_send, plain_media_type

MAXIMUM_COUNT = 20
"""Maximum number of media in a request. Above it some providers take only small images."""
REFUSED = "the provider refused it"
SPECIAL = "its file is not a regular one"


@dataclass(frozen=True, slots=True)
class Attachment:
    """Media to send: the media type of the bytes, and the bytes in base64."""

    media_type: str
    data: str

    @property
    def is_image(self) -> bool:
        """Whether it is an image; else it is sound or a document."""
        return self.media_type.startswith("image/")


@dataclass(frozen=True, slots=True)
class Attachments:
    """The media of one request: what is sent of them, and why the others are not."""

    sent: Mapping[Media, Attachment] = field(default_factory=dict[Media, Attachment])
    left_out: Mapping[Media, str] = field(default_factory=dict[Media, str])

    def of(self, media: Iterable[Media]) -> tuple[Attachment, ...]:
        """Return those of the media that are sent, in their order."""
        return tuple(self.sent[item] for item in media if item in self.sent)

    def note(self, media: Media) -> str:
        """Return the text in place of one that is not sent."""
        return f"[{media.media_type} in {media.path}: not shown, {self.left_out.get(media, 'it was not read')}]"

    def with_notes(self, text: str, media: Iterable[Media]) -> str:
        """Return a text, with a line on each of these that is not sent."""
        return "\n".join((*([text] if text else ()), *(self.note(item) for item in media if item not in self.sent)))


NO_ATTACHMENTS = Attachments()


def media_of(messages: Iterable[Message]) -> Iterator[Media]:
    """All media of a conversation, in order."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, Media):
                yield part
            elif isinstance(part, ModelToolResult):
                yield from part.media


def read_attachments(messages: Iterable[Message], rules: MediaRules, refused: Collection[Media] = ()) -> Attachments:
    """Read what is sent of a conversation's media; blocks. `refused` are those that the provider does not take."""
    sent: dict[Media, Attachment] = {}
    left_out: dict[Media, str] = {}
    count = total = 0
    for media in reversed(list(media_of(messages))):
        if media in left_out:
            continue
        if media in refused:
            left_out[media] = REFUSED
            continue
        if count >= MAXIMUM_COUNT and media not in sent:
            left_out[media] = f"only the last {MAXIMUM_COUNT} are"
            continue
        found = sent.get(media) or _read(media, rules)
        if isinstance(found, str):
            left_out[media] = found
            continue
        size = len(found.data) * 3 // 4
        if total + size > rules.maximum_total:
            if media not in sent:
                left_out[media] = "there is too much in the messages after it"
            continue
        sent[media] = found
        count, total = count + 1, total + size
    return Attachments(sent, left_out)


def _read(media: Media, rules: MediaRules) -> Attachment | str:
    """Return the attachment to send, or why nothing is sent."""
    named = plain_media_type(media.media_type)
    # Images are looked at: what a server says of them is often wrong.
    if named not in rules.kinds and not named.startswith("image/"):
        return f"the model does not take {named}"
    try:
        data = _bytes(media, rules.maximum_bytes)
    except OSError as error:
        return f"its file cannot be read ({error.strerror or error})"
    if data is None:
        return SPECIAL
    found = media_type_to_send(named, data, rules)
    return found.why if isinstance(found, NotTaken) else Attachment(found, base64.b64encode(data).decode("ascii"))


def _bytes(media: Media, maximum: int) -> bytes | None:
    """Return at most one byte more than `maximum`; None if it is not a regular file.

    Raises:
        OSError: there is no such file, or it may not be read.
    """
    try:
        # Not blocking: opening a pipe would wait for somebody to write into it.
        descriptor = os.open(media.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except ValueError as error:
        raise OSError(str(error)) from error
    with reader_of(descriptor) as file:
        return file.read(maximum + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
