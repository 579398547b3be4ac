"""MCP sessions over streamable HTTP: who is attached, and what still has to reach them. No sockets and no clock.

A session outlives its streams: decisions wait in its log until a stream has carried them, and after a restart a
client is taken up again under its old id. Only the newest context is kept, older ones are of no use to anybody.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from uuid import uuid4

from isthmus import __version__
from isthmus.encoding.json_text import encode_ascii
from isthmus.ide.context import IdeContext, ide_context
from isthmus.ide.context_tracker import UserFocus
from isthmus.ide.editor import FileMentioned
from isthmus.ide.gemini import wire
from isthmus.ide.gemini.waiting import PendingDecision, UnsettledProposals, is_heard, parts_of
from isthmus.ide.limits import GeminiServerLimits
from isthmus.ide.mcp.mcp_peer import ClientInfo, McpPeer, ToolDefinition
from isthmus.ide.reviews.review import DiffReview
from isthmus.text.visible import printable

MAXIMUM_SESSIONS = 64
KEPT_EVENTS = 256
KEPT_BYTES = 32 * 1024 * 1024
"""Of events that were sent already and are only kept for a client that asks for them again."""
UNSENT_BYTES = 256 * 1024 * 1024
"""Of decisions that no stream has carried yet; a client that lets so much pile up loses the oldest ones."""
IDLE_SECONDS = 600.0
"""A session without a stream and without requests is forgotten after this."""

_log = logging.getLogger(__name__)


class EventLog:
    """Numbered events of one session. Ids are ``EPOCH-NUMBER``; an id of another epoch is before everything here."""

    def __init__(self, epoch: str, *, kept_bytes: int = KEPT_BYTES, unsent_bytes: int = UNSENT_BYTES) -> None:
        self._epoch = epoch
        self._kept_bytes = kept_bytes
        self._unsent_bytes = unsent_bytes
        self._last = 0
        self._kept: deque[tuple[int, bytes, str]] = deque(maxlen=KEPT_EVENTS)
        self._size = 0
        self._latest: tuple[int, bytes] | None = None
        self.sent = 0
        """The number of the newest event that any stream has carried."""

    def append(self, data: bytes, subject: str = "") -> None:
        """Add an event that must arrive, unless :meth:`drop` says that its ``subject`` is settled."""
        self._last += 1
        if len(self._kept) == KEPT_EVENTS:
            self._forget()
        self._kept.append((self._last, data, subject))
        self._size += len(data)
        while len(self._kept) > 1:  # the newest one always stays
            maximum = self._kept_bytes if self._kept[0][0] <= self.sent else self._unsent_bytes
            if self._size <= maximum:
                break
            self._forget()

    def _forget(self) -> None:
        number, data, subject = self._kept.popleft()
        self._size -= len(data)
        if number > self.sent:
            _log.warning("an agent that reads nothing never hears of %s: too much waits for it", printable(subject))

    def drop(self, subject: str) -> None:
        """Forget the events of a subject, sent or not."""
        stay = [event for event in self._kept if event[2] != subject]
        if len(stay) < len(self._kept):
            self._kept = deque(stay, maxlen=KEPT_EVENTS)
            self._size = sum(len(event[1]) for event in stay)

    def replace(self, data: bytes) -> None:
        """Add an event that makes the one added this way before worthless."""
        self._last += 1
        self._latest = (self._last, data)

    def position(self, last_event_id: str | None) -> int:
        """Where a stream starts: after the event that the client names, else after the last one sent to it."""
        if last_event_id is None:
            return self.sent
        epoch, number = parts_of(last_event_id)
        return number if epoch == self._epoch else 0

    @property
    def has_unsent(self) -> bool:
        """Whether anything that must arrive has not been carried by a stream."""
        return bool(self._kept) and self._kept[-1][0] > self.sent

    def unsent(self) -> list[tuple[str, bytes, str]]:
        """Id, data and subject of what must arrive and no stream has carried yet."""
        return [(self.event_id(number), data, subject) for number, data, subject in self._kept if number > self.sent]

    def after(self, position: int) -> list[tuple[int, bytes]]:
        """What comes after a position, oldest first."""
        events = [event[:2] for event in self._kept if event[0] > position]
        if self._latest is not None and self._latest[0] > position:
            events.append(self._latest)
            events.sort()
        return events

    def event_id(self, number: int) -> str:
        """Return the SSE id of an event."""
        return f"{self._epoch}-{number}"


class GeminiSession:
    """One agent CLI: its MCP connection and its event log. A :class:`~isthmus.ide.companion.Client`."""

    def __init__(
        self,
        session_id: str,
        epoch: str,
        now: float,
        client: ClientInfo | None = None,
        tools: Sequence[ToolDefinition] = wire.TOOLS,
    ) -> None:
        self.peer = McpPeer("isthmus-companion", __version__, tools, client)
        self.log = EventLog(epoch)
        self.wake = asyncio.Event()
        self.stream: object | None = None
        """The stream that is attached now; a new one takes the place of the old one."""
        self.seen = now
        self.stream_lost: float | None = None
        self.left = UnsettledProposals()
        """What waits since the companion's former life, which was killed."""
        self._id = session_id
        self._context: bytes | None = None

    @property
    def id(self) -> str:
        """The MCP session id."""
        return self._id

    @property
    def client_name(self) -> str:
        """``clientInfo.name``."""
        return self.peer.client.name if self.peer.client else ""

    @property
    def title(self) -> str:
        """The client as a user knows it."""
        return wire.client_title(self.peer.client)

    @property
    def connected(self) -> bool:
        """Whether a stream is open."""
        return self.stream is not None

    @property
    def pid(self) -> int | None:
        """Not told."""
        return None

    @property
    def active_at(self) -> float | None:
        """None: spec 1 has no message for a mention."""
        return None

    @property
    def waiting(self) -> UnsettledProposals:
        """What a next life has to know, but for the proposals that are shown."""
        unsent = {path: PendingDecision(path, event_id, data.decode()) for event_id, data, path in self.log.unsent()}
        return UnsettledProposals(dict(self.left.proposals), self.left.decisions | unsent)

    def tell_left(self, last_event_id: str | None) -> None:
        """Queue the decisions of the former life, but for those that came with this event or before it."""
        for file_path, decision in self.left.decisions.items():
            if not is_heard(decision.event_id, last_event_id):
                self.log.append(decision.message.encode(), file_path)
        self.left.decisions.clear()

    def context_changed(self, context: UserFocus) -> None:
        """Queue the context, unless this client would see no difference."""
        if _encoded(ide_context(context)) != self._context:
            self.send_context(context)

    def send_context(self, context: UserFocus) -> None:
        """Queue the context; it takes the place of one that is still queued."""
        self._context = _encoded(ide_context(context))
        self.log.replace(self._context)
        self.wake.set()

    def mentioned(self, mention: FileMentioned) -> None:
        """Nothing: spec 1 has no message for it. Editors also select the lines, which is a change of context."""

    def review_closed(self, review: DiffReview) -> None:
        """Nothing: openDiff was answered when the view was shown, and the client was not asked for more."""

    def asked_again(self, file_path: str) -> None:
        """Forget the decisions of older reviews: clients tell reviews by their paths and would take one for the new."""
        self.log.drop(file_path)
        self.left.forget(file_path)

    def decided(self, review: DiffReview) -> str | None:
        """Queue the decision; the text, if any, is to be shown to the user."""
        decision = wire.decision_notification(review, self.client_name)
        if decision is None:
            return None
        self.log.append(encode_ascii(decision.message), review.file_path)
        self.wake.set()
        return decision.warning


