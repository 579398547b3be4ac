"""Port of an editor that shows what agents wrote without a review."""

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from isthmus.encoding.codec import JsonObject


@runtime_checkable
class ChangesFront(Protocol):
    """An editor that shows what agents wrote, and asks for more by the commands of the control channel."""

    def serve_changes(self, ask: Callable[[str, JsonObject], Awaitable[JsonObject]]) -> None:
        """Take the function that runs a command ``written``, ``written_file`` and so on, for the life of the editor."""
        ...

    def changes_written(self, files: int, turns: int) -> None:
        """Take the number of files and turns that wait for the user after any change of them, and return at once."""
        ...
