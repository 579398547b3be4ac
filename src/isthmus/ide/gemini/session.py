"""MCP sessions over streamable HTTP: the attached clients and their undelivered events. No sockets, no clock.

A session outlives its streams: decisions stay in its log until a stream has sent them, and after a restart a client
continues with its old id. Only the newest context is kept, because older ones are useless.
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
from isthmus.ide.gemini.waiting import PendingDecision, UnsettledProposals, has_received, parts_of
from isthmus.ide.mcp.mcp_peer import OWN_CLIENT, ClientInfo, McpPeer, ToolDefinition
from isthmus.ide.options import GeminiServerLimits
from isthmus.ide.reviews.review import DiffReview
from isthmus.text.visible import printable

MAXIMUM_SESSIONS = 64
KEPT_EVENTS = 256
KEPT_BYTES = 32 * 1024 * 1024
"""Maximum size of sent events, which are kept only for clients that request them again."""
UNSENT_BYTES = 256 * 1024 * 1024
"""Maximum size of unsent decisions; above it, the oldest ones are lost."""
IDLE_SECONDS = 600.0
"""Time in seconds after which a session without streams and requests is forgotten."""

_log = logging.getLogger(__name__)


class EventLog:
    """Numbered events of one session. Ids are ``EPOCH-NUMBER``; an id of another epoch precedes all events."""

    def __init__(self, epoch: str, *, kept_bytes: int = KEPT_BYTES, unsent_bytes: int = UNSENT_BYTES) -> None:
        self._epoch = epoch
        self._kept_bytes = kept_bytes
        self._unsent_bytes = unsent_bytes
        self._last = 0
        self._kept: deque[tuple[int, bytes, str]] = deque(maxlen=KEPT_EVENTS)
        self._size = 0
        self._latest: tuple[int, bytes] | None = None
        self.sent = 0
        """Number of the newest event that a stream has sent."""

    def append(self, data: bytes, subject: str = "") -> None:
        """Add an event that must be delivered unless :meth:`drop` removes its ``subject``."""
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
            _log.warning(
                "the decision about %s is lost: its agent does not read its events",
                printable(subject),
            )

    def drop(self, subject: str) -> None:
        """Forget the events of a subject, sent or not."""
        stay = [event for event in self._kept if event[2] != subject]
        if len(stay) < len(self._kept):
            self._kept = deque(stay, maxlen=KEPT_EVENTS)
            self._size = sum(len(event[1]) for event in stay)

    def replace(self, data: bytes) -> None:
        """Add an event that replaces the previous one added by this method."""
        self._last += 1
        self._latest = (self._last, data)

    def position(self, last_event_id: str | None) -> int:
        """Return the start of a stream: after the client's last event, or otherwise after the last sent event."""
        if last_event_id is None:
            return self.sent
        epoch, number = parts_of(last_event_id)
        return number if epoch == self._epoch else 0

    @property
    def has_unsent(self) -> bool:
        """Whether an event that must be delivered has not been sent."""
        return bool(self._kept) and self._kept[-1][0] > self.sent

    def unsent(self) -> list[tuple[str, bytes, str]]:
        """Return id, data and subject of the unsent events that must be delivered."""
        return [(self.event_id(number), data, subject) for number, data, subject in self._kept if number > self.sent]

    def after(self, position: int) -> list[tuple[int, bytes]]:
        """Return the events after a position, oldest first."""
        events = [event[:2] for event in self._kept if event[0] > position]
        if self._latest is not None and self._latest[0] > position:
            events.append(self._latest)
            events.sort()
        return events

    def event_id(self, number: int) -> str:
        """Return the SSE id of an event."""
        return f"{self._epoch}-{number}"


class GeminiSession:
    """Session of one agent CLI, with MCP peer and event log; a :class:`~isthmus.ide.agent_client.Client`."""

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
        """Attached stream; a new one replaces it."""
        self.seen = now
        self.stream_lost: float | None = None
        self.unsettled = UnsettledProposals()
        """Proposals and decisions left from the companion's previous run, which was killed."""
        self._id = session_id
        self._context: bytes | None = None

    @property
    def id(self) -> str:
        """MCP session id."""
        return self._id

    @property
    def client_name(self) -> str:
        """Value of ``clientInfo.name``."""
        return self.peer.client.name if self.peer.client else ""

    @property
    def title(self) -> str:
        """Name of the client for users."""
        return wire.client_title(self.peer.client)

    @property
    def connected(self) -> bool:
        """Whether a stream is open."""
        return self.stream is not None

    @property
    def pid(self) -> int | None:
        """Always None: this protocol does not transmit it."""
        return None

    @property
    def active_at(self) -> float | None:
        """Always None: this protocol has no message for a mention."""
        return None

    @property
    def waiting(self) -> UnsettledProposals:
        """Proposals and decisions to save for the next run, except proposals in open reviews."""
        unsent = {path: PendingDecision(path, event_id, data.decode()) for event_id, data, path in self.log.unsent()}
        return UnsettledProposals(dict(self.unsettled.proposals), self.unsettled.decisions | unsent)

    def queue_former_decisions(self, last_event_id: str | None) -> None:
        """Queue the decisions of the previous run, except those sent with or before this event."""
        for file_path, decision in self.unsettled.decisions.items():
            if not has_received(decision.event_id, last_event_id):
                self.log.append(decision.message.encode(), file_path)
        self.unsettled.decisions.clear()

    @property
    def takes_reasons(self) -> bool:
        """Whether the client is ours: other clients of this protocol know no reasons."""
        return self.client_name == OWN_CLIENT

    def context_changed(self, context: UserFocus) -> None:
        """Queue the context, unless it is the same for this client."""
        if _encode(ide_context(context)) != self._context:
            self.send_context(context)

    def send_context(self, context: UserFocus) -> None:
        """Queue the context in place of an unsent one."""
        self._context = _encode(ide_context(context))
        self.log.replace(self._context)
        self.wake.set()

    def mentioned(self, mention: FileMentioned) -> None:
        """Do nothing: the protocol has no message for it. Editors also select the lines, which changes the context."""

    def review_closed(self, review: DiffReview) -> None:
        """Do nothing: openDiff was answered when the view was shown, and the client expects no further message."""

    def discard_decisions(self, file_path: str) -> None:
        """Discard decisions about older reviews: clients know reviews by path, and would apply them to the new one."""
        self.log.drop(file_path)
        self.unsettled.forget(file_path)

    def decided(self, review: DiffReview) -> str | None:
        """Queue the decision; return a warning for the user, if any."""
        decision = wire.decision_notification(review, self.client_name)
        if decision is None:
            return None
        self.log.append(encode_ascii(decision.message), review.file_path)
        self.wake.set()
        return decision.warning


