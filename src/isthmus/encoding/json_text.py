"""JSON on the wire: bounded decoding, and stable encoding that is safe in event streams.

``decode`` refuses input that would cause failures later: unlimited depth, NaN, text that is not Unicode. ``encode``
never fails on text from a model or a file. ``decode_any_text`` and ``encode_ascii`` preserve half surrogate pairs,
which occur in names of files that are not UTF-8.
"""

import codecs
import json
import math
import re
from collections.abc import Callable
from typing import Any

from isthmus.encoding.codec import MAXIMUM_DEPTH, is_deeper, well_formed
from isthmus.encoding.compact_json import finite_encoder
from isthmus.errors import IsthmusError

# Some clients (httpx) use str.splitlines, which also ends lines there; in JSON they occur only in strings.
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")


class JsonError(IsthmusError):
    """Input that is not JSON, or JSON that is refused."""


def decode(body: bytes, *, mends_text: bool = False) -> Any:
    """Return the value of a UTF-8 JSON text; a byte order mark before it is ignored.

    `mends_text` replaces half surrogate pairs by U+FFFD instead of refusing them.

    Raises:
        JsonError: the input is not UTF-8, not JSON, nested deeper than MAXIMUM_DEPTH, or contains numbers or text that
            cannot be encoded again.
    """
    try:
        text = body.removeprefix(codecs.BOM_UTF8).decode()
        value = _DECODE(text)
    except UnicodeDecodeError as error:
        raise JsonError(f"expected JSON in UTF-8, but byte {error.start} is not UTF-8") from error
    except RecursionError as error:
        raise JsonError(f"expected JSON nested at most {MAXIMUM_DEPTH} deep") from error
    except json.JSONDecodeError as error:
        raise JsonError(f"expected JSON: {error}") from error
    except ValueError as error:
        # For a number with thousands of digits, Python adds how to change its limit.
        raise JsonError(f"expected JSON: {str(error).partition(';')[0]}") from error
    if body.count(b"[") + body.count(b"{") > MAXIMUM_DEPTH and is_deeper(value, MAXIMUM_DEPTH):
        raise JsonError(f"expected JSON nested at most {MAXIMUM_DEPTH} deep")
    if (b"\\ud" in body or b"\\uD" in body) and not _is_unicode(value):
        if mends_text:
            return well_formed(value)
        raise JsonError("expected Unicode text, but a string contains half of a surrogate pair")
    return value


def encode(value: object) -> bytes:
    """Return compact UTF-8 JSON on one line, keys in order, for the ``data:`` of an event stream.

    NaN and infinities, which JSON does not have, become null; half surrogate pairs stay escapes.
    """
    text = _ENCODE(value)
    if text.isascii():
        return text.encode()
    text = _LINE_ENDS.sub(_escape, text)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return encode_ascii(value)


def decode_any_text(data: bytes | str) -> Any:
    """Return the value of a JSON text that may contain half surrogate pairs.

    Raises:
        JsonError: the text is not UTF-8, not JSON, or nested too deeply for Python, or a number is too large.
    """
    try:
        return _DECODE_ANY_TEXT(data if isinstance(data, str) else data.decode("utf-8", "surrogatepass"))
    except RecursionError as error:
        raise JsonError("the JSON is nested too deeply") from error
    except ValueError as error:  # also for invalid UTF-8
        raise JsonError(str(error).partition(";")[0]) from error  # Python adds how to change a limit of its own


def decode_loosely(text: str) -> Any:
    """Return the value of a JSON text as Python reads it, with None for numbers that could not be encoded again.

    Some servers send them: NaN, infinities, and numbers too large for a float.

    Raises:
        ValueError: the text is not JSON.
        RecursionError: it is nested too deeply for Python.
    """
    return _DECODE_LOOSELY(text)


def encode_ascii(value: object) -> bytes:
    """Return compact ASCII JSON on one line: half surrogate pairs and line separators are escapes."""
    return _ENCODE_ASCII(value).encode()


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _no_number(name: str) -> None:
    del name


def _finite_float_or_none(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _finite_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _decoding(decoder: json.JSONDecoder) -> Callable[[str], Any]:
    """Return the decoder's ``decode`` with a short way, in half the time, for texts without spaces around the value."""
    parts: Any = decoder
    scan, decode = parts.scan_once, decoder.decode

    def short(text: str) -> Any:
        try:
            value, end = scan(text, 0)
        except StopIteration:  # no value, or spaces before it
            return decode(text)
        return value if end == len(text) else decode(text)

    return short


# Created once: creating one takes as long as decoding a small message.
_DECODE = _decoding(json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite_float))
_DECODE_ANY_TEXT = _decoding(json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite_float))
_DECODE_LOOSELY = _decoding(json.JSONDecoder(parse_constant=_no_number, parse_float=_finite_float_or_none))
_ENCODE = finite_encoder()
_ENCODE_ASCII = finite_encoder(ensure_ascii=True)


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
