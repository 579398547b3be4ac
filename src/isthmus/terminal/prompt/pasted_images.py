"""Images that the user pastes: the prompt shows a short stand-in, and the message carries the image. Pure."""

import base64
import re
from dataclasses import dataclass, field

from isthmus.errors import IsthmusError
from isthmus.events import MessagePart
from isthmus.media import MAXIMUM_FILE_BYTES, MAXIMUM_MESSAGE_BYTES, kind_of
from isthmus.record import record
from isthmus.terminal.prompt.image_header import KINDS, pixels_of

MAXIMUM_KEPT_BYTES = 120_000_000
"""Maximum size of all images that are kept for messages to come; the oldest are forgotten first."""
_STAND_IN = re.compile(r"\[Image (\d{1,9})(: (?:PNG|JPEG|GIF|WebP), \d{1,10}x\d{1,10}, [\d.]{1,9} [kM]B\])")


class PastedImageError(IsthmusError):
    """An image that cannot be put into the message; the text is a hint for the user."""


@record
class PastedImage:
    """An image of ``width`` x ``height`` pixels, as far as its header tells the truth."""

    media_type: str
    width: int
    height: int
    data: bytes = field(repr=False)

    @property
    def facts(self) -> str:
        """The kind and sizes for users: ``PNG, 640x480, 12 kB``."""
        kilobytes = max(1, round(len(self.data) / 1000))
        size = f"{kilobytes} kB" if kilobytes < 1000 else f"{len(self.data) / 1_000_000:.1f} MB"
        return f"{KINDS[self.media_type]}, {self.width}x{self.height}, {size}"


def image_of(data: bytes) -> PastedImage | None:
    """Return the image that these bytes are; None if they are not a PNG, JPEG, GIF or WebP image of any size.

    Text is not an image, even if it begins as one: a message carries it as text.
    """
    kind, pixels = kind_of(data), pixels_of(data)
    if kind not in KINDS or pixels is None or _is_text(data):
        return None
    return PastedImage(kind, *pixels, data)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@dataclass(slots=True)
class PastedImages:
    """The pasted images of one run of the program by number; the first has number 1."""

    kept: dict[int, PastedImage] = field(default_factory=dict[int, PastedImage])
    last: int = 0

    def add(self, image: PastedImage, shown: str) -> str:
        """Keep an image for a message, and return its stand-in; the same image always has the same one.

        ``shown`` is the message so far, whose images are not forgotten.

        Raises:
            PastedImageError: the image, or all images of the message, are too large.
        """
        if len(image.data) > MAXIMUM_FILE_BYTES:
            raise PastedImageError(too_large(f"The image has {len(image.data):,} bytes"))
        used = self._used(shown)
        number = next((number for number, kept in self.kept.items() if kept == image), 0)
        total = len(image.data) + sum(len(self.kept[other].data) for other in used if other != number)
        if total > MAXIMUM_MESSAGE_BYTES:
            raise PastedImageError(
                f"The images of the message would have {total:,} bytes; all together may have at most"
                f" {MAXIMUM_MESSAGE_BYTES:,}. Send fewer, or name their paths."
            )
        if not number:
            self._make_room(len(image.data), used)
            self.last = number = self.last + 1
            self.kept[number] = image
        return self._stand_in(number)

    def parts(self, text: str) -> tuple[MessagePart, ...]:
        """Return the images whose stand-ins are in a text as parts of a message, in order."""
        return tuple(
            MessagePart(
                raw=base64.b64encode(image.data).decode("ascii"),
                media_type=image.media_type,
                filename=f"image-{number}.{KINDS[image.media_type].lower()}",
            )
            for number in self._used(text)
            for image in (self.kept[number],)
        )

    def before(self, text: str) -> str:
        """Return the stand-in at the end of the text before the cursor; empty if there is none."""
        found = _STAND_IN.search(text, text.rfind("[")) if "[" in text else None
        return found[0] if found is not None and found.end() == len(text) and self._number(found) else ""

    def forgotten(self, text: str) -> str:
        """Return a text whose stand-ins stand for nothing in a later run, where other images have their numbers."""
        return _STAND_IN.sub(lambda found: f"[Image{found[2]}" if self._number(found) else found[0], text)

    def _used(self, text: str) -> list[int]:
        """Return the distinct numbers of the stand-ins in a text."""
        return list(dict.fromkeys(number for found in _STAND_IN.finditer(text) if (number := self._number(found))))

    def _number(self, found: re.Match[str]) -> int:
        """Return the number of the image that a stand-in is for; 0 if nobody pasted it."""
        number = int(found[1])
        return number if number in self.kept and found[0] == self._stand_in(number) else 0

    def _stand_in(self, number: int) -> str:
        return f"[Image {number}: {self.kept[number].facts}]"

    def _make_room(self, size: int, used: list[int]) -> None:
        for number in [number for number in self.kept if number not in used]:
            if size + sum(len(kept.data) for kept in self.kept.values()) <= MAXIMUM_KEPT_BYTES:
                return
            del self.kept[number]


def too_large(what: str) -> str:
    """Return the hint about an image beyond the maximum size of a file."""
    return f"{what}; a file of a message may have at most {MAXIMUM_FILE_BYTES:,}. Make it smaller, or name its path."
