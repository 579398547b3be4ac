"""JSON of values that never change, such as the schemas of tools, which every request to a model contains again."""

from collections.abc import Callable, Mapping
from typing import Any

MAXIMUM = 1024
"""Maximum number of values whose JSON is remembered; beyond it all are forgotten."""


class RememberedJson:
    """Encoder that encodes each object once. The objects, and what they contain, must not change afterwards."""

    def __init__(self, encode: Callable[[object], str]) -> None:
        self._encode = encode
        self._found: dict[int, tuple[Mapping[str, Any], str]] = {}

    def __call__(self, value: Mapping[str, Any]) -> str:
        """Return the JSON of an object. Raises what the encoder raises."""
        # An identity is valid as long as its object lives, so the object is kept beside its text.
        found = self._found.get(id(value))
        if found is not None:
            return found[1]
        text = self._encode(value if isinstance(value, dict) else dict(value))
        if len(self._found) >= MAXIMUM:
            self._found.clear()
        self._found[id(value)] = value, text
        return text
