"""Updates of a turn that is sent again, without the texts that became void when their process ended in the middle.

A client cannot take back a text that it has shown (version 1 has no way). It holds updates in memory and does not read
events itself.
"""

from collections.abc import Awaitable, Callable

from isthmus.acp.front.updates import replaced_message
from isthmus.acp.v1.updates import AgentMessageChunk, AgentThoughtChunk, SessionUpdate


class ReplayedUpdates:
    """Holds the updates of one turn back: all until :meth:`settle`, then a last text that the next one may replace."""

    def __init__(self, send: Callable[[SessionUpdate], Awaitable[None]]) -> None:
        self._send = send
        self._held: list[SessionUpdate] = []
        self._is_settled = False
        self._is_finished = False

    async def update(self, update: SessionUpdate) -> None:
        """Take the next update, and send what can be sent."""
        if self._is_finished or (self._is_settled and isinstance(update, AgentThoughtChunk)):
            await self._send(update)
            return
        if (void := replaced_message(update)) is not None:
            self._held = [held for held in self._held if _message_of(held) != void]
        self._held.append(update)
        if self._is_settled:
            await self.finish()

    async def settle(self) -> None:
        """Send what has come, apart from a last text, whose process may have ended: the turn goes on."""
        said = [held for held in self._held if not isinstance(held, AgentThoughtChunk)]
        message = _message_of(said[-1]) if said else None
        torn = [held for held in self._held if message is not None and _message_of(held) == message]
        for held in self._held:
            if held not in torn:
                await self._send(held)
        self._held, self._is_settled = torn, True

    async def finish(self) -> None:
        """Send all that is held, and everything from now on."""
        held, self._held, self._is_finished = self._held, [], True
        for update in held:
            await self._send(update)


def _message_of(update: SessionUpdate) -> str | None:
    return update.message_id if isinstance(update, AgentMessageChunk) else None
