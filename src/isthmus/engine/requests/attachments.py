"""The size of the files in a message to any agent: checked once, before anything of the message is stored.

Not here: the kinds and sizes that the model of our own agent takes, which are often less
(:mod:`isthmus.models.endpoint.media_rules`).
"""

from collections.abc import Sequence

from isthmus.client import ContentNotSupported
from isthmus.events import MessagePart
from isthmus.media import MAXIMUM_FILE_BYTES, MAXIMUM_MESSAGE_BYTES


def size_of(text: str, parts: Sequence[MessagePart]) -> int:
    """Return about how many bytes a message has."""
    return len(text) + sum(part.size for part in parts)


def check_sizes(parts: Sequence[MessagePart]) -> None:
    """Check the sizes of the files in a message.

    Raises:
        ContentNotSupported: a file, or all of them together, are too large; the text has the size and the limit.
    """
    total = 0
    for part in parts:
        size = _size(part.raw or "")
        total += size
        if size > MAXIMUM_FILE_BYTES:
            name = part.filename or f"of the type {part.media_type or 'unknown'}"
            raise ContentNotSupported(
                f"the file {name[:200]} has {size:,} bytes; a file of a message may have at most"
                f" {MAXIMUM_FILE_BYTES:,}: send a smaller one, or name its path"
            )
    if total > MAXIMUM_MESSAGE_BYTES:
        raise ContentNotSupported(
            f"the files of the message have {total:,} bytes; all together may have at most {MAXIMUM_MESSAGE_BYTES:,}:"
            " send fewer, or name their paths"
        )


def _size(encoded: str) -> int:
    """Return the number of bytes of a text in base64."""
    return len(encoded) * 3 // 4 - encoded[-2:].count("=")