@lru_cache(maxsize=1)
def _encode(context: IdeContext) -> bytes:
    return encode_ascii(wire.context_notification(context))


class SessionTable:
    """Table of the sessions by id. ``restorable`` are the previous run's, restored when a client uses their id.

    ``unsettled`` are the proposals and decisions left from that run, by session.
    """

    def __init__(
        self,
        epoch: str,
        restorable: dict[str, ClientInfo],
        clock: Callable[[], float],
        tools: Sequence[ToolDefinition] = wire.TOOLS,
        unsettled: Mapping[str, UnsettledProposals] | None = None,
        lost_stream_seconds: float = GeminiServerLimits().lost_stream_seconds,
    ) -> None:
        self._tools = tools
        self._unsettled = dict(unsettled or {})
        self._epoch = epoch
        self._restorable = restorable
        self._lost_stream_seconds = lost_stream_seconds
        self._clock = clock
        self._sessions: dict[str, GeminiSession] = {}

    def session_to_end(self) -> GeminiSession | None:
        """Return the longest unused session if it must end to make room for a new one; otherwise None."""
        idle = [session for session in self._sessions.values() if session.stream is None]
        if len(self._sessions) < MAXIMUM_SESSIONS or not idle:
            return None
        return min(idle, key=lambda session: session.seen)

    def create(self) -> GeminiSession | None:
        """Return a new session with a random id; None if there is no room."""
        if len(self._sessions) >= MAXIMUM_SESSIONS:
            return None
        session = GeminiSession(str(uuid4()), self._epoch, self._clock(), tools=self._tools)
        self._sessions[session.id] = session
        return session

    def get(self, session_id: str | None) -> GeminiSession | None:
        """Return the session with the id; None if it is unknown or has ended."""
        if session_id is None:
            return None
        session = self._sessions.get(session_id)
        if session is None and (client := self._restorable.pop(session_id, None)) is not None:
            session = GeminiSession(session_id, self._epoch, self._clock(), client, self._tools)
            session.unsettled = self._unsettled.pop(session_id, session.unsettled)
            self._sessions[session_id] = session
        if session is not None:
            session.seen = self._clock()
        return session

    def remove(self, session_id: str) -> None:
        """End a session and forget its id."""
        self._sessions.pop(session_id, None)

    def all(self) -> tuple[GeminiSession, ...]:
        """Return the live sessions."""
        return tuple(self._sessions.values())

    def clients(self) -> dict[str, ClientInfo]:
        """Return the clients of all initialized sessions by id, to save for the next run."""
        live = {session.id: session.peer.client for session in self._sessions.values() if session.peer.client}
        newest = list((self._restorable | live).items())[-MAXIMUM_SESSIONS:]  # some never come back
        return dict(newest)

    def waiting(self) -> dict[str, UnsettledProposals]:
        """Return proposals and decisions to save for the next run, by session, except proposals in open reviews."""
        return {
            key: UnsettledProposals(dict(left.proposals), dict(left.decisions)) for key, left in self._unsettled.items()
        } | {session.id: session.waiting for session in self._sessions.values()}

    def attach_stream(self, session: GeminiSession) -> object:
        """Record that a stream opened; return a key by which it detects its replacement."""
        session.stream = key = object()
        session.stream_lost = None
        session.wake.set()
        return key

    def detach_stream(self, session: GeminiSession, key: object) -> None:
        """Record that a stream ended."""
        if session.stream is key:
            session.stream = None
            session.seen = session.stream_lost = self._clock()

    def newly_lost(self) -> tuple[GeminiSession, ...]:
        """Return the sessions whose stream has been lost for long, each only once, so that their views are closed."""
        limit = self._clock() - self._lost_stream_seconds
        lost = [s for s in self._sessions.values() if s.stream_lost is not None and s.stream_lost < limit]
        for session in lost:
            session.stream_lost = None
        return tuple(lost)

    def expired(self) -> tuple[GeminiSession, ...]:
        """Return the sessions that have been idle too long."""
        limit = self._clock() - IDLE_SECONDS
        return tuple(s for s in self._sessions.values() if s.stream is None and s.seen < limit)
