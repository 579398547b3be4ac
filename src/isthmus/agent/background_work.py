"""Port to the commands of sessions in the background, which the shell tool starts; see `isthmus.tools`."""

import asyncio
from collections.abc import Sequence
from typing import Protocol


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


class BackgroundWork(Protocol):
    """The commands in the background, by the key of their session."""

    def of(self, session: str) -> Sequence[BackgroundItem]:
        """Return the commands of a session, in the order of their start."""
        ...
