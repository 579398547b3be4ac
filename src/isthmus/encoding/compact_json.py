"""Encoders of JSON without spaces, which are made once.

The standard library's encoder makes its C part anew for each value, which takes half the time of a small one.
"""

import json
import math
from collections.abc import Callable, Mapping
from json import encoder as standard
from typing import Any, cast


def compact_encoder(*, ensure_ascii: bool = False, allow_nan: bool = True) -> Callable[[object], str]:
    """Return a function that encodes values as :class:`json.JSONEncoder` does, without checking for circular ones.

    It raises what JSONEncoder raises: ValueError for NaN and infinities unless ``allow_nan``, TypeError for values that
    are not JSON, RecursionError for circular values and those nested too deeply.
    """
    options: Any = {"ensure_ascii": ensure_ascii, "allow_nan": allow_nan}
    plain = json.JSONEncoder(separators=(",", ":"), check_circular=False, **options)
    module: Any = standard
    escape = module.encode_basestring_ascii if ensure_ascii else module.encode_basestring
    try:
        pieces = module.c_make_encoder(None, plain.default, escape, None, ":", ",", False, False, allow_nan)
        if "".join(pieces({"a": [1, None]}, 0)) != '{"a":[1,null]}':
            return plain.encode
    except (AttributeError, TypeError):  # another Python, without this C part or with other arguments
        return plain.encode
    return lambda value: "".join(pieces(value, 0))


def finite_encoder(*, ensure_ascii: bool = False) -> Callable[[object], str]:
    """Return a function that encodes values as compact JSON; NaN and infinities, which JSON does not have, become null.

    It raises TypeError for values that are not JSON, and RecursionError for those nested too deeply.
    """
    # No value is circular; one would exceed the recursion limit. The check would cost a tenth of the time.
    encode_finite = compact_encoder(ensure_ascii=ensure_ascii, allow_nan=False)

    def encoded(value: object) -> str:
        try:
            return encode_finite(value)
        except ValueError:
            return encode_finite(_finite(value))

    return encoded


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in cast("list[Any]", value)]
    return value
