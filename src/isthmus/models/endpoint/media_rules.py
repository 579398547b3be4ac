"""Kinds and sizes of media that each provider accepts. The bytes determine the kind, not the stated type.

This module imports nothing heavy, since a message is checked against the rules before its model is opened. Not here:
the choice of a conversation's media, see :mod:`isthmus.models.attachments`.
"""

from isthmus.media import JPEG, PDF, PNG, kind_of
from isthmus.record import record

AUDIO = tuple(f"audio/{kind}" for kind in ("wav", "mp3", "aiff", "aac", "ogg", "flac"))

_OTHER_NAMES = {
    "image/jpg": JPEG,
    "image/pjpeg": JPEG,
    "image/x-png": PNG,
    "audio/mpeg": "audio/mp3",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-aiff": "audio/aiff",
    "audio/x-flac": "audio/flac",
}


@record
class MediaRules:
    """Media that a provider accepts: types, and maximum bytes of one and of all in a request, before encoding."""

    kinds: frozenset[str]
    maximum_bytes: int
    maximum_total: int


@record
class UnsupportedMedia:
    """Reason why a file is not accepted, as a part of a sentence."""

    reason: str


def media_type_to_send(stated: str, data: bytes, rules: MediaRules) -> str | UnsupportedMedia:
    """Return the media type under which to send a file of the ``stated`` type, or the reason not to send it."""
    named, kind = plain_media_type(stated), kind_of(data)
    if not data:
        return UnsupportedMedia("it is empty")
    if kind is None and named.startswith("image/"):
        return UnsupportedMedia(f"its bytes are not an image of a known kind, though its stated type is {named}")
    kind = kind or named
    if kind not in rules.kinds:
        return UnsupportedMedia(f"the model does not accept {kind or 'a file of unknown type'}")
    if len(data) > rules.maximum_bytes:
        return UnsupportedMedia(f"it has more than the {rules.maximum_bytes:,} bytes that the provider accepts")
    return kind


def input_kind(media_type: str) -> str:
    """Return the kind of input of a media type, as catalogues name it: ``image``, ``pdf``, ``audio``, ``video``."""
    return "pdf" if media_type == PDF else media_type.partition("/")[0]


def plain_media_type(stated: str) -> str:
    """Return a media type without parameters, under its canonical name."""
    plain = stated.partition(";")[0].strip().lower()
    return _OTHER_NAMES.get(plain, plain)
