"""The kind and the size in pixels of an image, from its first bytes. Pure: nothing is decoded."""

import struct

from isthmus.media import GIF, JPEG, PNG, WEBP, kind_of

KINDS = {PNG: "PNG", JPEG: "JPEG", GIF: "GIF", WEBP: "WebP"}
"""Media types of images that can be pasted, and their names for users."""
MAXIMUM_SEGMENTS = 10_000
"""Maximum number of segments of a JPEG file that are searched for its size."""
# Frame headers of JPEG, without the markers among them that mean something else.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = frozenset(range(0xD0, 0xD9)) | {0x01}


def pixels_of(data: bytes) -> tuple[int, int] | None:
    """Return the width and height that the header of a PNG, JPEG, GIF or WebP image states; None for other bytes."""
    read = {PNG: _png, JPEG: _jpeg, GIF: _gif, WEBP: _webp}.get(kind_of(data) or "")
    try:
        pixels = read(data) if read is not None else None
    except (struct.error, IndexError):
        return None  # the file ends within its header
    return pixels if pixels is not None and all(pixels) else None


def _png(data: bytes) -> tuple[int, int] | None:
    return struct.unpack_from(">II", data, 16) if data[12:16] == b"IHDR" else None


def _gif(data: bytes) -> tuple[int, int] | None:
    return struct.unpack_from("<HH", data, 6)


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    for _ in range(MAXIMUM_SEGMENTS):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # a byte that fills up
            at += 1
        elif marker in _WITHOUT_LENGTH:
            at += 2
        elif marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        else:
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L" if data[20] == 0x2F:
            bits = struct.unpack_from("<I", data, 21)[0]
            return (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
        case b"VP8X" if len(data) >= 30:
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case _:
            return None
