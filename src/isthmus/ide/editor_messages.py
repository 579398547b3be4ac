"""Editors that store the messages to their user, because they have no screen or show reviews on a page. No I/O."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class HasMessages(Protocol):
    """An editor that stores messages instead of showing them."""

    @property
    def messages(self) -> Sequence[str]:
        """Messages to the user, oldest first."""
        ...
