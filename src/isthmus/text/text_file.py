r"""The text of a file together with the form of its bytes (encoding, byte order mark), and newlines.

An edit changes nothing that it does not touch: texts keep their own newlines, ``\r\n`` too.
"""

import codecs
from collections.abc import Sequence
from enum import Enum

from isthmus.errors import IsthmusError
from isthmus.record import record
from isthmus.text.diff import line_opcodes, split_lines


class BinaryContentError(IsthmusError):
    """The bytes are not text."""


class UnencodableTextError(IsthmusError):
    """A text has a character that the encoding of its file cannot hold."""


@record
class TextForm:
    """Form of a text's bytes: a Python codec name that writes no mark, and the byte order mark in front."""

    encoding: str = "utf-8"
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """Return the bytes of `text` in this form.

        Raises:
            UnencodableTextError: a character does not exist in the encoding (in Unicode ones: a lone surrogate).
        """
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise UnencodableTextError(
                f"the file's encoding is {self.encoding}, which has no U+{ord(character):04X} "
                f"(at offset {error.start} of the text); use other characters or convert the file first"
            ) from error


@record
class TextFile:
    """The text of a file, with its own newlines and without its byte order mark, and the form of its bytes."""

    text: str
    form: TextForm = TextForm()


_MARKS = (
    # The longer marks first: the one of UTF-32 begins with the one of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY_CONTROLS = frozenset(range(32)) - {8, 9, 10, 11, 12, 13, 26, 27}
"""Control characters that no text has; backspace, tab, newlines, form feed, Ctrl-Z and escape do occur in some."""


def decode_text(data: bytes) -> TextFile:
    """Return the text in `data`: UTF-8, what its byte order mark says, else Latin-1, which keeps every byte as it is.

    Raises:
        BinaryContentError: a NUL or other control bytes, or bytes that do not fit the byte order mark.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                text = data[len(mark) :].decode(encoding)
            except UnicodeDecodeError as error:
                raise BinaryContentError(f"the bytes begin like {encoding} and are not: {error.reason}") from error
            form = TextForm(encoding, mark)
            break
    else:
        try:
            text, form = data.decode("utf-8"), TextForm()
        except UnicodeDecodeError:
            text, form = data.decode("latin-1"), TextForm("latin-1")
            if not _BINARY_CONTROLS.isdisjoint(data):
                raise BinaryContentError("the bytes are neither UTF-8 nor another text encoding") from None
    if "\0" in text:
        raise BinaryContentError("the content has a NUL byte")
    return TextFile(text, form)


# --- Newlines -------------------------------------------------------------------------------------------------------


class Newlines(Enum):
    """Newlines of a text."""

    NONE = "none"
    LF = "lf"
    CRLF = "crlf"
    MIXED = "mixed"


def newlines_of(text: str) -> Newlines:
    """Return the newlines in `text`. A carriage return without a line feed is an ordinary character."""
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    if crlf and lf:
        return Newlines.MIXED
    if crlf:
        return Newlines.CRLF
    return Newlines.LF if lf else Newlines.NONE


def with_newlines_of(old: str, new: str) -> str:
    r"""Return `new`, whose author saw only ``\n``, with the newlines of its place in `old`.

    In a CRLF text every line gets CRLF. In a mixed one a line that stayed keeps its own newline, and a changed line
    gets the one of the line before it. A text without CRLF takes `new` as it is.
    """
    match newlines_of(old):
        case Newlines.NONE | Newlines.LF:
            return new
        case Newlines.CRLF:
            return new.replace("\r\n", "\n").replace("\n", "\r\n")
        case Newlines.MIXED:
            return _with_aligned_newlines(split_lines(old), split_lines(new))


def _with_aligned_newlines(old: Sequence[str], new: Sequence[str]) -> str:
    bare_old = [line.removesuffix("\n").removesuffix("\r") for line in old]
    bare_new = [line.removesuffix("\n").removesuffix("\r") for line in new]
    result: list[str] = []
    newline = "\r\n" if old and old[0].endswith("\r\n") else "\n"
    for tag, old_start, _, new_start, new_end in line_opcodes(bare_old, bare_new):
        for offset, line in enumerate(new[new_start:new_end]):
            counterpart = old[old_start + offset] if tag == "equal" else ""
            if counterpart.endswith("\n"):
                newline = "\r\n" if counterpart.endswith("\r\n") else "\n"
            if line.endswith("\n") and not line.endswith("\r\n"):
                line = line[:-1] + newline
            elif line.endswith("\r\n") and counterpart.endswith("\n"):
                line = line[:-2] + newline
            result.append(line)
    return "".join(result)