@lru_cache(maxsize=1)
def _encoded(context: IdeContext) -> bytes:
    return encode_ascii(wire.context_notification(context))


class SessionTable:
    """The sessions by id. ``restorable`` holds those of the companion's former life; they come back when asked for.

    ``left`` is what waited there, by session.
    """

    def __init__(
        self,
        epoch: str,
        restorable: dict[str, ClientInfo],
        clock: Callable[[], float],
        tools: Sequence[ToolDefinition] = wire.TOOLS,
        left: Mapping[str, UnsettledProposals] | None = None,
        lost_stream_seconds: float = GeminiServerLimits().lost_stream_seconds,
    ) -> None:
        self._tools = tools
        self._left = dict(left or {})
        self._epoch = epoch
        self._restorable = restorable
        self._lost_stream_seconds = lost_stream_seconds
        self._clock = clock
        self._sessions: dict[str, GeminiSession] = {}

    def in_the_way(self) -> GeminiSession | None:
        """The session to end before another one can be made: the longest unused one; None while there is room."""
        idle = [session for session in self._sessions.values() if session.stream is None]
        if len(self._sessions) < MAXIMUM_SESSIONS or not idle:
            return None
        return min(idle, key=lambda session: session.seen)

    def create(self) -> GeminiSession | None:
        """Return a new session with a random id; None when there is no room."""
        if len(self._sessions) >= MAXIMUM_SESSIONS:
            return None
        session = GeminiSession(str(uuid4()), self._epoch, self._clock(), tools=self._tools)
        self._sessions[session.id] = session
        return session

    def get(self, session_id: str | None) -> GeminiSession | None:
        """Return a session that a client names; None when it is unknown or was ended."""
        if session_id is None:
            return None
        session = self._sessions.get(session_id)
        if session is None and (client := self._restorable.pop(session_id, None)) is not None:
            session = GeminiSession(session_id, self._epoch, self._clock(), client, self._tools)
            session.left = self._left.pop(session_id, session.left)
            self._sessions[session_id] = session
        if session is not None:
            session.seen = self._clock()
        return session

    def remove(self, session_id: str) -> None:
        """End a session; its id is unknown from now on."""
        self._sessions.pop(session_id, None)

    def all(self) -> tuple[GeminiSession, ...]:
        """Return the live sessions."""
        return tuple(self._sessions.values())

    def clients(self) -> dict[str, ClientInfo]:
        """What to keep for a next life: every session that has been initialized, by id."""
        live = {session.id: session.peer.client for session in self._sessions.values() if session.peer.client}
        newest = list((self._restorable | live).items())[-MAXIMUM_SESSIONS:]  # some never come back
        return dict(newest)

    def waiting(self) -> dict[str, UnsettledProposals]:
        """By session, what a next life has to know, but for the proposals that are shown."""
        return {
            key: UnsettledProposals(dict(left.proposals), dict(left.decisions)) for key, left in self._left.items()
        } | {session.id: session.waiting for session in self._sessions.values()}

    def attach_stream(self, session: GeminiSession) -> object:
        """Return a stream opens; the key by which it recognises that another one took its place."""
        session.stream = key = object()
        session.stream_lost = None
        session.wake.set()
        return key

    def detach_stream(self, session: GeminiSession, key: object) -> None:
        """A stream ended."""
        if session.stream is key:
            session.stream = None
            session.seen = session.stream_lost = self._clock()

    def gone(self) -> tuple[GeminiSession, ...]:
        """Sessions that lost their stream a while ago: their views are to be closed. Each is named once."""
        limit = self._clock() - self._lost_stream_seconds
        lost = [s for s in self._sessions.values() if s.stream_lost is not None and s.stream_lost < limit]
        for session in lost:
            session.stream_lost = None
        return tuple(lost)

    def expired(self) -> tuple[GeminiSession, ...]:
        """Sessions to forget."""
        limit = self._clock() - IDLE_SECONDS
        return tuple(s for s in self._sessions.values() if s.stream is None and s.seen < limit)
