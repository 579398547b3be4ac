"""JSON as it goes over the wire: bounded when it comes in, stable and safe in event streams when it goes out.

``decode`` refuses input that would hurt later: unlimited depth, NaN, text that is not Unicode. ``encode`` never fails
on text from a model or a file. ``decode_any_text`` and ``encode_ascii`` carry half surrogate pairs, as the names
of files that are not UTF-8 have them. Deliberately not here: any meaning of the values.
"""

import codecs
import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

from isthmus.encoding.codec import MAXIMUM_DEPTH, is_deeper, well_formed
from isthmus.errors import IsthmusError

# str.splitlines of real clients (httpx) ends lines there as well; inside JSON text they only occur in strings.
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
# Circular values, which there are none of, would exceed the depth of recursion; looking for them costs a tenth.
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False).encode
_ENCODE_ASCII = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode


class JsonError(IsthmusError):
    """Bytes that are not JSON, or not JSON that we read."""


def decode(body: bytes, *, mends_text: bool = False) -> Any:
    """Return the value of a UTF-8 JSON text; a byte order mark before it is ignored.

    `mends_text`: half of a surrogate pair becomes U+FFFD instead of being refused.

    Raises:
        JsonError: not UTF-8, not JSON, nested deeper than MAXIMUM_DEPTH, or with numbers or text that cannot be
            given back.
    """
    try:
        text = body.removeprefix(codecs.BOM_UTF8).decode()
        value = _DECODE(text)
    except UnicodeDecodeError as error:
        raise JsonError(f"expected JSON in UTF-8, but byte {error.start} does not belong to it") from error
    except RecursionError as error:
        raise JsonError(f"expected JSON nested at most {MAXIMUM_DEPTH} deep") from error
    except json.JSONDecodeError as error:
        raise JsonError(f"expected JSON: {error}") from error
    except ValueError as error:
        # Of a whole number with thousands of digits Python goes on to say how its limit is changed.
        raise JsonError(f"expected JSON: {str(error).partition(';')[0]}") from error
    if body.count(b"[") + body.count(b"{") > MAXIMUM_DEPTH and is_deeper(value, MAXIMUM_DEPTH):
        raise JsonError(f"expected JSON nested at most {MAXIMUM_DEPTH} deep")
    if b"\\ud" in body.lower() and not _is_unicode(value):
        if mends_text:
            return well_formed(value)
        raise JsonError("expected Unicode text, but a string holds half of a surrogate pair")
    return value


def encode(value: object) -> bytes:
    """Compact UTF-8 JSON on one line, keys in their order; fit for the ``data:`` of an event stream.

    What JSON does not have (NaN, infinities) becomes null, half surrogate pairs stay escapes.
    """
    try:
        text = _ENCODE(value)
    except ValueError:
        return encode(_finite(value))
    if text.isascii():
        return text.encode()
    text = _LINE_ENDS.sub(_escape, text)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return encode_ascii(value)


def decode_any_text(data: bytes | str) -> Any:
    """Return the value of a JSON text in which half surrogate pairs may stand.

    Raises:
        JsonError: not UTF-8, not JSON, or nested more deeply than Python reads.
    """
    try:
        return _DECODE_ANY_TEXT(data if isinstance(data, str) else data.decode("utf-8", "surrogatepass"))
    except RecursionError as error:
        raise JsonError("the JSON is nested too deeply") from error
    except ValueError as error:  # of UTF-8, too
        raise JsonError(str(error)) from error


def encode_ascii(value: object) -> bytes:
    """Return compact JSON on one line, of ASCII alone: half surrogate pairs and line separators are escapes."""
    try:
        return _ENCODE_ASCII(value).encode()
    except ValueError:
        return encode_ascii(_finite(value))


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _finite_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


# Made once: what is made for each message costs as much as a small message itself.
_DECODE = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite_float).decode
_DECODE_ANY_TEXT = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in cast("list[Any]", value)]
    return value
