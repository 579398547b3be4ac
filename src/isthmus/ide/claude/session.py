"""One connected Claude CLI: its MCP peer, what is queued for it, the reviews it waits for. No sockets, no clock.

A connection is a session: a CLI that reconnects is a new client, and what the one before waited for has failed on its
side (its terminal question stays usable). Nothing is queued twice: of selections only the newest is sent.
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
from isthmus.ide.mcp.mcp_peer import McpPeer, ToolDefinition
from isthmus.ide.reviews.review import DiffReview
from isthmus.rpc.messages import Notification, notification
from isthmus.text.visible import printable

CAPABILITIES = {"tools": {"listChanged": True}}
KEPT_MENTIONS = 100
"""Of a client that does not read; the oldest are dropped."""
KEPT_DECISIONS = 200
"""Of reviews that nobody waits for, such as those of cancelled calls."""
TITLES = {"claude-code": "Claude Code"}

_log = logging.getLogger(__name__)


class ClaudeSession:
    """A :class:`~isthmus.ide.companion.Client`. Nothing is sent before the CLI said that it is initialized."""

    def __init__(self, session_id: str, tools: Sequence[ToolDefinition]) -> None:
        self.peer = McpPeer("isthmus-companion", __version__, tools, capabilities=CAPABILITIES)
        self.wake = asyncio.Event()
        """Set when :meth:`take` has something."""
        self.connected = True
        self.is_initialized = False
        """Whether the CLI may be sent notifications."""
        self._is_settled = False
        self.active_at: float | None = None
        """When the CLI called a tool last, which it does at the start of each turn, or came; set by who reads."""
        self.pid: int | None = None
        """The CLI's process id, as it says itself (``ide_connected``)."""
        self._id = session_id
        self._selection: dict[str, object] | None = None
        self._is_selection_queued = False
        self._are_tools_queued = False
        self._mentions: deque[FileMentioned] = deque(maxlen=KEPT_MENTIONS)
        self._waiting: dict[str, DiffReview] = {}
        self._decisions: dict[str, asyncio.Future[DiffReview]] = {}

    @property
    def id(self) -> str:
        """Unique for ever: of this connection."""
        return self._id

    @property
    def title(self) -> str:
        """The client as a user knows it."""
        client = self.peer.client
        return TITLES.get(client.name, client.title) if client is not None else "agent"

    def notified(self, received: Notification) -> None:
        """A notification of the CLI came; the ones that mean nothing here are ignored."""
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
        """Queue the selection of the active file, unless it is what this CLI was told last."""
        selection = self._newest(context)
        if selection is not None and selection != self._selection:
            self._selection = selection
            self._is_selection_queued = True
            self.wake.set()

    def settle(self) -> None:
        """The CLI listens by now, which is a moment after it said that it is initialized: mentions may go out.

        The selection goes out once more; one that it has heard changes nothing.
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
        """Queue a mention; it is sent once the CLI listens."""
        if len(self._mentions) == KEPT_MENTIONS:
            _log.warning("an agent that reads nothing never hears of %s", printable(self._mentions[0].path))
        self._mentions.append(mention)
        self.wake.set()

    def offer(self, tools: Sequence[ToolDefinition]) -> None:
        """Offer other tools than before, and queue that tools/list is to be asked again."""
        self.peer.tools = tools
        self._are_tools_queued = True
        self.wake.set()

    def take(self) -> list[bytes]:
        """What is queued and may be sent now, encoded and in order; it is not queued any more."""
        self.wake.clear()
        if not self.is_initialized:
            return []
        taken: list[bytes] = []
        if self._are_tools_queued:
            taken.append(encode_ascii(notification(notifications.TOOLS_CHANGED, {})))
        if self._is_selection_queued and self._selection is not None:
            taken.append(encode_ascii(notifications.selection_changed(self._selection)))
        self._are_tools_queued = self._is_selection_queued = False
        if self._is_settled:
            taken.extend(encode_ascii(notifications.at_mentioned(mention)) for mention in self._mentions)
            self._mentions.clear()
        return taken

    # Reviews: openDiff blocks until its review is decided.

    async def wait_for_decision(self, review: DiffReview) -> DiffReview:
        """Return the review once it is accepted, rejected or closed, also when that happened before this was called.

        Resolved by :meth:`decided` and :meth:`review_closed`; there is no deadline. Who cancels it closes the view.
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
        """Return the user accepted or rejected; there is never anything to show to them."""
        self._resolve(review)
        return None

    def review_closed(self, review: DiffReview) -> None:
        """It ended otherwise: taken back (close_tab, closeAllDiffTabs), replaced, or the companion ends."""
        self._resolve(review)

    def asked_again(self, file_path: str) -> None:
        """Nothing: an answer belongs to one call, and cannot be taken for another's."""

    def reject_waiting(self) -> None:
        """Answer every openDiff that waits with a rejection: the companion ends."""
        for review in tuple(self._waiting.values()):
            self._resolve(review.reject())

    def _resolve(self, review: DiffReview) -> None:
        future = self._decision(review.id)
        if not future.done():
            future.set_result(review)
        if len(self._decisions) > KEPT_DECISIONS:
            settled = [review_id for review_id, waiting in self._decisions.items() if waiting.done()]
            for review_id in settled[:-1]:
                del self._decisions[review_id]

    def _decision(self, review_id: str) -> asyncio.Future[DiffReview]:
        if review_id not in self._decisions:
            self._decisions[review_id] = asyncio.get_running_loop().create_future()
        return self._decisions[review_id]
