"""Pasted images: what counts as one, its stand-in in the prompt, and the part of the message that it becomes."""

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.media import MAXIMUM_FILE_BYTES, MAXIMUM_MESSAGE_BYTES
from isthmus.terminal.prompt import pasted_images
from isthmus.terminal.prompt.image_header import MAXIMUM_SEGMENTS, pixels_of
from isthmus.terminal.prompt.pasted_images import PastedImage, PastedImageError, PastedImages, image_of
from support.images import gif, jpeg, png, webp

LOSSY = b"VP8 " + struct.pack("<I", 10) + b"\x30\x01\0" + b"\x9d\x01\x2a" + struct.pack("<HH", 0x4007, 0x8008)
LOSSLESS = b"VP8L" + struct.pack("<I", 5) + b"\x2f" + struct.pack("<I", 6 | 7 << 14)
EXTENDED = b"VP8X" + struct.pack("<I", 10) + bytes(4) + b"\x08\0\0" + b"\x09\0\0" + b"ALPH\xff"
KINDS = {
    "PNG, 640x480": png(640, 480),
    "JPEG, 3x5": jpeg(),
    "GIF, 4x6": gif(),
    "WebP, 7x8": webp(LOSSY),
    "WebP, 7x8, lossless": webp(LOSSLESS),
    "WebP, 9x10": webp(EXTENDED),
}


def image(data: bytes) -> PastedImage:
    found = image_of(data)
    assert found is not None
    return found


def sized(size: int, number: int = 1) -> PastedImage:
    return PastedImage("image/png", number, 1, bytes(size))


@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_tell_the_kind_and_the_pixels(kind: str) -> None:
    assert image(KINDS[kind]).facts == f"{kind.removesuffix(', lossless')}, 1 kB"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG\r\n\x1a\n",
        png()[:20],
        png(0, 5),
        jpeg()[:20],
        b"\xff\xd8" + b"\xff" * MAXIMUM_SEGMENTS + jpeg()[21:],
        b"\xff\xd8\xff\xe0\0\0" * 10,
        b"GIF89a",
        b"GIF89a = 'a script that also begins as an image'",
        webp(b"ABCD" + bytes(40)),
        webp(LOSSY)[:27],
        webp(EXTENDED)[:27],
        b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
        b"%PDF-1.7\n\xff",
        b"PK\3\4" + png(),
        b"text before" + png(),
        b"\0\0\0\x18ftypheic" + bytes(40),
    ],
)
def test_bytes_of_another_kind_or_without_a_whole_header_are_no_image(data: bytes) -> None:
    assert image_of(data) is None


@given(st.sampled_from([*KINDS.values()]), st.binary(max_size=60), st.integers(0, 40))
def test_no_bytes_break_the_reading_of_a_header(data: bytes, other: bytes, kept: int) -> None:
    pixels = pixels_of(data[:kept] + other)
    assert pixels is None or all(pixels)


def test_what_is_sent_is_the_image_and_its_stand_in() -> None:
    images = PastedImages()
    shown = images.add(image(png(640, 480, more=12_000)), "")
    assert shown == "[Image 1: PNG, 640x480, 12 kB]"
    (part,) = images.parts(f"What is {shown}? I mean {shown}.")
    assert (part.media_type, part.filename) == ("image/png", "image-1.png")
    assert base64.b64decode(part.raw or "") == png(640, 480, more=12_000)


def test_images_are_sent_in_the_order_of_their_stand_ins() -> None:
    images = PastedImages()
    first, second = images.add(image(png()), ""), images.add(image(gif()), "")
    assert second == "[Image 2: GIF, 4x6, 1 kB]"
    assert [part.filename for part in images.parts(f"{second} {first}")] == ["image-2.gif", "image-1.png"]


def test_the_same_image_keeps_its_number() -> None:
    images = PastedImages()
    assert images.add(image(png()), "") == images.add(image(png()), "")
    assert images.add(image(png(9)), "").startswith("[Image 2: ")


def test_a_stand_in_that_was_typed_or_changed_is_text() -> None:
    images = PastedImages()
    assert images.parts("[Image 1: PNG, 640x480, 12 kB]") == ()
    shown = images.add(image(png()), "")
    assert images.parts(shown.replace("2x1", "2x2")) == ()
    assert images.before(shown.replace("2x1", "2x2")) == ""


def test_the_stand_in_before_the_cursor_is_removed_as_one() -> None:
    images = PastedImages()
    shown = images.add(image(png()), "")
    assert images.before(f"See {shown}") == shown
    assert images.before(f"See {shown} ") == ""
    assert images.before("See ") == ""


def test_a_stand_in_in_the_history_stands_for_no_later_image() -> None:
    images = PastedImages()
    shown = images.add(image(png()), "")
    kept = images.forgotten(f"See {shown} and [Image 7: PNG, 1x1, 1 kB]")
    assert kept == "See [Image: PNG, 2x1, 1 kB] and [Image 7: PNG, 1x1, 1 kB]"
    assert images.parts(kept) == ()


def test_an_image_beyond_the_size_of_a_file_is_refused() -> None:
    with pytest.raises(PastedImageError, match="has 15,000,001 bytes; a file of a message may have at most 15,000,000"):
        PastedImages().add(sized(MAXIMUM_FILE_BYTES + 1), "")


def test_images_beyond_the_size_of_a_message_are_refused() -> None:
    images = PastedImages()
    shown = images.add(sized(MAXIMUM_FILE_BYTES), "") + images.add(sized(MAXIMUM_FILE_BYTES, 2), "")
    with pytest.raises(PastedImageError, match=f"would have 30,000,001 bytes.*at most {MAXIMUM_MESSAGE_BYTES:,}"):
        images.add(sized(1, 3), shown)
    assert images.add(sized(MAXIMUM_FILE_BYTES, 2), shown) in shown


def test_the_oldest_images_are_forgotten_but_none_of_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasted_images, "MAXIMUM_KEPT_BYTES", 30)
    images = PastedImages()
    first, second, third = (images.add(sized(10, number), "") for number in (1, 2, 3))
    fourth = images.add(sized(10, 4), f"see {first}")
    assert [len(images.parts(shown)) for shown in (first, second, third, fourth)] == [1, 0, 1, 1]
    assert fourth.startswith("[Image 4: ")
