"""The media of a conversation in the form that a provider accepts, read from their files for each request.

``read_attachments`` chooses the media to send, newest first, within a provider's :class:`MediaRules`. Each of the
others becomes a line of text with the reason and the path of its file. Not here: the rules, see
:mod:`isthmus.models.endpoint.media_rules`.
"""

import base64
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field

from isthmus.files.atomic import reader_of
from isthmus.media import Media
from isthmus.models.endpoint.media_rules import MediaRules, UnsupportedMedia, media_type_to_send, plain_media_type
from isthmus.models.port.base import Message, ModelToolResult
from isthmus.record import record

MAXIMUM_COUNT = 20
"""Maximum number of media in a request. Above it some providers accept only small images."""
REFUSED = "the provider refused it"
SPECIAL = "it is not a regular file"


@record
class Attachment:
    """Media to send: the media type of the bytes, and the bytes in base64."""

    media_type: str
    data: str

    @property
    def is_image(self) -> bool:
        """Whether it is an image, rather than audio or a document."""
        return self.media_type.startswith("image/")


@record
class Attachments:
    """The media of one request: those that are sent, and the reasons why the others are not."""

    sent: Mapping[Media, Attachment] = field(default_factory=dict[Media, Attachment])
    left_out: Mapping[Media, str] = field(default_factory=dict[Media, str])

    def of(self, media: Iterable[Media]) -> tuple[Attachment, ...]:
        """Return the attachments of those media that are sent, in order."""
        return tuple(self.sent[item] for item in media if item in self.sent)

    def note(self, media: Media) -> str:
        """Return the text that replaces a medium that is not sent."""
        return f"[{media.media_type} in {media.path}: not shown, {self.left_out.get(media, 'it was not read')}]"

    def with_notes(self, text: str, media: Iterable[Media]) -> str:
        """Return a text, with a line for each of the media that is not sent."""
        return "\n".join((*([text] if text else ()), *(self.note(item) for item in media if item not in self.sent)))


NO_ATTACHMENTS = Attachments()


def media_of(messages: Iterable[Message]) -> Iterator[Media]:
    """Yield all media of a conversation, in order."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, Media):
                yield part
            elif isinstance(part, ModelToolResult):
                yield from part.media


def read_attachments(messages: Iterable[Message], rules: MediaRules, refused: Collection[Media] = ()) -> Attachments:
    """Choose and read the media of a conversation to send. `refused` are media that the provider has refused.

    Blocking; call it in a thread.
    """
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
            left_out[media] = f"only the last {MAXIMUM_COUNT} are shown"
            continue
        found = sent.get(media) or _read(media, rules)
        if isinstance(found, str):
            left_out[media] = found
            continue
        size = len(found.data) * 3 // 4
        if total + size > rules.maximum_total:
            if media not in sent:
                left_out[media] = "the media after it fill the request"
            continue
        sent[media] = found
        count, total = count + 1, total + size
    return Attachments(sent, left_out)


def _read(media: Media, rules: MediaRules) -> Attachment | str:
    """Return the attachment to send, or the reason not to send it."""
    named = plain_media_type(media.media_type)
    # The bytes of images are checked, since servers often report the wrong type.
    if named not in rules.kinds and not named.startswith("image/"):
        return f"the model does not accept {named}"
    try:
        data = _bytes(media, rules.maximum_bytes)
    except OSError as error:
        return f"its file cannot be read ({error.strerror or error})"
    if data is None:
        return SPECIAL
    found = media_type_to_send(named, data, rules)
    return (
        found.reason
        if isinstance(found, UnsupportedMedia)
        else Attachment(found, base64.b64encode(data).decode("ascii"))
    )


def _bytes(media: Media, maximum: int) -> bytes | None:
    """Return at most one byte more than `maximum`; None if it is not a regular file.

    Raises:
        OSError: the file does not exist or cannot be read.
    """
    try:
        # Not blocking: opening a named pipe would wait for a writer.
        descriptor = os.open(media.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except ValueError as error:
        raise OSError(str(error)) from error
    with reader_of(descriptor) as file:
        return file.read(maximum + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
