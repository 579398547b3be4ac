"""Encoders of JSON without spaces, which are made once.

The standard library's encoder makes its C part anew for each value, which takes half the time of a small one.
"""

import json
from collections.abc import Callable
from json import encoder as standard
from typing import Any


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
