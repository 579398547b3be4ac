"""The port of tools whose calls can be tried without an effect, before a user is asked about them."""

from typing import Protocol, runtime_checkable

from isthmus.development_tool import ConfirmationDetails
from isthmus.tools.port.base import Arguments, ToolContext


@runtime_checkable
class TryingTool(Protocol):
    """A tool with calls that can be tried without an effect: what they would do is known before a user is asked."""

    async def try_out(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the proposal of a call with what it did in a trial; None if it cannot be tried."""
        ...

    async def discard(self, details: ConfirmationDetails, context: ToolContext) -> None:
        """Throw away what is kept of a trial that the user has rejected."""
        ...
