"""Port of an editor that shows what agents wrote without a review."""

from collections.abc import Callable, Coroutine
from typing import Protocol, TypeAlias, runtime_checkable

from isthmus.encoding.codec import JsonObject

ChangesQuestion: TypeAlias = Callable[[str, JsonObject], Coroutine[None, None, JsonObject]]
"""Function that runs a command ``written``, ``written_file`` and so on with its arguments, and returns its result."""


@runtime_checkable
class ChangesFront(Protocol):
    """An editor that shows what agents wrote, and asks for more by the commands of the control channel."""

    def serve_changes(self, ask: ChangesQuestion) -> None:
        """Take the function that answers questions of the editor, for its life."""
        ...

    def changes_written(self, files: int, turns: int) -> None:
        """Take the number of files and turns that wait for the user after any change of them, and return at once."""
        ...
