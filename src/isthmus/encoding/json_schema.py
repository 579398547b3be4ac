"""The validator of JSON Schema (2020-12) of the library jsonschema, imported when it is first wanted.

Without the library's checks of formats, which nobody here asks for (:mod:`isthmus.forms.form` has those that are):
in an environment with Jupyter a grammar of one of them alone takes a second of the processor, and of the event loop.
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
