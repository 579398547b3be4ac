"""Session of one connected Claude CLI: MCP peer, queued notifications, pending reviews. No sockets, no clock.

A session is one connection. A CLI that reconnects is a new client: the pending calls of its previous connection have
failed, and its question in the terminal remains usable. Only the newest selection is sent.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

from isthmus import __version__
from isthmus.encoding.json_text import encode_ascii
from isthmus.ide.claude import notifications
from isthmus.ide.context_tracker import UserFocus
from isthmus.ide.editor import FileMentioned
from isthmus.ide.mcp.mcp_peer import OWN_CLIENT, McpPeer, ToolDefinition
from isthmus.ide.reviews.review import DiffReview
from isthmus.rpc.messages import Notification, notification
from isthmus.text.visible import printable

CAPABILITIES = {"tools": {"listChanged": True}}
KEPT_MENTIONS = 100
"""Maximum number of mentions queued for a client that does not read; the oldest are dropped."""
KEPT_DECISIONS = 200
"""Maximum number of kept decisions about reviews that no call awaits, such as after a cancelled call."""
TITLES = {"claude-code": "Claude Code"}

_log = logging.getLogger(__name__)


class ClaudeSession:
    """A :class:`~isthmus.ide.agent_client.Client` that sends nothing before its CLI has reported ``initialized``."""

    def __init__(self, session_id: str, tools: Sequence[ToolDefinition]) -> None:
        self.peer = McpPeer("isthmus-companion", __version__, tools, capabilities=CAPABILITIES)
        self.wake = asyncio.Event()
        """Event that is set when :meth:`take` has something to return."""
        self.connected = True
        self.is_initialized = False
        """Whether notifications may be sent to the CLI."""
        self._is_settled = False
        self.active_at: float | None = None
        """Time in monotonic seconds of the CLI's last tool call, or of its attachment; set by the reader.

        CLIs call a tool at the start of each turn.
        """
        self.pid: int | None = None
        """Process id that the CLI reports in ``ide_connected``."""
        self._id = session_id
        self._selection: dict[str, object] | None = None
        self._is_selection_queued = False
        self._are_tools_queued = False
        self._mentions: deque[FileMentioned] = deque(maxlen=KEPT_MENTIONS)
        self._waiting: dict[str, DiffReview] = {}
        self._decisions: dict[str, asyncio.Future[DiffReview]] = {}

    @property
    def id(self) -> str:
        """Id of this connection, never reused."""
        return self._id

    @property
    def title(self) -> str:
        """Name of the client for users."""
        client = self.peer.client
        return (TITLES.get(client.name) or client.title) if client is not None else "agent"

    @property
    def takes_reasons(self) -> bool:
        """Whether the client is ours: other clients of this protocol know no reasons."""
        return self.peer.client is not None and self.peer.client.name == OWN_CLIENT

    def notified(self, received: Notification) -> None:
        """Handle a notification of the CLI; ignore unknown ones."""
        match received.method:
            case "notifications/initialized":
                self.is_initialized = True
                self.wake.set()
            case "ide_connected":
                pid = received.params.get("pid")
                self.pid = pid if isinstance(pid, int) and not isinstance(pid, bool) and pid > 0 else None
            case _:
                pass

    def context_changed(self, context: UserFocus) -> None:
        """Queue the selection of the active file, unless it is the last one queued for this CLI."""
        selection = self._newest(context)
        if selection is not None and selection != self._selection:
            self._selection = selection
            self._is_selection_queued = True
            self.wake.set()

    def settle(self) -> None:
        """Record that the CLI now listens, a moment after its ``initialized``, so that mentions may be sent.

        The selection is sent again, which is harmless if it arrived before.
        """
        self._is_settled = True
        self._is_selection_queued = self._selection is not None
        self.wake.set()

    def _newest(self, context: UserFocus) -> dict[str, object] | None:
        if (active := context.active_file) is not None:
            return dict(notifications.selection_json(active))
        if self._selection is None or not self._selection["text"]:
            return None
        return dict(notifications.nothing_selected(self._selection))

    def mentioned(self, mention: FileMentioned) -> None:
        """Queue a mention, which is sent when the CLI listens."""
        if len(self._mentions) == KEPT_MENTIONS:
            _log.warning(
                "the mention of %s is lost: its agent does not read its messages", printable(self._mentions[0].path)
            )
        self._mentions.append(mention)
        self.wake.set()

    def offer(self, tools: Sequence[ToolDefinition]) -> None:
        """Replace the offered tools, and queue the notification that they have changed."""
        self.peer.tools = tools
        self._are_tools_queued = True
        self.wake.set()

    def take(self) -> list[bytes]:
        """Remove and return the queued notifications that may be sent now, encoded and in order."""
        self.wake.clear()
        if not self.is_initialized:
            return []
        messages: list[bytes] = []
        if self._are_tools_queued:
            messages.append(encode_ascii(notification(notifications.TOOLS_CHANGED, {})))
        if self._is_selection_queued and self._selection is not None:
            messages.append(encode_ascii(notifications.selection_changed(self._selection)))
        self._are_tools_queued = self._is_selection_queued = False
        if self._is_settled:
            messages.extend(encode_ascii(notifications.at_mentioned(mention)) for mention in self._mentions)
            self._mentions.clear()
        return messages

    # Reviews: openDiff blocks until its review is decided.

    async def wait_for_decision(self, review: DiffReview) -> DiffReview:
        """Wait until a review is accepted, rejected or closed, and return it; it may have ended before the call.

        :meth:`decided` and :meth:`review_closed` end the wait; there is no deadline. A cancelled caller closes the
        view.
        """
        if not review.is_open:
            return review
        self._waiting[review.id] = review
        try:
            return await self._decision(review.id)
        finally:
            self._waiting.pop(review.id, None)
            self._decisions.pop(review.id, None)

    def decided(self, review: DiffReview) -> str | None:
        """Answer the openDiff of a review that the user accepted or rejected; always return None."""
        self._resolve(review)
        return None

    def review_closed(self, review: DiffReview) -> None:
        """Answer the openDiff of a review that was closed, replaced, or ended with the companion."""
        self._resolve(review)

    def discard_decisions(self, file_path: str) -> None:
        """Do nothing: an answer belongs to one call, and cannot be mistaken for another call's."""

    def reject_waiting(self) -> None:
        """Answer every waiting openDiff with a rejection, because the companion ends."""
        for review in tuple(self._waiting.values()):
            self._resolve(review.reject())

    def _resolve(self, review: DiffReview) -> None:
        future = self._decision(review.id)
        if not future.done():
            future.set_result(review)
        if len(self._decisions) > KEPT_DECISIONS:
            decided = [review_id for review_id, waiting in self._decisions.items() if waiting.done()]
            for review_id in decided[:-1]:
                del self._decisions[review_id]

    def _decision(self, review_id: str) -> asyncio.Future[DiffReview]:
        if review_id not in self._decisions:
            self._decisions[review_id] = asyncio.get_running_loop().create_future()
        return self._decisions[review_id]
