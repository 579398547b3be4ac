"""Port to the commands of sessions in the background, which the shell tool starts; see `isthmus.tools`."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias


class BackgroundItem(Protocol):
    """A command in the background. ``ended`` is set once it has ended."""

    @property
    def id(self) -> int:
        """Process id of its leader."""
        ...

    @property
    def text(self) -> str:
        """The command as it was written."""
        ...

    @property
    def state(self) -> str:
        """State in a few words."""
        ...

    @property
    def ended(self) -> asyncio.Event:
        """Event that is set once it has ended."""
        ...

    def stop(self, reason: str) -> None:
        """End it, if it runs."""
        ...


BackgroundWork: TypeAlias = Callable[[str], Sequence[BackgroundItem]]
"""Function that returns the commands in the background of the session with this key, in the order of their start."""
