"""The validator of the library jsonschema for JSON Schema (2020-12), imported at the first use.

The library's format checks are excluded, since Isthmus does not use them (:mod:`isthmus.forms.form` has its own). In an
environment with Jupyter, importing the grammar of one of them alone blocks the event loop for a second.
"""

import sys
import threading
from functools import cache
from typing import Any

_FORMAT_GRAMMAR = "rfc3987_syntax"
_LOCK = threading.Lock()


@cache
def draft_2020_12() -> Any:
    """Return the class ``jsonschema.Draft202012Validator``."""
    with _LOCK:
        is_left_out = not {"jsonschema", _FORMAT_GRAMMAR} & sys.modules.keys()
        if is_left_out:
            sys.modules[_FORMAT_GRAMMAR] = None  # pyright: ignore[reportArgumentType] - so an import of it fails
        try:
            from jsonschema import Draft202012Validator
        finally:
            if is_left_out:
                del sys.modules[_FORMAT_GRAMMAR]
    return Draft202012Validator
