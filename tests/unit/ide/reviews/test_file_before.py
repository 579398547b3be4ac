"""Description of a reviewed file that is not text, for pages: only small images of four kinds are shown."""

import base64
import struct
import zlib
from pathlib import Path

import pytest

from isthmus.ide.reviews.file_before import MAXIMUM_IMAGE_BYTES, file_before, pixels_of
from support.images import png

GIF = b"GIF89a" + struct.pack("<HH", 3, 4) + b"\xff\x00"
JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08" + struct.pack(">HH", 5, 6) + b"\xff"
VP8X = b"RIFF____WEBPVP8X" + bytes(8) + b"\x06\x00\x00\x07\x00\x00\xff"
VP8L = b"RIFF____WEBPVP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 1 | 2 << 14)
VP8 = b"RIFF____WEBPVP8 " + bytes(10) + struct.pack("<HH", 2, 5)


@pytest.mark.parametrize(
    ("data", "pixels"),
    [
        (png(2, 3), 6),
        (GIF, 12),
        (JPEG, 30),
        (VP8X, 56),
        (VP8L, 6),
        (VP8, 10),
        (b"\x89PNG\r\n\x1a\n", None),
        (JPEG[:12], None),
        (b"\xff\xd8\xff\x00" * 9, None),
        (b"GIF89a", 0),
        (b"%PDF-", None),
        (b"", None),
    ],
)
def test_the_pixels_of_an_image_are_in_its_header(data: bytes, pixels: int | None) -> None:
    assert pixels_of(data) == pixels


def test_only_a_small_image_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    for data, kind, is_shown in (
        (png(2, 3), "image/png", True),
        (png(2, 3) + bytes(MAXIMUM_IMAGE_BYTES), "image/png", False),
        (png(2, 3).replace(struct.pack(">II", 2, 3), struct.pack(">II", 60_000, 60_000)), "image/png", False),
        (b"\0\1\2", None, False),
        (b"%PDF-\0\xff", "application/pdf", False),
        (zlib.compress(b"x"), None, False),
    ):
        path.write_bytes(data)
        found = file_before(str(path))
        assert found.text is None
        assert found.other == {
            "bytes": len(data),
            "type": kind,
            "data": base64.b64encode(data).decode() if is_shown else None,
        }


def test_svg_is_text_and_what_is_missing_or_unread_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    assert (file_before(str(path)).text, file_before(str(path)).other) == (None, None)
    path.write_text("<svg onload='alert(1)'/>", "utf-8")
    assert file_before(str(path)).text == "<svg onload='alert(1)'/>"
    assert file_before(str(tmp_path)).other == {"bytes": None, "type": None, "data": None}


def test_another_image_has_another_digest(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    digests: set[str] = set()
    for data in (png(1, 1), png(1, 2), b"\0"):
        path.write_bytes(data)
        digests.add(file_before(str(path)).digest)
    assert len(digests) == 3
