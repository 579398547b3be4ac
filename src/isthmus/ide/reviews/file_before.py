"""The file of a review as it is now, for pages that show it: a text, an image, or content that is only described.

Images are read by the browser of a page. The file may come from a hostile writer, so that only small images of four
kinds with a known and bearable number of pixels count as images; SVG is text.
"""

import base64
import hashlib
from pathlib import Path
from typing import Final

from isthmus.encoding.codec import JsonObject
from isthmus.files.atomic import read_regular
from isthmus.ide.reviews.reviewed_file import MAXIMUM_FILE_BYTES
from isthmus.media import GIF, JPEG, PNG, WEBP, kind_of
from isthmus.record import record
from isthmus.text.text_file import BinaryContentError, decode_text

MAXIMUM_IMAGE_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of an image that is shown."""
MAXIMUM_PIXELS: Final = 40_000_000
"""Maximum number of pixels of an image that is shown: few bytes can stand for very many."""


@record
class FileBefore:
    """Content of a reviewed file.

    ``text`` is None if there is no file or it is not text. ``other`` describes what is not text, as ``{"bytes",
    "type", "data"}``: the size (null if it cannot be read), the media type (null if it is unknown), and the content of
    an image in base64 (null if it is not shown). ``digest`` stands for what was seen.
    """

    text: str | None
    other: JsonObject | None
    digest: str


def file_before(path: str) -> FileBefore:
    """Return the content of a file for a page. Blocks."""
    try:
        data = read_regular(Path(path), MAXIMUM_FILE_BYTES)
    except FileNotFoundError:
        return FileBefore(None, None, "")
    except (OSError, ValueError):
        return FileBefore(None, {"bytes": None, "type": None, "data": None}, "\0unread")
    try:
        file = decode_text(data)
    except (BinaryContentError, ValueError):
        kind = kind_of(data)
        is_shown = kind in (PNG, JPEG, GIF, WEBP) and len(data) <= MAXIMUM_IMAGE_BYTES
        if is_shown and not 0 < (pixels_of(data) or 0) <= MAXIMUM_PIXELS:
            is_shown = False
        shown = base64.b64encode(data).decode("ascii") if is_shown else None
        return FileBefore(
            None, {"bytes": len(data), "type": kind, "data": shown}, f"\0{hashlib.sha256(data).hexdigest()}"
        )
    text = ("\ufeff" if file.form.mark else "") + file.text
    return FileBefore(text, None, text)


def pixels_of(data: bytes) -> int | None:
    """Return the number of pixels that the header of an image declares; None if it is not understood."""
    match kind_of(data):
        case "image/png" if data[12:16] == b"IHDR":
            return int.from_bytes(data[16:20], "big") * int.from_bytes(data[20:24], "big")
        case "image/gif":
            return int.from_bytes(data[6:8], "little") * int.from_bytes(data[8:10], "little")
        case "image/webp" if data[12:16] == b"VP8X":
            return (int.from_bytes(data[24:27], "little") + 1) * (int.from_bytes(data[27:30], "little") + 1)
        case "image/webp" if data[12:16] == b"VP8 ":
            return (int.from_bytes(data[26:28], "little") & 0x3FFF) * (int.from_bytes(data[28:30], "little") & 0x3FFF)
        case "image/webp" if data[12:16] == b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return ((bits & 0x3FFF) + 1) * (((bits >> 14) & 0x3FFF) + 1)
        case "image/jpeg":
            return _pixels_of_jpeg(data)
        case _:
            return None


def _pixels_of_jpeg(data: bytes) -> int | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 5 : at + 7], "big") * int.from_bytes(data[at + 7 : at + 9], "big")
        at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return None
