"""A user's messages as lines of JSON, in the form of Claude Code's ``--input-format stream-json``. No I/O.

Each line is a message: ``{"type": "user", "message": {"role": "user", "content": TEXT or BLOCKS}}``, with the blocks of
Anthropic's Messages API. A line of another kind is refused, never skipped, since a later message may depend on it.
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any, cast

from isthmus.client import NO_TEXT
from isthmus.encoding.json_text import JsonError, decode
from isthmus.encoding.line_splitter import LineSplitter, LongLine
from isthmus.errors import IsthmusError
from isthmus.events import MessagePart
from isthmus.record import record
from isthmus.text.visible import with_ellipsis

MAXIMUM_LINE_BYTES = 48 * 1024 * 1024
"""Maximum size of a line in bytes. More than all files of a message may have, in base64."""
MAXIMUM_BLOCKS = 1000
FILE_TYPES = ("image", "document")
SHOWN_CHARACTERS = 100


class InputLineError(IsthmusError):
    """A line that is not a user's message; the text has its number and says why."""


@record
class InputMessage:
    """A message: its text, and its files in base64."""

    text: str
    files: tuple[MessagePart, ...] = ()


class InputLines:
    """Reads messages from bytes as they come."""

    def __init__(self, maximum: int = MAXIMUM_LINE_BYTES) -> None:
        self._maximum = maximum
        self._splitter = LineSplitter(maximum)
        self._number = 0

    def feed(self, data: bytes) -> Iterator[InputMessage]:
        """Yield the messages whose lines end in ``data``; empty lines are ignored.

        Raises:
            InputLineError: a line is not a message.
        """
        for line in self._splitter.feed(data):
            self._number += 1
            if isinstance(line, LongLine):
                raise self._refused(f"expected at most {self._maximum} bytes, received {line.size}")
            if not line.strip():
                continue
            try:
                yield _message(decode(line))
            except (JsonError, _UnknownFormError) as error:
                raise self._refused(str(error)) from error

    def end(self) -> Iterator[InputMessage]:
        """Yield the message of the last line, if no newline ended it.

        Raises:
            InputLineError: it is not a message.
        """
        return self.feed(b"\n")

    def _refused(self, problem: str) -> InputLineError:
        return InputLineError(f"line {self._number} of the standard input: {problem}")


class _UnknownFormError(ValueError):
    """JSON that is not a message; the text says what was expected, and what came."""


def _message(value: object) -> InputMessage:
    line = _fields(value, "the line")
    if line.get("type") != "user":
        raise _UnknownFormError(f'expected "type": "user", received {_shown(line.get("type"))}')
    message = _fields(line.get("message"), "message")
    if message.get("role") != "user":
        raise _UnknownFormError(f'message: expected "role": "user", received {_shown(message.get("role"))}')
    content = message.get("content")
    if isinstance(content, str):
        texts, files = [content], []
    elif isinstance(content, list):
        texts, files = _blocks(cast("list[object]", content))
    else:
        raise _UnknownFormError(f"message.content: expected a text or a list of blocks, received {_kind(content)}")
    text = "\n\n".join(text for text in texts if text.strip())
    if not text and not files:
        raise _UnknownFormError("message.content: expected a text or a file, received none")
    return InputMessage(text or NO_TEXT, tuple(files))


def _blocks(blocks: Sequence[object]) -> tuple[list[str], list[MessagePart]]:
    if len(blocks) > MAXIMUM_BLOCKS:
        raise _UnknownFormError(f"message.content: expected at most {MAXIMUM_BLOCKS} blocks, received {len(blocks)}")
    texts: list[str] = []
    files: list[MessagePart] = []
    for index, found in enumerate(blocks):
        place = f"message.content[{index}]"
        block = _fields(found, place)
        kind = block.get("type")
        if kind == "text":
            texts.append(_text(block, "text", place))
        elif kind in FILE_TYPES:
            files.append(_file(block, place))
        else:
            raise _UnknownFormError(f"{place}.type: expected text, image or document, received {_shown(kind)}")
    return texts, files


def _file(block: dict[str, Any], place: str) -> MessagePart:
    source = _fields(block.get("source"), f"{place}.source")
    if source.get("type") != "base64":
        raise _UnknownFormError(f"{place}.source.type: expected base64, received {_shown(source.get('type'))}")
    data = _text(source, "data", f"{place}.source")
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _UnknownFormError(f"{place}.source.data: expected base64: {error}") from error
    title = block.get("title")
    filename = title if isinstance(title, str) else None
    return MessagePart(raw=data, media_type=_text(source, "media_type", f"{place}.source"), filename=filename)


def _fields(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _UnknownFormError(f"{place}: expected an object, received {_kind(value)}")
    return cast("dict[str, Any]", value)


def _text(fields: dict[str, Any], name: str, place: str) -> str:
    if not isinstance(value := fields.get(name), str):
        raise _UnknownFormError(f"{place}.{name}: expected a text, received {_kind(value)}")
    return value


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


def _shown(value: object) -> str:
    return repr(with_ellipsis(value, SHOWN_CHARACTERS)) if isinstance(value, str) else _kind(value)
