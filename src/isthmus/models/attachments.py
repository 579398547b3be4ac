"""The media of a conversation in the form that a provider accepts, read from their files for each request.

``read_attachments`` chooses the newest media to send, within a provider's :class:`MediaRules`. Each of the others
becomes a line of text with the reason and the path of its file. Not here: the rules, see
:mod:`isthmus.models.endpoint.media_rules`.
"""

import base64
import os
import stat
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from isthmus.files.atomic import reader_of
from isthmus.media import Media
from isthmus.models.endpoint.media_rules import MediaRules, UnsupportedMedia, media_type_to_send, plain_media_type
from isthmus.models.port.base import Message, ModelToolResult
from isthmus.record import record

MAXIMUM_COUNT = 20
"""Maximum number of media in a request. Above it some providers accept only small images."""
REFUSED = "the provider refused it"
TOO_MANY = f"only the last {MAXIMUM_COUNT} are shown"
TOO_LARGE = "the media after it fill the request"
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


def read_attachments(messages: Sequence[Message], rules: MediaRules, refused: Collection[Media] = ()) -> Attachments:
    """Choose and read the media of a conversation to send. `refused` are media that the provider has refused.

    Blocking; call it in a thread.
    """
    sent: dict[Media, Attachment] = {}
    reasons = _without_room(messages, rules)
    left_out: dict[Media, str] = {}
    for media in dict.fromkeys(media_of(messages)):
        found = REFUSED if media in refused else reasons.get(media) or _read(media, rules)
        if isinstance(found, str):
            left_out[media] = found
        else:
            sent[media] = found
    return Attachments(sent, left_out)


def _without_room(messages: Iterable[Message], rules: MediaRules) -> Mapping[Media, str]:
    """Return the media for which there is no room, with the reason; the newest message comes first.

    Where there is no room for more, the older ones of half of it are left out. So the next messages leave what was sent
    before as it is, and a provider's cache of it is of use.
    """
    kept: deque[tuple[Media, int]] = deque()
    left_out: dict[Media, str] = {}
    total = 0
    for message in messages:
        new, size = _newest(message, rules, left_out)
        is_over = len(kept) + len(new) > MAXIMUM_COUNT
        if is_over or total + size > rules.maximum_total:
            count, room = max(MAXIMUM_COUNT // 2, len(new)), max(rules.maximum_total // 2, size)
            while kept and (len(kept) + len(new) > count or total + size > room):
                media, bytes_of_it = kept.popleft()
                left_out[media] = TOO_MANY if is_over else TOO_LARGE
                total -= bytes_of_it
        kept.extend(new)
        total += size
    shown = {media for media, _ in kept}
    return {media: reason for media, reason in left_out.items() if media not in shown}


def _newest(message: Message, rules: MediaRules, left_out: dict[Media, str]) -> tuple[list[tuple[Media, int]], int]:
    """Return the media of a message that there is room for, and their size in bytes; add others to ``left_out``."""
    found: list[tuple[Media, int]] = []
    total = 0
    for media in reversed(list(media_of((message,)))):
        size = _size(media, rules)
        if size is None:
            continue  # Reading it says why it is not sent.
        if len(found) >= MAXIMUM_COUNT or total + size > rules.maximum_total:
            left_out[media] = TOO_MANY if len(found) >= MAXIMUM_COUNT else TOO_LARGE
            continue
        found.append((media, size))
        total += size
    return found[::-1], total


def _size(media: Media, rules: MediaRules) -> int | None:
    """Return the size in bytes of a file that may be sent; None if it may not."""
    if not _may_be_sent(plain_media_type(media.media_type), rules):
        return None
    try:
        status = media.path.lstat()
    except (OSError, ValueError):
        return None
    is_sent = stat.S_ISREG(status.st_mode) and 0 < status.st_size <= rules.maximum_bytes
    return status.st_size if is_sent else None


def _may_be_sent(named: str, rules: MediaRules) -> bool:
    """Return whether a file of a stated type may be sent, as far as can be known without its bytes.

    The bytes of images are checked, since servers often report the wrong type.
    """
    images = named.startswith("image/") and any(kind.startswith("image/") for kind in rules.kinds)
    return images or named in rules.kinds


def _read(media: Media, rules: MediaRules) -> Attachment | str:
    """Return the attachment to send, or the reason not to send it."""
    named = plain_media_type(media.media_type)
    if not _may_be_sent(named, rules):
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
