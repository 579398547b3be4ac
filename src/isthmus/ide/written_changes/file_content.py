"""The content of a file as tokens that are compared one by one: its mode, its encoding and its lines.

Bytes that are not text, or too many, are a single token, which names them by their hash. A missing file has no tokens.
The first character of a token is its kind. Pure.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from isthmus.record import record
from isthmus.text.diff import split_lines
from isthmus.text.text_file import BinaryContentError, TextForm, decode_text

MODE: Final = "m"
"""Kind of the token of the permission bits, in octal digits."""
ENCODING: Final = "e"
"""Kind of the token of a text's encoding."""
MARK: Final = "b"
"""Kind of the token of a text's byte order mark, in hexadecimal digits."""
LINE: Final = "l"
"""Kind of the token of a line of a text, with its end."""
OPAQUE: Final = "o"
"""Kind of the token of a whole content that is not shown as text: hash and size."""
MAXIMUM_TEXT_BYTES: Final = 2 * 1024 * 1024
"""Maximum size in bytes of a file that is compared by lines; a larger one is kept or undone as a whole."""

Tokens: TypeAlias = Sequence[str]
"""Tokens of a file, in order; none for a missing file."""


@record
class DiskFile:
    """A file as it is on disk. ``data`` is None if it was not read; ``why`` is the reason then.

    ``digest`` is the SHA-256 of the content, or stands for what could not be read. ``mode`` has the permission bits.
    """

    data: bytes | None
    digest: str
    mode: int
    why: str = ""


def digest_of(data: bytes) -> str:
    """Return the digest of a content."""
    return hashlib.sha256(data).hexdigest()


def tokens_of(file: DiskFile | None) -> list[str]:
    """Return the tokens of a file; none for a missing one."""
    if file is None:
        return []
    tokens = [f"{MODE}{file.mode:o}"]
    if file.data is None or len(file.data) > MAXIMUM_TEXT_BYTES:
        size = "" if file.data is None else str(len(file.data))
        return [*tokens, f"{OPAQUE}{file.digest} {size}"]
    try:
        text = decode_text(file.data)
    except BinaryContentError:
        return [*tokens, f"{OPAQUE}{file.digest} {len(file.data)}"]
    tokens.append(ENCODING + text.form.encoding)
    if text.form.mark:
        tokens.append(MARK + text.form.mark.hex())
    return [*tokens, *(LINE + line for line in split_lines(text.text))]


def mode_of(tokens: Tokens) -> int | None:
    """Return the permission bits; None for a missing file."""
    return next((int(token[1:], 8) for token in tokens if token[0] == MODE), None)


def opaque_digest(tokens: Tokens) -> str | None:
    """Return the digest of a content that is not text; None for a text or a missing file."""
    return next((token[1:].partition(" ")[0] for token in tokens if token[0] == OPAQUE), None)


def text_of(tokens: Tokens) -> str | None:
    """Return the text; None for a missing file, or a content that is not text."""
    if not any(token[0] == ENCODING for token in tokens):
        return None
    return "".join(token[1:] for token in tokens if token[0] == LINE)


def bytes_of(tokens: Tokens, stored: Callable[[str], bytes | None]) -> bytes | None:
    """Return the content; None for a missing file, or a content that ``stored`` does not have.

    Raises:
        UnencodableTextError: a line has a character that the encoding lacks.
    """
    if (digest := opaque_digest(tokens)) is not None:
        return stored(digest)
    text = text_of(tokens)
    if text is None:
        return None
    encoding = next(token[1:] for token in tokens if token[0] == ENCODING)
    mark = next((bytes.fromhex(token[1:]) for token in tokens if token[0] == MARK), b"")
    return TextForm(encoding, mark).encode(text)
