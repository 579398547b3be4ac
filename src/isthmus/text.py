"""Text as people, editors and models see it: forms of text files, newlines, unified diffs and offsets.

A :class:`TextFile` is the text of a file together with the form its bytes have (encoding, byte order mark), so that an
edit changes nothing it does not touch. Texts keep their own newlines, ``\\r\\n`` too. Deliberately not here: files on
disk (:mod:`isthmus.files`), and what to do with a diff.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum, StrEnum

from isthmus.errors import IsthmusError
from isthmus.line_changes import Opcode, line_opcodes

ESCAPE_SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    # OSC, DCS, SOS, PM, APC, in none of which another one begins
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\x9d\x90\x98\x9e\x9f]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]"  # everything else of two or three characters
    "|\x1b$"
)
"""What a program writes to move a terminal's cursor, to colour, to name windows and links; 7-bit and 8-bit forms."""

CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Those that show nothing, but for tabs and line ends."""
_NOT_PLAIN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def without_control_characters(text: str) -> str:
    """Text that does nothing to a terminal: sequences are left out, other control characters are U+FFFD.

    Line ends of other systems become ``\\n``.
    """
    if _NOT_PLAIN.search(text) is None:
        return text
    text = ESCAPE_SEQUENCES.sub("", text.replace("\r\n", "\n"))
    return CONTROL_CHARACTERS.sub("\ufffd", text.replace("\r", "\n"))


def with_ellipsis(text: str, longest: int) -> str:
    """`text`, with ``…`` for its end when it has more than `longest` characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


class BinaryContentError(IsthmusError):
    """The bytes are not text."""


class UnencodableTextError(IsthmusError):
    """A text has a character that the encoding of its file cannot hold."""


# --- The form of a text file ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextForm:
    """How text is kept as bytes: a Python codec name that writes no mark, and the byte order mark in front."""

    encoding: str = "utf-8"
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """The bytes of `text` in this form.

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


@dataclass(frozen=True, slots=True)
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
    """The text in `data`: UTF-8, what its byte order mark says, else Latin-1, which keeps every byte as it is.

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
    """Which newlines a text has."""

    NONE = "none"
    LF = "lf"
    CRLF = "crlf"
    MIXED = "mixed"


def newlines_of(text: str) -> Newlines:
    """The newlines in `text`. A carriage return without a line feed is an ordinary character."""
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    if crlf and lf:
        return Newlines.MIXED
    if crlf:
        return Newlines.CRLF
    return Newlines.LF if lf else Newlines.NONE


def with_newlines_of(old: str, new: str) -> str:
    r"""`new`, written by someone who sees only ``\n``, with the newlines that its place in `old` has.

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


def split_lines(text: str) -> list[str]:
    r"""The lines of `text`, each with its ``\n``; unlike ``str.splitlines``, nothing else ends a line."""
    lines = text.split("\n")
    last = lines.pop()
    result = [line + "\n" for line in lines]
    if last:
        result.append(last)
    return result


# --- Unified diffs --------------------------------------------------------------------------------------------------

CONTEXT_LINES = 3
MAXIMUM_DIFF_CHARACTERS = 1_000_000


def unified_diff(old: str | None, new: str, path: str) -> str:
    """The unified diff from `old` to `new`, empty when they are equal; `old` is None for a file that does not exist.

    `path` is shown with the prefixes ``a/`` and ``b/``, with forward slashes. A missing final newline is marked as in
    diff(1). The cost grows about linearly with the text. A diff of more than a million characters is cut at a line,
    and its last line says so.
    """
    if old == new:
        return ""
    old_lines, new_lines = split_lines(old or ""), split_lines(new)
    old_name = "/dev/null" if old is None else f"a/{path}"
    pieces = [f"--- {old_name}\n+++ b/{path}\n"]
    size = 0
    for line in _hunk_lines(old_lines, new_lines):
        size += len(line)
        if size > MAXIMUM_DIFF_CHARACTERS:
            pieces.append(f"\\ The diff is cut here: it has more than {MAXIMUM_DIFF_CHARACTERS} characters.\n")
            break
        pieces.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(pieces)


class _Comparison(SequenceMatcher[str]):
    """Known opcodes, for difflib's grouping of them into hunks."""

    def __init__(self, opcodes: list[Opcode]) -> None:
        super().__init__()
        self._opcodes = opcodes

    def get_opcodes(self) -> "list[Opcode]":  # type: ignore[override]
        return self._opcodes


def _hunk_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for group in _Comparison(line_opcodes(old, new)).get_grouped_opcodes(CONTEXT_LINES):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                yield from (" " + line for line in old[start:end])
            else:
                yield from ("-" + line for line in old[start:end])
                yield from ("+" + line for line in new[new_start:new_end])


def _range(start: int, end: int) -> str:
    """A line range as in a hunk's header: 1-based start and length; an empty one names the line before it."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


# --- Offsets --------------------------------------------------------------------------------------------------------


class OffsetEncoding(StrEnum):
    """What an offset in a text counts, by the names that LSP has: bytes, 16-bit code units or code points."""

    UTF_8 = "utf-8"
    UTF_16 = "utf-16"
    UTF_32 = "utf-32"


def encoded_length(text: str, encoding: OffsetEncoding) -> int:
    """The length of `text` in the units of an encoding."""
    if text.isascii() or encoding is OffsetEncoding.UTF_32:
        return len(text)
    return sum(_units(character, encoding) for character in text)


def offset_from_encoded(text: str, units: int, encoding: OffsetEncoding) -> int:
    """The offset in code points of an offset in units of an encoding; inside a character it means its start."""
    if text.isascii() or encoding is OffsetEncoding.UTF_32:
        return min(max(units, 0), len(text))
    passed = 0
    for index, character in enumerate(text):
        passed += _units(character, encoding)
        if passed > units:
            return index
    return len(text)


def _units(character: str, encoding: OffsetEncoding) -> int:
    if encoding is OffsetEncoding.UTF_16:
        return 2 if character > "\uffff" else 1
    return 1 + (character > "\x7f") + (character > "\u07ff") + (character > "\uffff")


def utf16_length(text: str) -> int:
    """The length of `text` in UTF-16 code units."""
    return encoded_length(text, OffsetEncoding.UTF_16)


def offset_from_utf16(text: str, units: int) -> int:
    """The offset in code points of an offset in UTF-16 code units; inside a surrogate pair it means its start."""
    return offset_from_encoded(text, units, OffsetEncoding.UTF_16)


def printable(path: str) -> str:
    """Return a path for messages, logs and listings, in one line.

    Bytes that are not UTF-8, half surrogate pairs, line breaks and other control characters are shown as escapes.
    """
    try:
        text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        text = path.encode("utf-8", "backslashreplace").decode()
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that end a line somewhere, or that a terminal takes for commands."""
