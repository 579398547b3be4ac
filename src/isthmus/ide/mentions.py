"""Files to which the user recently pointed the agents, for agents that connect shortly afterwards."""

import time
from collections import deque
from collections.abc import Callable, Mapping

from isthmus.ide.agent_client import Client
from isthmus.ide.editor import FileMentioned

KEPT_MENTIONS = 20


class Mentions:
    """The last :data:`KEPT_MENTIONS` mentions, each sent to the most recently used client. ``clock`` is in seconds."""

    def __init__(self, clients: Mapping[str, Client], clock: Callable[[], float] = time.monotonic) -> None:
        self._clients = clients
        self._clock = clock
        self._latest: deque[tuple[float, FileMentioned]] = deque(maxlen=KEPT_MENTIONS)

    def notify(self, mention: FileMentioned) -> bool:
        """Send a mention to the most recently used agent that accepts mentions.

        Return False if there is none; the mention is kept for an agent that connects soon.
        """
        self._latest.append((self._clock(), mention))
        ranked = [(client.active_at, client) for client in self._clients.values() if client.connected]
        latest = max((one for one in ranked if one[0] is not None), key=lambda one: one[0] or 0.0, default=None)
        if latest is None:
            return False
        latest[1].mentioned(mention)
        return True

    def undelivered_message(self, path: str) -> str:
        """Return the message to the user if no agent accepted the mention of a file."""
        titles = sorted({client.title for client in self._clients.values() if client.connected})
        if not titles:
            return "no agent is attached; one that connects within ten seconds gets the file"
        return f"{', '.join(titles)} cannot be sent a file from here; write @ and its path in the prompt ({path})"

    def recent(self, seconds: float) -> tuple[FileMentioned, ...]:
        """Return the mentions of the last ``seconds``, oldest first."""
        since = self._clock() - seconds
        return tuple(mention for moment, mention in self._latest if moment >= since)
