"""The root of every error that Isthmus raises on purpose.

A message says what was expected, what came, and what to do. Failures of a tool are not errors of this
kind: they are results that go to the model. Bugs stay ordinary exceptions.
"""


class IsthmusError(Exception):
    """An expected failure whose text can be shown to a user as it is."""


class DecodeError(IsthmusError, ValueError):
    """Received data does not have the documented shape.

    ``path`` names the field from the outside in, e.g. ``ToolCall.output.diff.new_content``.
    """

    def __init__(self, path: str, expected: str, received: object) -> None:
        self.path = path
        self.expected = expected
        self.received = received
        super().__init__(f"{path}: expected {expected}, received {_short(received)}")


def _short(value: object) -> str:
    text = "nothing" if value is None else f"{type(value).__name__} {value!r}"
    return text if len(text) <= 80 else text[:77] + "..."


class Unavailable(IsthmusError):
    """Raised when something cannot be done at the moment; the same may be asked again."""
