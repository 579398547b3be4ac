"""Kinds and sizes of media that each provider takes. The kind is that of the bytes, not what somebody says.

Nothing heavy is imported here: a message is held against these rules before its model is opened. Deliberately not here:
what is sent of a whole conversation (:mod:`isthmus.models.attachments`).
"""

from dataclasses import dataclass

PNG, JPEG, GIF, WEBP, HEIC, HEIF = (f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "heic", "heif"))
PDF = "application/pdf"
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


@dataclass(frozen=True, slots=True)
class MediaRules:
    """Media that a provider takes: types, bytes of one and bytes of all in a request, before encoding."""

    kinds: frozenset[str]
    maximum_bytes: int
    maximum_total: int


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Reason for which a file is not taken, as a part of a sentence."""

    why: str


def media_type_to_send(stated: str, data: bytes, rules: MediaRules) -> str | NotTaken:
    """Return the media type as which a file is sent that somebody calls ``stated``, or why it is not."""
    named, kind = plain_media_type(stated), kind_of(data)
    if not data:
        return NotTaken("it is empty")
    if kind is None and named.startswith("image/"):
        return NotTaken(f"its bytes are not an image of a known kind, though it is called {named}")
    kind = kind or named
    if kind not in rules.kinds:
        return NotTaken(f"the model does not take {kind or 'a file of unknown type'}")
    if len(data) > rules.maximum_bytes:
        return NotTaken(f"it has more than the {rules.maximum_bytes:,} bytes that the provider takes")
    return kind


def plain_media_type(stated: str) -> str:
    """Return a media type without parameters, by its one name here."""
    plain = stated.partition(";")[0].strip().lower()
    return _OTHER_NAMES.get(plain, plain)


def kind_of(data: bytes) -> str | None:
    """Return the media type that the first bytes show."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if data.startswith(b"\xff\xd8\xff"):
        return JPEG
    if data.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return WEBP
    if data[4:8] == b"ftyp":
        return {b"heic": HEIC, b"heix": HEIC, b"mif1": HEIF, b"msf1": HEIF}.get(data[8:12])
    return PDF if data.startswith(b"%PDF-") else None
