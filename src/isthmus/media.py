"""Content other than text, such as an image: its kind, its sizes, and the file that keeps it.

The bytes are in the file alone: no event, message or journal holds them. Deliberately not here: reading them
(:mod:`isthmus.models.attachments`), and writing them.
"""

from pathlib import Path

from isthmus.record import record

PNG, JPEG, GIF, WEBP, HEIC, HEIF = (f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "heic", "heif"))
PDF = "application/pdf"
MAXIMUM_FILE_BYTES = 15_000_000
"""Maximum size of one file of a message: in base64 it fills the 20 MB of a request to a provider. Many take less."""
MAXIMUM_MESSAGE_BYTES = 30_000_000
"""Maximum size of all files of a message, which a journal keeps as text for agents that read no files."""


@record
class Media:
    """Content other than text, kept in a file for models that accept its kind.

    ``media_type`` is e.g. ``image/png``; ``path`` is absolute. A model that does not take it, or a file that is gone,
    becomes a line of text with its path.
    """

    media_type: str
    path: Path


def kind_of(data: bytes) -> str | None:
    """Return the media type that the first bytes indicate; None if unknown."""
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
